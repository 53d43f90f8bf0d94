"""Three brokers and three ZooKeeper servers as processes that are killed; each partition has three replicas.

What a test does to them, and how the replicas are held against each other at the end. Not here: clients.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.model.errors import RiverlogError
from riverlog.records.batch import walk
from riverlog.storage.files.names import HIGH_WATERMARKS
from riverlog.testing import Cluster
from riverlog.testing.cluster_process import ClusterProcess
from riverlog.testing.cluster_records import ClusterRecords
from tests.delivery.control import client_settings
from tests.delivery.workers import until
from tests.zookeeper.ensemble import Ensemble

SESSION_MS: Final = 4000
WAIT_S: Final = 120.0
_COORDINATED: Final = 5
_SETTINGS: Final[dict[str, object]] = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "offsets.topic.num.partitions": _COORDINATED,
    "transaction.state.log.num.partitions": _COORDINATED,
    # So that replicas can be compared byte by byte: each would clean its own log by itself.
    "log.cleaner.enable": False,
    "auto.create.topics.enable": False,
    "log.segment.bytes": 4 * 1024**2,
}


class Replicated:
    """`with Replicated(directory) as replicated`: all of it runs."""

    def __init__(
        self, directory: Path, *settings: str, brokers: int = 3, servers: int = 3, replicas: int = 3
    ) -> None:
        """`settings` are `name=value`."""
        self.ensemble = Ensemble(directory / "zookeeper", servers)
        given = dict(each.split("=", 1) for each in settings)
        self.cluster = Cluster(
            brokers,
            {**_SETTINGS, "default.replication.factor": replicas, **given},
            processes=True,
            zookeeper=self.ensemble.servers,
        )
        self.bootstrap_servers = ""
        self.killed: Counter[str] = Counter()
        self.stopping: int | None = None
        """A broker that may be gone at any moment."""

    def make_topic(self, name: str, partitions: int) -> None:
        self.cluster.create_topic(name, partitions)

    def coordinator_of(self, topic: str, key: str) -> int | None:
        """Who leads the partition of an internal topic in which the key is kept."""
        return self.cluster.leaders(topic)[partition_for(key, _COORDINATED)]

    def kill(self, broker: int, why: str) -> None:
        self.cluster.kill(broker)
        self.killed[why] += 1

    def restart(self, broker: int) -> None:
        self.cluster.brokers[broker].start()

    def leaders_at_others(self, topic: str) -> dict[int, int | None] | None:
        """Who leads, as a broker says that is not being stopped; None where the last one was, just now."""
        stopping = self.stopping
        asked = next(each for each in self.members if each.node_id != stopping)
        try:
            return ClusterRecords(asked.bootstrap_servers, WAIT_S).leaders(topic)
        except (OSError, RuntimeError, RiverlogError):
            if self.stopping == stopping:
                raise
            return None

    def until_led(self, topic: str, *, without: int | None = None) -> None:
        """Return when each partition has a leader, another than this one."""

        def is_led() -> bool:
            leaders = self.cluster.leaders(topic).values()
            return None not in leaders and without not in leaders

        until(is_led, f"somebody else than {without} leads {topic}", WAIT_S)

    def until_in_sync(self) -> None:
        """Return when all replicas of all partitions are in sync, and named as led by somebody."""
        with AdminClient(client_settings(self.cluster.bootstrap_servers)) as admin:

            def behind() -> list[str]:
                topics = admin.list_topics(timeout=30).topics
                return [
                    f"{name}-{index} led by {each.leader}: {each.isrs} of {each.replicas}"
                    for name, topic in topics.items()
                    for index, each in topic.partitions.items()
                    if len(each.isrs) < len(each.replicas) or each.leader < 0
                ]

            until(lambda: not behind(), "all replicas are in sync", WAIT_S)

    def admin_refusal(self, timeout_s: float) -> str:
        """What a topic that cannot be made is answered with."""
        settings = client_settings(self.cluster.bootstrap_servers)
        with AdminClient(settings) as admin:
            wanted = NewTopic("while-zookeeper-is-away", 1, 3)
            [made] = admin.create_topics([wanted], operation_timeout=timeout_s, request_timeout=60).values()
            error = made.exception(90)
            return "" if error is None else str(error)

    def verify_against_each_other(self) -> None:
        """As an operator would: by `riverlog log verify --against`."""
        first, *others = self.members
        for other in others:
            command = [sys.executable, "-m", "riverlog", "log", "verify", first.data_dir]
            done = subprocess.run(
                [*command, "--against", other.bootstrap_servers], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    def assert_equal_files(self, *finished: str) -> int:
        """Stop all brokers, and return how many bytes of their logs were compared: up to the lowest high
        watermark, and of the topics that are `finished` to the end. Coordinators write also at the last."""
        members = self.members
        self.stop_brokers()
        replicas = [_logs(Path(each.data_dir)) for each in members]
        different, compared = [], 0
        for name in sorted({name for each in replicas for name in each}):
            found = [each.get(name, NO_LOG) for each in replicas]
            committed = min(each.high_watermark for each in found)
            contents = {each.below(committed) for each in found}
            is_finished = name.rpartition("-")[0] in finished
            if len(contents) > 1 or (is_finished and len({each.content for each in found}) > 1):
                different.append(f"{name}: {[(len(each.content), each.high_watermark) for each in found]}")
            compared += len(next(iter(contents)))
        assert not different, f"replicas differ: {different}"
        return compared

    def stop_brokers(self) -> None:
        for each in self.members:
            each.stop_process()

    @property
    def members(self) -> list[ClusterProcess]:
        return [each for each in self.cluster.brokers.values() if isinstance(each, ClusterProcess)]

    def assert_no_bugs_told(self, allowed: Iterable[str] = ()) -> None:
        """No traceback, and no error that is not a part of what was done to the brokers."""
        for each in self.members:
            told = each.errors()
            assert "Traceback" not in told, told[-6000:]
            errors = [line for line in told.splitlines() if re.search(r"\bERROR\b", line)]
            strange = [line for line in errors if not any(text in line for text in allowed)]
            assert not strange, "\n".join(strange[-20:])

    def __enter__(self) -> Self:
        self.ensemble.__enter__()
        try:
            self.cluster.start()
        except BaseException:
            self.ensemble.__exit__(None, None, None)
            raise
        self.bootstrap_servers = self.cluster.bootstrap_servers
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for each in self.members:
                print(f"--- broker {each.node_id}\n{each.errors()[-6000:]}")  # noqa: T201 - for the failure
                each.kill()
        self.cluster.stop()
        self.ensemble.__exit__(kind, error, trace)


class StoredLog(NamedTuple):
    content: bytes
    """Its segments joined."""
    high_watermark: int

    def below(self, offset: int) -> bytes:
        """The batches before it."""
        end = 0
        for position, header in walk(self.content):
            if header.base_offset >= offset:
                break
            end = position + header.size_bytes
        return self.content[:end]


NO_LOG: Final = StoredLog(b"", 0)


def _logs(directory: Path) -> dict[str, StoredLog]:
    """By the names of their directories. The watermarks are those of a broker that was stopped cleanly."""
    lines = (directory / HIGH_WATERMARKS).read_text().splitlines()[2:]
    watermarks = {f"{topic}-{index}": int(offset) for topic, index, offset in map(str.split, lines)}
    found: dict[str, bytes] = {}
    for path in sorted(directory.glob("*/*.log")):
        found[path.parent.name] = found.get(path.parent.name, b"") + path.read_bytes()
    return {name: StoredLog(found.get(name, b""), watermarks.get(name, 0)) for name in found}
