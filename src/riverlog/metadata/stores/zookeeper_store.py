"""The metadata store of a cluster: a ZooKeeper ensemble behind the `MetadataStore` port.

What is promised beyond ZooKeeper: the lease is reckoned here, from when the last request that was answered
was sent. A session whose lease is over while nobody answers is given up, and a new one begun, even if nobody
says that it is over: an ensemble that has lost its data would refuse the old one for ever. And no session
shows an older state than one before it: `sync` says so. Reads are tried again after a reconnect, writes are
not.

Not here: kazoo (`kazoo_session`); what a server is that does not answer (`zookeeper_servers`).
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Self, TypeVar

from riverlog.metadata import layout
from riverlog.metadata.multi_read import in_requests
from riverlog.metadata.stores.kazoo_session import KazooSession, Node, NotAnsweredError
from riverlog.metadata.stores.watches import Watches, topmost
from riverlog.metadata.stores.zookeeper_servers import ConnectString, explain_silence
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import (
    Delete,
    Operation,
    OutcomeUnknownError,
    SessionLostError,
    SessionState,
    Set,
    TooLargeError,
    UnreachableError,
    Versioned,
    WatchEvent,
    Watching,
    WentBackError,
    bytes_of,
)

_logger = logging.getLogger(__name__)
T = TypeVar("T")

_MULTI_BYTES_MAX: Final = 1_000_000
"""ZooKeeper takes 1,048,575 (`jute.maxbuffer`)."""
_HEARTBEATS: Final = 3
"""In the time of a session."""
_SILENCE_S: Final = 2.0
_RETRY_S: Final = 0.02
_ITS_OWN: Final = "zookeeper"
"""A node of the ensemble's root which is ZooKeeper's."""


class ZooKeeperStore:
    def __init__(self, connect: ConnectString, session_timeout_s: float, thread: Executor) -> None:
        """Use `open`."""
        self._connect = connect
        self._session_timeout_s = session_timeout_s
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._watches = Watches()
        self._state = SessionState.SUSPENDED
        self._connected = asyncio.Event()
        self._lease_until_s = -math.inf
        self._seen_transaction = 0
        self._changed: list[str] = []
        self._writes = 0
        self._is_closed = False
        self._ending: set[asyncio.Task[None]] = set()
        self._session = self._begin()
        self._heart = asyncio.create_task(self._beat(), name="zookeeper heartbeat")

    @classmethod
    async def open(
        cls,
        connect: ConnectString,
        *,
        session_timeout_s: float,
        connection_timeout_s: float | None,
        thread: Executor,
    ) -> Self:
        """Wait for the ensemble, without a limit if none is given, and begin a session. `thread` runs one
        thing at a time, and ours only. Raises `UnreachableError`, with what is known of each server."""
        store = cls(connect, session_timeout_s, thread)
        try:
            await store._wait_for_the_first(connection_timeout_s)
            await store._session.ensure(connect.chroot or "/")
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def lease_until_s(self) -> float:
        return self._lease_until_s

    @property
    def multi_bytes_max(self) -> int:
        return _MULTI_BYTES_MAX

    async def sync(self) -> None:
        session = await self._read(_sync_at(self._path("/")))
        if session.last_transaction < self._seen_transaction:
            raise WentBackError(
                f"ZooKeeper at {self._connect} is older than it was: it is at transaction "
                f"{session.last_transaction:#x}, and {self._seen_transaction:#x} was seen. It has lost data "
                "or was restored from a backup. Restart the brokers once it is as it should be."
            )

    async def get(self, path: str) -> Versioned | None:
        (node,) = await self._nodes([path])
        return None if node is None else node.content

    async def children(self, path: str) -> list[str]:
        return (await self._children([path]))[0]

    async def _children(self, paths: Sequence[str]) -> list[list[str]]:
        there = [self._path(path) for path in paths]
        found = await self._read(lambda session: session.children(there))
        return [
            [name for name in names if path != "/" or name != _ITS_OWN]
            for path, names in zip(there, found, strict=True)
        ]

    async def tree(self, path: str) -> dict[str, Versioned]:
        """Not of one moment: what changes meanwhile is told to those who watch."""
        found: dict[str, Versioned] = {}
        level = [path]
        while level:
            parents: list[str] = []
            below: list[str] = []
            for some in in_requests(level, self._connect.chroot):
                for each, node in zip(some, await self._nodes(some), strict=True):
                    if node is None:
                        continue
                    found[each] = node.content
                    if node.child_count == 1 and layout.is_partition(each):
                        below.append(layout.state_of(each))  # A third of all questions about many of them.
                    elif node.child_count:
                        parents.append(each)
            level = below
            for some in in_requests(parents, self._connect.chroot):
                for each, names in zip(some, await self._children(some), strict=True):
                    level += [f"{each.rstrip('/')}/{name}" for name in names]
        return found

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        _check_size(Set(path, data))
        made = await self._write(
            lambda session: session.create(self._path(path), data, ephemeral=ephemeral, sequential=sequential)
        )
        return made[len(self._connect.chroot) :]

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        _check_size(Set(path, data))
        return await self._write(lambda session: session.set(self._path(path), data, expected_version))

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self.multi([Delete(path, expected_version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        if bytes_of(operations) > _MULTI_BYTES_MAX:
            raise _too_large(bytes_of(operations))
        there: list[Operation] = [each._replace(path=self._path(each.path)) for each in operations]
        if there:
            await self._write(lambda session: session.multi(there))

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._heart.cancel()
        await asyncio.gather(self._heart, *self._ending, return_exceptions=True)
        await self._session.stop(self._thread)
        self._enter(SessionState.LOST)

    # Sessions.

    def _begin(self) -> KazooSession:
        session: KazooSession

        def on_state(state: SessionState) -> None:
            if session is self._session and not self._is_closed:
                self._on_state(state)

        def on_change(path: str) -> None:
            if session is self._session:
                self._on_change(path)

        session = KazooSession(
            self._connect.servers, self._session_timeout_s, on_state=on_state, on_change=on_change
        )
        return session

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._on_task(self._come_back(self._session))
        elif state is SessionState.SUSPENDED:
            if self._state is not SessionState.LOST:
                self._enter(SessionState.SUSPENDED)
        else:
            self._lose()

    async def _come_back(self, session: KazooSession) -> None:
        """Changes are heard of from before anybody reads."""
        sent_s = self._loop.time()
        try:
            await session.watch_all(self._path("/"))
        except NotAnsweredError:
            return  # The connection is lost already; kazoo looks for the next one.
        if session is self._session and not self._is_closed:
            self._answered(session, sent_s)
            self._enter(SessionState.CONNECTED)

    def _lose(self) -> None:
        """The session is over, or nobody can say that it is not: begin a new one."""
        old = self._session
        self._changed.clear()
        self._enter(SessionState.LOST)
        self._on_task(old.stop(self._thread))
        if not self._is_closed:
            self._session = self._begin()

    def _enter(self, state: SessionState) -> None:
        if state is self._state:
            return
        is_well = self._is_closed or state is SessionState.CONNECTED
        _logger.log(
            logging.INFO if is_well else logging.WARNING,
            "The session with ZooKeeper at %s is %s",
            self._connect,
            state.value,
        )
        self._state = state
        if state is SessionState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
            if state is SessionState.LOST:
                self._lease_until_s = -math.inf
        self._watches.notify_session(state)

    async def _beat(self) -> None:
        """Keep the lease while the ensemble answers, and give the session up when it is over."""
        while True:
            await asyncio.sleep(self._session.timeout_s / _HEARTBEATS)
            if self._state is SessionState.CONNECTED:
                self._on_task(self._ask_for_life())
            elif (
                self._state is SessionState.SUSPENDED and -math.inf < self._lease_until_s < self._loop.time()
            ):
                self._lose()

    async def _ask_for_life(self) -> None:
        try:
            await self._ask(lambda session: session.read([self._path("/")]))
        except (NotAnsweredError, SessionLostError):
            return  # What has become of the session is told by itself.

    def _on_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _wait_for_the_first(self, timeout_s: float | None) -> None:
        until_s = math.inf if timeout_s is None else self._loop.time() + timeout_s
        told = ""
        while not self._connected.is_set():
            left_s = until_s - self._loop.time()
            try:
                await asyncio.wait_for(self._connected.wait(), max(0.0, min(_SILENCE_S, left_s)))
            except TimeoutError:
                why = await explain_silence(self._connect)
                if not why.may_change or left_s <= _SILENCE_S:
                    raise UnreachableError(f"ZooKeeper cannot be reached. {why.text}") from None
                if why.text != told:
                    _logger.warning("Waiting for ZooKeeper. %s", why.text)
                    told = why.text

    # Changes.

    def _on_change(self, path: str) -> None:
        self._changed.append(path[len(self._connect.chroot) :] or "/")
        if len(self._changed) == 1 and not self._writes:
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        changed, self._changed = self._changed, []
        self._watches.notify(topmost(changed))

    # Requests.

    async def _nodes(self, paths: Sequence[str]) -> list[Node | None]:
        there = [self._path(path) for path in paths]
        return await self._read(lambda session: session.read(there))

    async def _read(self, ask: Callable[[KazooSession], Awaitable[T]]) -> T:
        until_s = self._loop.time() + self._session_timeout_s
        first = self._session
        while True:
            await self._wait_for_connection(first, until_s)
            try:
                return await self._ask(ask)
            except NotAnsweredError as error:
                if self._loop.time() > until_s:
                    raise _unreachable(self._connect) from error
                await asyncio.sleep(_RETRY_S)

    async def _write(self, ask: Callable[[KazooSession], Awaitable[T]]) -> T:
        await self._wait_for_connection(self._session, self._loop.time() + self._session_timeout_s)
        self._writes += 1
        try:
            return await self._ask(ask)
        except NotAnsweredError as error:
            raise OutcomeUnknownError("ZooKeeper has not answered a write.") from error
        finally:
            self._writes -= 1
            self._tell()

    async def _wait_for_connection(self, session: KazooSession, until_s: float) -> None:
        if not self._connected.is_set() and not self._is_closed and session is self._session:
            try:
                await asyncio.wait_for(self._connected.wait(), max(0.0, until_s - self._loop.time()))
            except TimeoutError:
                raise _unreachable(self._connect) from None
        if self._is_closed or session is not self._session:
            raise SessionLostError("The session with ZooKeeper has ended.")

    async def _ask(self, ask: Callable[[KazooSession], Awaitable[T]]) -> T:
        session, sent_s = self._session, self._loop.time()
        answer = await ask(session)
        self._answered(session, sent_s)
        return answer

    def _answered(self, session: KazooSession, sent_s: float) -> None:
        if session is self._session and not self._is_closed:
            self._lease_until_s = max(self._lease_until_s, sent_s + session.timeout_s)
            self._seen_transaction = max(self._seen_transaction, session.last_transaction)

    def _path(self, path: str) -> str:
        return self._connect.chroot + path if path != "/" else self._connect.chroot or "/"


def _sync_at(path: str) -> Callable[[KazooSession], Awaitable[KazooSession]]:
    async def sync(session: KazooSession) -> KazooSession:
        await session.sync(path)
        return session

    return sync


def _check_size(operation: Operation) -> None:
    if bytes_of([operation]) > _MULTI_BYTES_MAX:
        raise _too_large(bytes_of([operation]))


def _too_large(size: int) -> TooLargeError:
    return TooLargeError(
        f"A write of {size} bytes is more than the {_MULTI_BYTES_MAX} that ZooKeeper takes at once."
    )


def _unreachable(connect: ConnectString) -> UnreachableError:
    return UnreachableError(f"ZooKeeper at {connect} does not answer.")
