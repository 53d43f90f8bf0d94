"""Every way to commit, with a kill before and after the commit: where the next consumer goes on."""

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from examples.sqlite_offsets import Totals
from tests.delivery.committing import WAYS
from tests.delivery.control import client_settings
from tests.delivery.joining import GROUP_SETTINGS, MEMBERSHIPS
from tests.delivery.reading import make_topics
from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.server import Server
from tests.delivery.workers import Worker

TOPIC = "orders"
RECORDS = 200
CUSTOMERS = 7
NEVER_MS = 3_600_000
SOON_MS = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("commits")
    with Server(directory / "broker", *GROUP_SETTINGS) as server:
        make_topics(server.bootstrap_servers, 1, TOPIC)
        producer = Producer(client_settings(server.bootstrap_servers, linger_ms=5))
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number), f"customer {number % CUSTOMERS}")
        assert producer.flush(30) == 0
        yield server


class Consumers:
    """The consumers of one test, one process after the other."""

    def __init__(self, server: Server, directory: Path, group: str, *ways: str, membership: str) -> None:
        self._server = server
        self._directory = directory
        self._ways = ways
        self._group = group
        self._membership = membership
        self.worker: Worker | None = None

    @property
    def database(self) -> Path:
        return self._directory / "totals.db"

    def start(self, interval_ms: int = NEVER_MS) -> dict[str, int]:
        """A new process; where each way goes on."""
        self.kill()
        self.worker = Worker(
            "committing",
            bootstrap=self._server.bootstrap_servers,
            topic=TOPIC,
            ways=self._ways,
            group=self._group,
            interval_ms=interval_ms,
            results=str(self._directory / "results.jsonl"),
            database=str(self.database),
            membership_settings=MEMBERSHIPS[self._membership],
        )
        return dict(self.worker.wait_for("ready")["positions"])

    def take(self, records: int, *, first: str = "process", stop_at: str | None) -> dict[str, Any]:
        """Let the process read, process and commit, up to the stop; what it tells there."""
        assert self.worker is not None
        self.worker.tell(records=records, first=first, stop_at=stop_at)
        return dict(self.worker.wait_for(stop_at or "ready"))

    def go_on(self) -> dict[str, Any]:
        assert self.worker is not None
        self.worker.tell()
        return dict(self.worker.next())

    def kill(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker.__exit__(None, None, None)

    def processed(self) -> Counter[int]:
        """How often each offset was processed."""
        lines = (self._directory / "results.jsonl").read_bytes().splitlines(keepends=True)
        return Counter(json.loads(line)[1] for line in lines if line.endswith(b"\n"))


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return f"g{zlib.crc32(request.node.nodeid.encode()):x}"


def after(records: int) -> dict[str, int]:
    """Where each way stands when so many records have been committed."""
    return {way: records // 2 + 1 if way == "any offset" else records for way in WAYS}


@pytest.mark.parametrize("membership", ["classic", "consumer"])
@pytest.mark.parametrize("victim", ["client", "broker"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_around_a_commit_leaves_the_group_where_it_was_or_where_it_was_put(
    server: Server, tmp_path: Path, chance: Seeded, group: str, membership: str, victim: str, moment: str
) -> None:
    taken = chance.dice.randint(5, 30)
    consumers = Consumers(server, tmp_path, group, *WAYS, membership=membership)
    try:
        never_by_itself = (victim, moment) == ("client", "before")
        assert consumers.start(NEVER_MS if never_by_itself else SOON_MS) == dict.fromkeys(WAYS, 0)
        told = consumers.take(taken, stop_at="between" if moment == "before" else "done")
        if moment == "after":
            assert told["committed"] == after(taken)
        if victim == "broker":
            server.restart()
            told = consumers.go_on()
            assert (told["at"], told["positions"]) == ("ready", after(taken))
        expected = dict.fromkeys(WAYS, 0) if never_by_itself else after(taken)
        assert consumers.start() == expected
        read = consumers.take(1, stop_at="between")["read"]
        assert read == expected, "a consumer does not go on where its group is"
    finally:
        consumers.kill()
    report(f"commit: kill of the {victim} {moment} it ({membership})", chance, ways=list(WAYS))


@pytest.mark.parametrize("victim", ["client", "broker"])
def test_at_least_once_repeats_and_never_loses(
    server: Server, tmp_path: Path, chance: Seeded, group: str, victim: str
) -> None:
    taken = killed_between(server, tmp_path, chance, group, victim, first="process")
    assert set(taken) == set(range(RECORDS)), "records were lost"
    repeated = [offset for offset, times in taken.items() if times > 1]
    if victim == "client":
        assert repeated, "nothing was repeated: the kills came too late to show it"
    report(f"at least once: kills of the {victim}", chance, records=RECORDS, repeated=len(repeated))


@pytest.mark.parametrize("victim", ["client", "broker"])
def test_at_most_once_loses_and_never_repeats(
    server: Server, tmp_path: Path, chance: Seeded, group: str, victim: str
) -> None:
    taken = killed_between(server, tmp_path, chance, group, victim, first="commit")
    assert set(taken.values()) == {1}, "records were repeated"
    lost = set(range(RECORDS)) - set(taken)
    if victim == "client":
        assert lost, "nothing was lost: the kills came too late to show it"
    report(f"at most once: kills of the {victim}", chance, records=RECORDS, lost=len(lost))


def killed_between(
    server: Server, directory: Path, chance: Seeded, group: str, victim: str, *, first: str
) -> Counter[int]:
    """Process and commit all records, with kills between the two; how often each was processed."""
    consumers = Consumers(server, directory, group, "sync", membership="assigned")
    kills = 4 if victim == "client" else 2
    try:
        position, is_peaceful = consumers.start()["sync"], False
        while position < RECORDS:
            taken = min(RECORDS - position, chance.dice.randint(5, 30))
            if is_peaceful or not kills:
                position = consumers.take(taken, first=first, stop_at=None)["positions"]["sync"]
            else:
                kills -= 1
                consumers.take(taken, first=first, stop_at="between")
                if victim == "client":
                    position = consumers.start()["sync"]
                else:
                    server.restart()
                    position = consumers.go_on()["positions"]["sync"]
            is_peaceful = not is_peaceful
    finally:
        consumers.kill()
    return consumers.processed()


def test_the_example_with_offsets_in_sqlite_counts_each_order_exactly_once(
    server: Server, tmp_path: Path, chance: Seeded, group: str
) -> None:
    consumers = Consumers(server, tmp_path, group, "database", membership="assigned")
    stops = ["between", "done"] * 3
    chance.dice.shuffle(stops)
    try:
        position = consumers.start()["database"]
        for stop_at in stops:
            taken = chance.dice.randint(5, 30)
            consumers.take(taken, stop_at=stop_at)
            expected = position if stop_at == "between" else position + taken
            position = consumers.start()["database"]
            assert position == expected
        consumers.take(RECORDS - position, stop_at="done")
    finally:
        consumers.kill()
    totals = Totals(consumers.database)
    wanted = Counter(f"customer {number % CUSTOMERS}" for number in range(RECORDS))
    assert totals.orders() == dict(wanted)
    totals.close()
    report("exactly once into SQLite", chance, records=RECORDS, kills=dict(Counter(stops)))
