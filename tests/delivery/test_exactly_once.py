"""Consume, transform and produce in transactions: every record exactly once, whatever is killed when."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from riverlog.testing.history import check, describe, load
from tests.delivery.joining import GROUP_SETTINGS, MEMBERSHIPS
from tests.delivery.reading import as_one_reader, fill, journals, make_topics, read_all
from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.server import Server
from tests.delivery.transform import transformed
from tests.delivery.workers import Worker, until

PARTITIONS = 2
RECORDS = 600
TRANSACTIONAL_ID = "transformer"


@dataclass(frozen=True, slots=True)
class Step:
    """Where in a transaction a kill lands, and what the coordinator must say there."""

    name: str
    stop_at: str
    end: str
    state: str
    is_sent: bool = False
    is_held: bool = False
    outcomes: tuple[str, ...] = ("old",)
    """Where a new client may find the group: at the old offsets, at the new ones, or at either."""


STEPS = (
    Step("begun", "begun", "commit", "Ongoing"),
    Step("produced", "produced", "commit", "Ongoing"),
    Step("offsets sent", "offsets sent", "commit", "Ongoing"),
    Step("commit sent", "ending", "commit", "Ongoing", is_sent=True, outcomes=("old", "new")),
    Step("abort sent", "ending", "abort", "Ongoing", is_sent=True),
    Step("commit decided, no marker", "ending", "commit", "PrepareCommit", is_held=True, outcomes=("new",)),
    Step("abort decided, no marker", "ending", "abort", "PrepareAbort", is_held=True),
)
VICTIMS = ("client", "broker", "both")


@dataclass(slots=True)
class Run:
    """One transformer after the other on one broker, and what was done to them."""

    server: Server
    directory: Path
    membership: str
    chance: Seeded
    workers: list[Worker] = field(default_factory=list)
    committed: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    kills: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    is_exhausted: bool = False

    @property
    def worker(self) -> Worker:
        return self.workers[-1]

    def start_worker(self) -> list[int]:
        """A new process; the offsets at which it finds its group."""
        name = f"w{len(self.workers)}"
        self.workers.append(
            Worker(
                "transform",
                name=name,
                journal=str(self.directory / f"{name}.jsonl"),
                bootstrap=self.server.bootstrap_servers,
                source="source",
                sink="sink",
                partitions=PARTITIONS,
                group="transformers",
                transactional_id=TRANSACTIONAL_ID,
                membership_settings=MEMBERSHIPS[self.membership],
            )
        )
        return list(self.worker.wait_for("ready")["committed"])

    def transact(self) -> None:
        """A transaction in peace, if anything is left."""
        self.worker.tell(records=self.chance.dice.randint(2, 12), stop_at=None, end="commit")
        told = self.worker.wait_for("committed", "exhausted")
        self.is_exhausted = told["at"] == "exhausted"
        self._note_ready()

    def kill(self, step: Step, victim: str) -> None:
        """Open a transaction, go to the step, kill, and see that the group is where it must be."""
        self.worker.tell(records=self.chance.dice.randint(2, 12), stop_at=step.stop_at, end=step.end)
        self.worker.wait_for(step.stop_at)
        if step.is_held:
            self.server.hold_file.touch()
            self.worker.tell()
            until(lambda: self._state() == step.state, f"the coordinator says {step.state}")
        assert self._state() == step.state
        if step.is_sent:
            self._send_to_frozen_broker()
        self.kills[step.name, step.state, victim] += 1
        if victim in ("client", "both"):
            self.worker.kill()
        if victim in ("broker", "both"):
            self.server.kill()
        self.server.hold_file.unlink(missing_ok=True)
        if victim in ("broker", "both"):
            self.server.start()
        elif step.is_sent:
            self.server.thaw()
        self._go_on(step, victim)

    def close(self) -> None:
        for worker in self.workers:
            worker.__exit__(None, None, None)

    def _go_on(self, step: Step, victim: str) -> None:
        if victim == "broker":
            if not (step.is_sent or step.is_held):
                self.worker.tell()
            told = self.worker.wait_for("committed", "aborted")
            if told["at"] == "aborted":
                assert told["committed"] == self.committed, "an aborted transaction moved the group"
            else:
                assert step.end == "commit"
            self._note_ready()
            return
        found = self.start_worker()
        if "new" not in step.outcomes:
            assert found == self.committed, "an aborted transaction moved the group"
        if "old" not in step.outcomes:
            assert found != self.committed, "a committed transaction did not move the group"
        self.committed = found

    def _note_ready(self) -> None:
        self.committed = list(self.worker.wait_for("ready")["committed"])

    def _send_to_frozen_broker(self) -> None:
        self.server.freeze()
        before = self.server.unread_bytes()
        self.worker.tell()
        until(lambda: self.server.unread_bytes() > before, "the end of the transaction is sent")

    def _state(self) -> str:
        return self.server.transaction_state(TRANSACTIONAL_ID)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "broker", *GROUP_SETTINGS, program="tests.delivery.held_markers") as server:
        yield server


def test_each_record_is_transformed_exactly_once_over_kills_in_every_state(
    server: Server, tmp_path: Path, chance: Seeded
) -> None:
    make_topics(server.bootstrap_servers, PARTITIONS, "source", "sink")
    source = [(number % PARTITIONS, str(number)) for number in range(RECORDS)]
    fill(server.bootstrap_servers, "source", source)
    # The consumer protocol takes longer, as its sessions have to run out; `make soak` has both.
    membership = "consumer" if chance.seed % 2 else "classic"
    run = Run(server, tmp_path, membership, chance)
    try:
        run.start_worker()
        deaths = list(itertools.product(STEPS, VICTIMS))
        chance.dice.shuffle(deaths)
        for step, victim in deaths:
            if chance.dice.random() < 0.5:
                run.transact()
            run.kill(step, victim)
        while not run.is_exhausted:
            run.transact()
        run.worker.tell(finish=True)
        run.worker.finish()
    finally:
        run.close()
    reads = read_all(server.bootstrap_servers, "sink", PARTITIONS)
    for partition in range(PARTITIONS):
        found = [each.value.partition("@")[0] for each in reads if each.place.partition == partition]
        assert found == [transformed(value) for at, value in source if at == partition]
    anomalies = check([*load(journals(tmp_path)), *as_one_reader(reads)])
    assert not anomalies, describe(anomalies)
    assert run.kills.total() >= 20
    assert {(step, victim) for step, _, victim in run.kills} == {(s.name, v) for s in STEPS for v in VICTIMS}
    report(
        f"exactly once ({membership} group)",
        chance,
        kills=_table(run.kills),
        records=RECORDS,
        broker_starts=server.starts,
    )


def _table(kills: Counter[tuple[str, str, str]]) -> dict[str, int]:
    table: Counter[str] = Counter()
    for (step, state, _), count in kills.items():
        table[f"{state}: {step}"] += count
    return dict(table)
