"""A cluster of brokers for tests, in this process or as processes of its own.

    with Cluster(brokers=3) as cluster:
        connect_to(cluster.bootstrap_servers)
        cluster.kill(1)

Each broker has a thread and an event loop of its own, all share their metadata as the brokers of one host do
(`riverlog serve --brokers`). With `processes=True` they are processes. `docs/testing.md` and
`docs/cluster.md` are the guides.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from textwrap import indent
from types import TracebackType
from typing import Final, Protocol, Self
from uuid import uuid4

from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import replication_settings
from riverlog.model.network import Address
from riverlog.testing.broker import setting_name, setting_text
from riverlog.testing.cluster_process import ClusterProcess
from riverlog.testing.cluster_records import ClusterRecords, address_of, brokers_known_to
from riverlog.testing.records import Content, Record
from riverlog.testing.temporary_directory import TemporaryDirectory
from riverlog.testing.zookeeper import ZooKeeperServer

_WAIT_S: Final = 10.0
_FORM_S: Final = 60.0
_LOOK_S: Final = 0.002
_SESSION_MS: Final = 3000
"""A broker that is killed is missed sooner than by default."""
_DEFAULTS: Final[Mapping[str, object]] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": 0,
    # Few, so that a first use need not make fifty.
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
}


class Member(Protocol):
    """A broker of the cluster, however it runs."""

    node_id: int

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def is_paused(self) -> bool: ...

    def start(self) -> object: ...

    def stop(self) -> None: ...

    def restart(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def cut(self, unreachable: Collection[Address]) -> None: ...

    def account(self) -> str: ...


class Cluster:
    """Start it with `with`, or `start` and `stop`. Brokers have the numbers 1, 2, 3."""

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, object] | None = None,
        *,
        processes: bool = False,
        zookeeper: bool | str = False,
        racks: Sequence[str] = (),
        replication_factor: int = 1,
        **settings: object,
    ) -> None:
        """Settings are those of every broker, as for `Broker`. `zookeeper` is for processes: True starts a
        server (Java and PySpark are needed), or the address of one that runs, in which the cluster has a
        path of its own. `racks` has the rack of each broker. Topics get `replication_factor` replicas where
        nobody says how many; the internal ones have three, or as many as there are brokers, unless a setting
        says otherwise."""
        if brokers < 1:
            raise ValueError(f"A cluster has at least one broker, not {brokers}.")
        if racks and len(racks) != brokers:
            raise ValueError(f"Give as many racks as there are brokers: {brokers}, not {len(racks)}.")
        if not 1 <= replication_factor <= brokers:
            raise ValueError(
                f"{brokers} brokers have room for 1 to {brokers} replicas, not {replication_factor}."
            )
        if zookeeper and not processes:
            raise ValueError("A cluster with ZooKeeper is one of processes: add processes=True.")
        self._temporary = TemporaryDirectory(self._abandon)
        self._zookeeper = ZooKeeperServer(f"{self._temporary.path}/zookeeper") if zookeeper is True else None
        given = {
            **_DEFAULTS,
            **replication_settings(brokers),
            "default.replication.factor": replication_factor,
            **(config or {}),
            **{setting_name(name): value for name, value in settings.items()},
        }
        if isinstance(zookeeper, str):
            given["zookeeper.connect"] = zookeeper if "/" in zookeeper else f"{zookeeper}/{uuid4().hex[:12]}"
        elif self._zookeeper is not None:
            # The address is known when the server runs.
            given = {"zookeeper.session.timeout.ms": _SESSION_MS, **given, "zookeeper.connect": ""}
        make = _process if processes else _thread
        self.brokers: dict[int, Member] = {
            node_id: make(
                node_id,
                self._temporary.path,
                {**given, "broker.rack": racks[node_id - 1]} if racks else given,
            )
            for node_id in range(1, brokers + 1)
        }

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers that run."""
        running = [each.bootstrap_servers for each in self.brokers.values() if each.is_running]
        if not running:
            raise RuntimeError("No broker is running. Call start(), or use the cluster in a with statement.")
        return ",".join(running)

    @property
    def controller(self) -> int:
        """The number of the broker that is the controller, waited for."""
        return self._agreed()

    def start(self) -> Self:
        """Return when all brokers take requests and know each other."""
        self._temporary.create()
        try:
            self._start_zookeeper()
            with ThreadPoolExecutor(len(self.brokers)) as starters:
                list(starters.map(lambda each: each.start(), self.brokers.values()))
            self._agreed()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all brokers that run and remove the temporary directory. Stopping twice is no error."""
        with ThreadPoolExecutor(len(self.brokers)) as stoppers:
            list(stoppers.map(lambda each: each.stop(), self.brokers.values()))
        if self._zookeeper is not None:
            self._zookeeper.stop()
        self._temporary.remove()

    def kill(self, broker: int) -> None:
        """End a broker abruptly: nothing is flushed, answered or closed. Its data stays for `restart`."""
        self._member(broker).kill()

    def pause(self, broker: int) -> None:
        """Hold a broker where it is, until `resume`. Others do not take it for dead."""
        self._member(broker).pause()

    def resume(self, broker: int) -> None:
        self._member(broker).resume()

    def restart(self, broker: int) -> None:
        """Stop a broker cleanly and start it, or start it after `kill`; on the same data and the same port.

        Returns when the brokers that run know each other."""
        self._member(broker).restart()
        self._agreed()

    def cut(self, some: Collection[int], others: Collection[int]) -> None:
        """Let no broker of one side reach one of the other, until `heal`; clients reach all of them, and all
        brokers reach the metadata."""
        for side, opposite in ((some, others), (others, some)):
            addresses = [address_of(self._member(each).bootstrap_servers) for each in opposite]
            for broker in side:
                self._member(broker).cut(addresses)

    def heal(self) -> None:
        """Undo every cut."""
        for each in self.brokers.values():
            each.cut(())

    def topics(self) -> list[str]:
        """Names of the topics, but the internal ones."""
        return self._records().topics()

    def leaders(self, topic: str) -> dict[int, int | None]:
        """Which broker leads each partition; None while the one that could is away."""
        return self._records().leaders(topic)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        *,
        replication_factor: int = -1,
    ) -> None:
        """Return when the topic can be used. Raises `RiverlogError` when it cannot be created.

        -1 partitions or replicas are as many as the brokers are set to."""
        configs = {key: setting_text(value) for key, value in (config or {}).items()}
        self._records().create_topic(name, partitions, configs, replication_factor)

    def produce(
        self,
        topic: str,
        *values: Content,
        key: Content = None,
        partition: int | None = None,
        headers: Mapping[str, Content] | None = None,
        timestamp_ms: int | None = None,
    ) -> list[Record]:
        """Write records to the brokers that lead, and give them back as they were written, as `Broker`
        does."""
        stamp_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        return self._records().produce(
            topic, values, key=key, partition=partition, headers=headers or {}, timestamp_ms=stamp_ms
        )

    def consume(
        self,
        topic: str,
        count: int | None = None,
        timeout: float = _WAIT_S,
        *,
        isolation: str = "read_committed",
    ) -> list[Record]:
        """The first `count` records of a topic, waited for; without a count all that are there now.

        Raises `TimeoutError`, which says what came, if they are not there in time."""
        if isolation not in ("read_committed", "read_uncommitted"):
            raise ValueError(f"isolation is read_committed or read_uncommitted, not {isolation!r}.")
        return self._records().consume(topic, count, timeout, committed_only=isolation == "read_committed")

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """What a consumer group has committed, by topic and partition: `{("orders", 0): 12}`."""
        return self._records().committed(group)

    def account(self) -> str:
        """What a person wants to know when a test has failed: the account of each broker that is awake, and
        which are not. Never raises for what a broker does."""
        return "\n".join(_account_of(each) for each in self.brokers.values())

    def __getitem__(self, broker: int) -> Member:
        return self._member(broker)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _member(self, broker: int) -> Member:
        if broker not in self.brokers:
            raise RiverlogError(
                f"There is no broker {broker}; there are {', '.join(map(str, self.brokers))}."
            )
        return self.brokers[broker]

    def _records(self) -> ClusterRecords:
        awake = [each for each in self.brokers.values() if each.is_running and not each.is_paused]
        if not awake:
            raise RuntimeError("No broker is running that could answer.")
        return ClusterRecords(",".join(each.bootstrap_servers for each in awake), _WAIT_S)

    def _agreed(self) -> int:
        """The controller, when all brokers that can answer name the same one and each other."""
        deadline_s = time.monotonic() + _FORM_S
        while True:
            awake = [each for each in self.brokers.values() if each.is_running and not each.is_paused]
            running = {each.node_id for each in self.brokers.values() if each.is_running}
            told = [brokers_known_to(each.bootstrap_servers, _WAIT_S) for each in awake]
            [controller, *more] = {controller for _, controller in told} or {None}
            if controller is not None and not more and all(known == running for known, _ in told):
                return controller
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"The brokers do not agree on a cluster: {told}.")
            time.sleep(_LOOK_S)

    def _start_zookeeper(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.start()
            for each in self.brokers.values():
                assert isinstance(each, ClusterProcess)
                each.settings["zookeeper.connect"] = self._zookeeper.connect

    def _abandon(self) -> None:
        for each in self.brokers.values():
            each.kill()
        if self._zookeeper is not None:
            self._zookeeper.stop()


def _account_of(broker: Member) -> str:
    name = f"broker {broker.node_id}"
    if not broker.is_running:
        return f"{name} is not running"
    if broker.is_paused:
        return f"{name} is paused"
    try:
        return f"{name} at {broker.bootstrap_servers}\n{indent(broker.account(), '  ')}"
    except Exception as error:  # noqa: BLE001 - whatever keeps it from telling, others may tell
        return f"{name} does not tell: {error!r}"


def _thread(node_id: int, directory: str, settings: dict[str, object]) -> Member:
    from riverlog.testing.cluster_broker import ClusterBroker

    return ClusterBroker(node_id, directory, settings)


def _process(node_id: int, directory: str, settings: dict[str, object]) -> Member:
    return ClusterProcess(node_id, directory, settings)
