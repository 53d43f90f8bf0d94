"""kazoo on the event loop: the only module that imports it.

One `KazooSession` is one session with a ZooKeeper ensemble, from the first connection to its end; it begins
no second one. kazoo runs threads of its own: what they say comes to the event loop in the order in which the
server said it, so that a change is heard of before the answer to whoever made it. Paths are ZooKeeper's own.

Three things kazoo lacks are added here (see `docs/adr/0017-zookeeper-by-kazoo.md`): a persistent recursive
watch (ZooKeeper 3.6), which is one more request and a look at every watch event; many reads in one request
(3.6, `multi_read`); and the time-out that the server agreed to.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Watch, write_string

from riverlog.metadata.layout import parent
from riverlog.metadata.multi_read import BYTES_MAX, QUESTIONS_MAX, Answer, MultiRead, Question, Refused
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionLostError,
    SessionState,
    Set,
    StoreError,
    Versioned,
)

_STATES: Final = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}
_REFUSALS: Final[dict[type[BaseException], type[StoreError]]] = {
    exceptions.NodeExistsError: NodeExistsError,
    exceptions.NoNodeError: NoNodeError,
    exceptions.BadVersionError: BadVersionError,
    exceptions.NotEmptyError: NotEmptyError,
    exceptions.SessionExpiredError: SessionLostError,
}
_NOT_ANSWERED: Final = (
    exceptions.ConnectionLoss,
    exceptions.ConnectionClosedError,
    exceptions.OperationTimeoutError,
    exceptions.SessionMovedError,
)
_ANY_VERSION: Final = -1
_PERSISTENT_RECURSIVE: Final = 1
_READ_SHARE: Final = 2 / 3
"""Of the session's time-out, which kazoo waits for an answer."""


class NotAnsweredError(StoreError):
    """The connection was lost before an answer came."""


class Node(NamedTuple):
    content: Versioned
    child_count: int


class _Asked(NamedTuple):
    """Questions that fit into one request."""

    questions: Sequence[Question]
    answers: "asyncio.Future[list[Answer]]"
    size_bytes: int


