"""An embedded broker: in this process, on a thread and event loop of its own.

    with Broker(num_partitions=3) as broker:
        connect_to(broker.bootstrap_servers)

By default it has a temporary directory, removed at the end, and a free port. Any setting of a broker can be
given, by its name in `config` or as a keyword with underscores for dots. It is the broker that `riverlog
serve` runs; `kill` ends it as abruptly as a process can be ended from within. `docs/testing.md` is the guide.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from riverlog.broker.dispatch.door import Door, OpenDoor
from riverlog.broker.dispatch.route import AnyRoute
from riverlog.controller.decisions.refusals import Refusal
from riverlog.controller.decisions.topics import NewTopic
from riverlog.model.clock import Clock
from riverlog.model.config.definitions import BROKER_KEYS
from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.disk import Disk
from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.model.metrics import Metrics
from riverlog.node.node import Node
from riverlog.node.processes.event_loop import loop_factory
from riverlog.testing.faults import Faults
from riverlog.testing.faulty_answering import Faulting
from riverlog.testing.recent_warnings import RECENT_WARNINGS
from riverlog.testing.settable_clock import SettableClock
from riverlog.testing.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from riverlog.testing.records import Content, NodeRecords, Record

T = TypeVar("T")

_DEFAULTS: Mapping[str, object] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # A first grouped message need not wait for members that will not come.
    "group.initial.rebalance.delay.ms": 0,
}
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_TOLD_TIMEOUT_S = 5.0
_WAIT_S = 10.0
_NOT_RUNNING = "The broker is not running. Call start(), or use it in a with statement."


class Broker:
    """Start it with `with`, `async with`, or `start` and `stop`."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        disk: Disk | None = None,
        clock: Clock | None = None,
        door: Callable[[Iterable[AnyRoute], Metrics], Door] = OpenDoor,
        **settings: object,
    ) -> None:
        """`disk`, `clock` and `door` replace the real ones, for tests of what happens when they misbehave.

        Raises `ConfigError` for settings that cannot be, before anything is created.
        """
        if data_dir is None:
            self._temporary: TemporaryDirectory | None = TemporaryDirectory(self._abandon)
            self._data_dir = self._temporary.path
        else:
            self._temporary, self._data_dir = None, os.fspath(data_dir)
        self._given = {
            "log.dirs": self._data_dir,
            **_DEFAULTS,
            **(config or {}),
            **{setting_name(name): value for name, value in settings.items()},
        }
        self._settings = _checked(self._given)
        self._disk = disk
        self._settable_clock = SettableClock(self._run_what_is_due) if clock is None else None
        self._clock = clock
        self._door = door
        self._faulting = Faulting()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        return str(next(iter(self.node.advertised.values())))

    @property
    def data_dir(self) -> str:
        if self._temporary is not None and not self._temporary.exists:
            raise RuntimeError(_NOT_RUNNING)
        return self._data_dir

    @property
    def node(self) -> Node:
        """The running node, for looking into; it belongs to the broker's own thread."""
        if self._node is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._node

    @property
    def faults(self) -> Faults:
        """What it is to do to requests of a test's choice."""
        return self._faulting.faults

    @property
    def clock(self) -> SettableClock:
        """The clock that it lives by, which a test can put forward."""
        if self._settable_clock is None:
            raise RiverlogError(
                "This broker's clock is not the test's to move: it was given one, or it is shared with "
                "other tests, which would lose their records. The fixture riverlog_clock brings a broker of "
                "its own."
            )
        return self._settable_clock

    def start(self) -> Self:
        """Return when requests are taken. Raises what kept the broker from starting."""
        if self._thread is not None:
            raise RuntimeError("The broker is running already.")
        if self._temporary is not None:
            self._temporary.create()
        RECENT_WARNINGS.attach()
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(self._settings, started), name="riverlog-broker", daemon=True
        )
        self._thread.start()
        try:
            started.result(_START_TIMEOUT_S)
        except BaseException:
            self._join()
            self._remove_temporary_dir()
            raise
        # The port is known now, and kept, so that clients find the broker again after a restart.
        listeners = ",".join(f"{name}://{at}" for name, at in self.node.addresses.items())
        self._settings = self._settings.altered({"listeners": listeners}, only={"listeners"})
        return self

    def stop(self) -> None:
        """Shut down cleanly and remove the temporary directory. Stopping twice is no error."""
        self._stop(clean=True)
        self._remove_temporary_dir()

    def restart(self) -> None:
        """Shut down cleanly, or begin again after `kill`, on the same data and the same port."""
        self._stop(clean=True)
        self.start()

    def kill(self) -> None:
        """End abruptly: connections drop, nothing is saved. The data stays for `restart`."""
        self._stop(clean=False)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Return when the topic can be used. Raises `RiverlogError` when it cannot be created."""
        overrides = {key: setting_text(value) for key, value in (config or {}).items()}
        outcome = self.call(lambda node: _create_topic(node, name, partitions, overrides))
        if isinstance(outcome, Refusal):
            raise RiverlogError(f"The topic {name} was not created: {outcome.error.name}: {outcome.message}")

    def produce(
        self,
        topic: str,
        *values: "Content",
        key: "Content" = None,
        partition: int | None = None,
        headers: Mapping[str, "Content"] | None = None,
        timestamp_ms: int | None = None,
    ) -> "list[Record]":
        """Write records, and give them back as they were written. Text stands for its UTF-8.

        They go to `partition`, or where Kafka's own producer takes their key, or by turns. Their timestamp is
        that of the broker's clock. No fault touches them.
        """
        stamp_ms = self._now_ms() if timestamp_ms is None else timestamp_ms
        return self.call(
            lambda node: _records(node).produce(
                topic,
                values,
                key=key,
                partition=partition,
                headers=headers or {},
                timestamp_ms=stamp_ms,
                timeout_s=_WAIT_S,
            )
        )

    def consume(
        self,
        topic: str,
        count: int | None = None,
        timeout: float = _WAIT_S,
        *,
        isolation: str = "read_committed",
    ) -> "list[Record]":
        """The first `count` records of a topic, waited for; without a count all that are there now.

        Raises `TimeoutError`, which says what came, if they are not there in time. No group is joined,
        nothing is committed, and no fault touches it.
        """
        if isolation not in ("read_committed", "read_uncommitted"):
            raise ValueError(f"isolation is read_committed or read_uncommitted, not {isolation!r}.")
        committed_only = isolation == "read_committed"
        return self.call(
            lambda node: _records(node).consume(topic, count, timeout, committed_only=committed_only),
            timeout=timeout + _STOP_TIMEOUT_S,
        )

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """What a consumer group has committed, by topic and partition: `{("orders", 0): 12}`."""
        return self.call(lambda node: _records(node).committed(group, _WAIT_S))

    def account(self) -> str:
        """What a person wants to know when a test has failed: topics, groups, faults, the last warnings."""
        from riverlog.testing.account import account

        lines = self.call(account, timeout=_TOLD_TIMEOUT_S)
        lines += (f"fault {fault!r}" for fault in self.faults)
        lines += RECENT_WARNINGS.of_thread(self._thread.ident if self._thread is not None else None)
        return "\n".join(lines)

    def call(self, work: Callable[[Node], Coroutine[Any, Any, T]], timeout: float = _STOP_TIMEOUT_S) -> T:
        """Run a coroutine on the broker's own event loop and return its result."""
        node, loop = self.node, self._loop
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(work(node), loop).result(timeout)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def __repr__(self) -> str:
        if self._node is None:
            return "<Broker, not running>"
        if threading.current_thread() is self._thread:
            return f"<Broker at {self.bootstrap_servers}>"  # It cannot wait for itself.
        from riverlog.testing.account import summary

        try:
            told = self.call(summary, timeout=_TOLD_TIMEOUT_S)
        except (RiverlogError, RuntimeError, TimeoutError) as error:
            told = f"which does not answer: {error}"
        return f"<Broker at {self.bootstrap_servers}, {told}>"

    def _now_ms(self) -> int:
        clock = self._clock or self._settable_clock
        assert clock is not None
        return clock.wall_ms()

    def _run_what_is_due(self) -> None:
        """A broker that does not run finds it at its next start."""
        if self._node is not None:
            self.call(lambda node: node.run_what_is_due())

    def _run(self, settings: Settings, started: "Future[None]") -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            self._loop = runner.get_loop()
            try:
                node = self._new_node(settings)
                runner.run(node.start())
            except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
                started.set_exception(error)
                return
            self._node = node
            started.set_result(None)
            self._loop.run_forever()

    def _new_node(self, settings: Settings) -> Node:
        settable = self._settable_clock
        node = Node(
            settings,
            disk=self._disk,
            clock=settable or self._clock,
            door=self._door,
            interception=self._faulting,
            transaction_clock=settable.for_transactions if settable is not None else None,
        )
        self._faulting.topic_name = lambda topic_id: node.image.topic_names.get(topic_id)
        self._faulting.count = lambda api: node.metrics.counter("riverlog_requests_total", api=api).add()
        return node

    def _stop(self, *, clean: bool) -> None:
        if self._thread is None or self._node is None or self._loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._node.stop(clean=clean), self._loop).result(_STOP_TIMEOUT_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._join()

    def _abandon(self) -> None:
        """End it while the process ends, when there are no threads to be had for anything orderly."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._join()

    def _join(self) -> None:
        assert self._thread is not None
        self._thread.join(_STOP_TIMEOUT_S)
        self._thread = self._node = self._loop = None

    def _remove_temporary_dir(self) -> None:
        if self._temporary is not None:
            self._temporary.remove()


def _checked(given: Mapping[str, object]) -> Settings:
    """Raises `ConfigError`, also for what shows only when settings are put to use."""
    settings = combine([from_mapping(given, "Broker")])
    ServerConfig.from_settings(settings)
    return settings


def _records(node: Node) -> "NodeRecords":
    from riverlog.testing.records import NodeRecords

    return NodeRecords(node)


async def _create_topic(
    node: Node, name: str, partitions: int, overrides: Mapping[str, str]
) -> Refusal | None:
    [outcome] = await node.controller.create_topics([NewTopic(name, partitions, configs=overrides)])
    return outcome if isinstance(outcome, Refusal) else None


def setting_name(keyword: str) -> str:
    by_keyword = {name.replace(".", "_"): name for name in BROKER_KEYS}
    return by_keyword.get(keyword, keyword.replace("_", "."))


def setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
