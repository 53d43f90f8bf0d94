"""An embedded broker: in this process, on a thread and event loop of its own.

    with Broker(num_partitions=3) as broker:
        connect_to(broker.bootstrap_servers)

By default it has a temporary directory, removed at the end, and a free port. Any setting of a broker can be
given, by its name in `config` or as a keyword with underscores for dots. It is the broker that `riverlog
serve` runs; `kill` ends it as abruptly as a process can be ended from within.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from riverlog.controller.decisions import Refusal
from riverlog.controller.topics import NewTopic
from riverlog.model.clock import Clock
from riverlog.model.config.definitions import BROKER_KEYS
from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.disk import Disk
from riverlog.model.errors import RiverlogError
from riverlog.node.node import Node
from riverlog.node.serve import loop_factory

T = TypeVar("T")

_DEFAULTS: Mapping[str, object] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # A first grouped message need not wait for members that will not come.
    "group.initial.rebalance.delay.ms": 0,
}
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0


class Broker:
    """Start it with `with`, `async with`, or `start` and `stop`."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data_dir: str | None = None,
        disk: Disk | None = None,
        clock: Clock | None = None,
        **settings: object,
    ) -> None:
        """`disk` and `clock` replace the real ones, for tests of what happens when they misbehave."""
        self._given = {
            **_DEFAULTS,
            **(config or {}),
            **{_key_of(name): value for name, value in settings.items()},
        }
        self._chosen_dir = data_dir
        self._disk = disk
        self._clock = clock
        self._temporary_dir: str | None = None
        self._listeners: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        return str(next(iter(self.node.advertised.values())))

    @property
    def data_dir(self) -> str:
        directory = self._chosen_dir or self._temporary_dir
        assert directory is not None, "the broker has no data directory before it is started"
        return directory

    @property
    def node(self) -> Node:
        """The running node, for looking into; it belongs to the broker's own thread."""
        if self._node is None:
            raise RuntimeError("The broker is not running. Call start(), or use it in a with statement.")
        return self._node

    def start(self) -> Self:
        """Return when requests are taken. Raises what kept the broker from starting."""
        if self._thread is not None:
            raise RuntimeError("The broker is running already.")
        if self._chosen_dir is None and self._temporary_dir is None:
            self._temporary_dir = tempfile.mkdtemp(prefix="riverlog-")
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(self._settings(), started), name="riverlog-broker", daemon=True
        )
        self._thread.start()
        try:
            started.result(_START_TIMEOUT_S)
        except BaseException:
            self._join()
            self._remove_temporary_dir()
            raise
        self._listeners = ",".join(f"{name}://{at}" for name, at in self.node.addresses.items())
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
        overrides = {key: _text(value) for key, value in (config or {}).items()}
        outcome = self.call(lambda node: _create_topic(node, name, partitions, overrides))
        if isinstance(outcome, Refusal):
            raise RiverlogError(f"The topic {name} was not created: {outcome.error.name}: {outcome.message}")

    def call(self, work: Callable[[Node], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the broker's own event loop and return its result."""
        assert self._loop is not None, "the broker is not running"
        return asyncio.run_coroutine_threadsafe(work(self.node), self._loop).result(_STOP_TIMEOUT_S)

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

    def _settings(self) -> Settings:
        """After the first start the port is known and kept, so that clients find the broker again."""
        given = {"log.dirs": self.data_dir, **self._given}
        if self._listeners is not None:
            given["listeners"] = self._listeners
        return combine([from_mapping(given, "Broker")])

    def _run(self, settings: Settings, started: "Future[None]") -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            self._loop = runner.get_loop()
            try:
                node = Node(settings, disk=self._disk, clock=self._clock)
                runner.run(node.start())
            except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
                started.set_exception(error)
                return
            self._node = node
            started.set_result(None)
            self._loop.run_forever()

    def _stop(self, *, clean: bool) -> None:
        if self._thread is None or self._node is None or self._loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._node.stop(clean=clean), self._loop).result(_STOP_TIMEOUT_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._join()

    def _join(self) -> None:
        assert self._thread is not None
        self._thread.join(_STOP_TIMEOUT_S)
        self._thread = self._node = self._loop = None

    def _remove_temporary_dir(self) -> None:
        if self._temporary_dir is not None:
            shutil.rmtree(self._temporary_dir, ignore_errors=True)
            self._temporary_dir = None


async def _create_topic(
    node: Node, name: str, partitions: int, overrides: Mapping[str, str]
) -> Refusal | None:
    [outcome] = await node.controller.create_topics([NewTopic(name, partitions, configs=overrides)])
    return outcome if isinstance(outcome, Refusal) else None


def _key_of(keyword: str) -> str:
    by_keyword = {name.replace(".", "_"): name for name in BROKER_KEYS}
    return by_keyword.get(keyword, keyword.replace("_", "."))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