class KazooSession:
    def __init__(
        self,
        servers: str,
        timeout_s: float,
        *,
        on_state: Callable[[SessionState], None],
        on_change: Callable[[str], None],
    ) -> None:
        """`servers` as in `host:port,host:port`. The callbacks run on the event loop, until `stop`."""
        self.timeout_s = timeout_s
        """As asked for; as the server has agreed to, once it is connected."""
        self._loop = asyncio.get_running_loop()
        self._on_state, self._on_change = on_state, on_change
        self._pending: set[asyncio.Future[Any]] = set()
        self._to_ask: list[_Asked] = []
        self._is_stopped = False
        logger = logging.getLogger("riverlog.kazoo")
        logger.setLevel(logging.CRITICAL)  # Whoever holds this says what is worth saying.
        self._client = KazooClient(
            servers,
            timeout=timeout_s,
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 1.0},
            logger=logger,
        )
        self._client._connection = _Connection(self, self._client)
        self._client.add_listener(self._hear_state)
        self._client.start_async()

    @property
    def last_transaction(self) -> int:
        """The latest that the server knew of when it answered last."""
        return int(self._client.last_zxid)

    async def stop(self, thread: Executor) -> None:
        """End the session if it can be told to the server; whatever waits for an answer gets none."""
        self._is_stopped = True
        for future in list(self._pending):
            if not future.done():
                future.set_exception(NotAnsweredError("The session with ZooKeeper is over."))
        await self._loop.run_in_executor(thread, self._stop)

    def _stop(self) -> None:
        try:
            self._client.stop()
        except exceptions.WriterNotClosedException:
            return  # It waits for a server, and ends with the process at the latest.
        self._client.close()

    async def watch_all(self, path: str) -> None:
        """Hear of every change at or below a path, until the connection is lost."""

        await self._ask(lambda: self._call_server(_AddWatch(path)))

    async def read(self, paths: Sequence[str]) -> list[Node | None]:
        """What these nodes hold, no more of them than fit into a request (`in_requests`)."""
        answers = await self._ask_together([Question(path) for path in paths])
        return [None if answer is None else self._node(answer) for answer in answers]

    def _node(self, answer: Any) -> Node:
        data, version, created, changed, owner, child_count = answer
        is_mine = owner != 0 and owner == self._client._session_id
        return Node(Versioned(data, version, created, changed, is_mine), child_count)

    async def children(self, paths: Sequence[str]) -> list[list[str]]:
        """The names below each of these nodes, none where it is not there; of so many as `read`."""
        answers = await self._ask_together([Question(path, for_children=True) for path in paths])
        return [sorted(answer or ()) for answer in answers]

    async def sync(self, path: str) -> None:
        await self._ask(lambda: self._client.sync_async(path))
        await self._ask(lambda: self._client.exists_async(path))

    async def create(self, path: str, data: bytes, *, ephemeral: bool, sequential: bool) -> str:
        while True:
            try:
                made = await self._ask(
                    lambda: self._client.create_async(path, data, ephemeral=ephemeral, sequence=sequential)
                )
                return str(made)
            except NoNodeError:
                await self.ensure(parent(path))

    async def ensure(self, path: str) -> None:
        """Make a node and the parents it lacks, if it is not there."""
        try:
            await self.create(path, b"", ephemeral=False, sequential=False)
        except NodeExistsError:
            return

    async def set(self, path: str, data: bytes, expected_version: int | None) -> int:
        stat = await self._ask(lambda: self._client.set_async(path, data, _version(expected_version)))
        return int(stat.version)

    async def multi(self, operations: Sequence[Operation]) -> None:
        transaction = self._client.transaction()
        for each in operations:
            match each:
                case Create(path, data, ephemeral):
                    transaction.create(path, data, ephemeral=ephemeral)
                case Set(path, data, expected):
                    transaction.set_data(path, data, _version(expected))
                case Delete(path, expected):
                    transaction.delete(path, _version(expected))
                case Check(path, expected):
                    transaction.check(path, _version(expected))
        results = await self._ask(transaction.commit_async)
        for each, result in zip(operations, results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, _NOT_THE_REASON):
                raise _translated(result, each.path)

    def hear_change(self, path: str) -> None:
        """From kazoo's thread."""
        self._call(self._on_change, path)

    def hear_timeout(self, timeout_s: float) -> None:
        """From kazoo's thread."""
        self.timeout_s = timeout_s

    def _hear_state(self, state: str) -> None:
        """From kazoo's thread."""
        self._call(self._on_state, _STATES[state])

    def _call(self, callback: Callable[..., None], argument: object) -> None:
        if not self._is_stopped and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._unless_stopped, callback, argument)

    def _unless_stopped(self, callback: Callable[..., None], argument: object) -> None:
        if not self._is_stopped:
            callback(argument)

    async def _ask_together(self, questions: Sequence[Question]) -> list[Any]:
        """What is asked in the same turn of the event loop goes to the server in one request, where it fits.
        None for a node that is not there."""
        answers: asyncio.Future[list[Answer]] = self._loop.create_future()
        self._to_ask.append(_Asked(questions, answers, sum(each.size_bytes for each in questions)))
        if len(self._to_ask) == 1:
            self._loop.call_soon(self._send_questions)
        return [_answer_to(*each) for each in zip(questions, await answers, strict=True)]

    def _send_questions(self) -> None:
        to_ask, self._to_ask = deque(self._to_ask), []
        while to_ask:
            together = [to_ask.popleft()]
            room = QUESTIONS_MAX - len(together[0].questions)
            room_bytes = BYTES_MAX - together[0].size_bytes
            while to_ask and len(to_ask[0].questions) <= room and to_ask[0].size_bytes <= room_bytes:
                together.append(to_ask.popleft())
                room -= len(together[-1].questions)
                room_bytes -= together[-1].size_bytes
            request = MultiRead([question for each in together for question in each.questions])
            sent = self._send(partial(self._call_server, request))
            sent.add_done_callback(partial(_share, together))

    def _call_server(self, request: object) -> Any:
        result = self._client.handler.async_result()
        self._client._call(request, result)
        return result

    async def _ask(self, start: Callable[[], Any]) -> Any:
        """The answer to a request. Raises what the store's port knows, or `NotAnsweredError`."""
        return await self._send(start)

    def _send(self, start: Callable[[], Any]) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._is_stopped:
            future.set_exception(NotAnsweredError("The session with ZooKeeper is over."))
            return future
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        start().rawlink(lambda result: self._hear_answer(future, result))
        return future

    def _hear_answer(self, future: "asyncio.Future[Any]", result: Any) -> None:
        """From kazoo's thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, future, result)


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, and whoever wants to hear of every change and of the agreed time-out."""

    def __init__(self, session: KazooSession, client: KazooClient) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger)
        self._session = session

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        self._session.hear_change(watch.path)

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        read_timeout_ms, connect_timeout_ms = super()._connect(host, hostip, port)
        self._session.hear_timeout(read_timeout_ms / _READ_SHARE / 1000)
        return read_timeout_ms, connect_timeout_ms


@dataclass(frozen=True, slots=True)
class _AddWatch:
    """The request for a watch of a whole subtree that stays."""

    path: str
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        return bytes(write_string(self.path)) + struct.pack("!i", _PERSISTENT_RECURSIVE)

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> bool:
        return True


_NOT_THE_REASON: Final = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""What the operations of a refused multi get that were not refused themselves."""


def _share(together: "list[_Asked]", sent: "asyncio.Future[list[Answer]]") -> None:
    """Among those whose questions were sent together."""
    error, start = sent.exception(), 0
    for questions, answers, _ in together:
        end = start + len(questions)
        if answers.done():
            pass  # Nobody waits for it any more.
        elif error is not None:
            answers.set_exception(error)
        else:
            answers.set_result(sent.result()[start:end])
        start = end


def _answer_to(question: Question, answer: Answer) -> Any:
    if not isinstance(answer, Refused):
        return answer
    error = exceptions.EXCEPTIONS[answer.code]()
    if isinstance(error, exceptions.NoNodeError):
        return None
    raise _translated(error, question.path)


def _version(expected: int | None) -> int:
    return _ANY_VERSION if expected is None else expected


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if future.done():
        return
    if result.exception is None:
        future.set_result(result.value)
    else:
        future.set_exception(_translated(result.exception))


def _translated(error: BaseException, path: str = "") -> Exception:
    if isinstance(error, _NOT_ANSWERED):
        return NotAnsweredError(f"ZooKeeper has not answered ({type(error).__name__}).")
    kind = _REFUSALS.get(type(error), StoreError)
    where = f" at {path}" if path else ""
    return kind(f"ZooKeeper has refused{where}: {type(error).__name__} {error}".rstrip() + ".")
