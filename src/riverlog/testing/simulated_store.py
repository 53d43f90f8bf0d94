"""A metadata store in memory with several sessions, which can be suspended and expired at will.

Behaves as the `MetadataStore` port says; the same conformance suite runs on it and on the real stores. Not a
store to keep anything in. Deterministic: operations take effect in the order in which their turns come, and
watchers hear of a commit before its caller does. A suspended session hears of it when it is resumed.

A session that is cut off, or whose process has ended, is given up after its time-out; it hears of that when
it is resumed, and goes on in a new session.

What can go wrong is set on the ensemble, for all sessions: answers that take longer, writes that are refused,
watches that are late, answers that are lost with the session or without it, requests that are lost, reads
that show an older state until `sync`, and a restart from an older snapshot.
"""

import asyncio
import contextvars
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from riverlog.metadata.layout import parent as parent_of
from riverlog.metadata.stores.watches import Watches, topmost
from riverlog.model.metadata_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    Operation,
    OutcomeUnknownError,
    SessionLostError,
    SessionState,
    Set,
    StoreWriteError,
    TooLargeError,
    UnreachableError,
    Versioned,
    WatchEvent,
    Watching,
    WentBackError,
    bytes_of,
)
from riverlog.testing.simulated_tree import SimulatedTree, Snapshot

_MULTI_BYTES_MAX: Final = 1024 * 1024


class SimulatedEnsemble:
    """The nodes themselves, and the sessions that use them."""

    def __init__(
        self,
        latency_s: Callable[[], float] = lambda: 0.0,
        *,
        session_timeout_s: float = 9.0,
        gives_up: bool = True,
    ) -> None:
        """`gives_up`: sessions that are cut off or abandoned end by themselves; else whoever holds the
        ensemble ends them."""
        self.latency_s = latency_s
        self.session_timeout_s = session_timeout_s
        self._gives_up = gives_up
        self.extra_latency_s = 0.0
        self.is_unwritable = False
        """Writes are refused and change nothing, as by a full disk."""
        self.watch_delay_s = 0.0
        """How much later than a commit its watchers hear of it."""
        self.answer_s: Callable[[], float] | None = None
        """How long after it has taken effect a write is answered; None for at once."""
        self.lost_replies = 0
        """So many of the next writes take effect, and their sessions end before the answer."""
        self.lost_answers = 0
        """So many of the next writes take effect, and their answers are lost; sessions go on."""
        self.lost_requests = 0
        """So many of the next writes are lost on their way, and nobody knows that; sessions go on."""
        self.found_older = 0
        """How often a session has found that it is older than what was read of it before."""
        self.on_changed: Callable[[Sequence[str]], None] = lambda paths: None
        """Hears of every commit at once, for whoever looks on."""
        self.on_refused: Callable[[Sequence[Operation]], None] = lambda operations: None
        """Hears of writes for which somebody else was faster."""
        self.on_unanswered: Callable[[Sequence[Operation]], None] = lambda operations: None
        """Hears of writes whose outcome the writer does not learn."""
        self._tree = SimulatedTree()
        self._sessions: dict[int, SimulatedStore] = {}
        self._last_session = 0
        self._given_up: dict[int, asyncio.TimerHandle] = {}
        self.context = contextvars.copy_context()
        """Of what belongs to no process."""

    def connect(self, owner: str = "") -> "SimulatedStore":
        """A session; `owner` is the process it belongs to, for `end_sessions_of`."""
        return SimulatedStore(self, owner)

    def begin(self, store: "SimulatedStore") -> int:
        """A new session, by its number."""
        self._last_session += 1
        self._sessions[self._last_session] = store
        return self._last_session

    def end_sessions_of(self, owner: str) -> None:
        """Those that the process has left behind."""
        for session in [number for number, store in self._sessions.items() if store.owner == owner]:
            self._end(session)

    def miss(self, session: int) -> None:
        """Nothing more is heard of it: it ends after its time-out."""
        if self._gives_up and session in self._sessions and session not in self._given_up:
            self._given_up[session] = asyncio.get_running_loop().call_later(
                self.session_timeout_s, self._end, session, context=self.context
            )

    def hear_of(self, session: int) -> bool:
        """It is heard of again; false when it has been given up."""
        timer = self._given_up.pop(session, None)
        if timer is not None:
            timer.cancel()
        return session in self._sessions

    @property
    def last_transaction(self) -> int:
        return self._tree.last_transaction

    def fall_behind(self) -> None:
        """From now on reads show this state, until their session has called `sync`."""
        self._tree.fall_behind()

    def catch_up(self) -> None:
        self._tree.catch_up()

    def snapshot(self) -> Snapshot:
        """Every node that is not a session's, for `restore`."""
        return self._tree.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Begin again with an older state, as an ensemble that has lost its newest one: versions and numbers
        of transactions go back as well. Sessions end."""
        for store in list(self._sessions.values()):
            store.expire()
        self._tree.restore(snapshot)

    def get(self, path: str, session: int | None = None, *, is_synced: bool = True) -> Versioned | None:
        return self._tree.get(path, session, is_synced=is_synced)

    def tree(self, path: str, session: int, *, is_synced: bool = True) -> dict[str, Versioned]:
        return self._tree.tree(path, session, is_synced=is_synced)

    def children(self, path: str, *, is_synced: bool = True) -> list[str]:
        return self._tree.children(path, is_synced=is_synced)

    def number(self, path: str) -> str:
        """The path with the next number of its parent appended."""
        return self._tree.number(path)

    def commit(self, operations: Sequence[Operation], session: int) -> None:
        if bytes_of(operations) > _MULTI_BYTES_MAX:
            raise TooLargeError(
                f"A write of more than {_MULTI_BYTES_MAX} bytes is refused; write less at once."
            )
        if self.is_unwritable and not all(isinstance(operation, Check) for operation in operations):
            raise StoreWriteError("The metadata store cannot be written at the moment.")
        try:
            changed = self._tree.commit(operations, session)
        except BadVersionError:
            self.on_refused(operations)
            raise
        self._announce(changed)

    def has(self, store: "SimulatedStore") -> bool:
        """Whether its session has not ended here; the session itself may not have heard of that yet."""
        return store.session in self._sessions

    def end(self, store: "SimulatedStore") -> None:
        """Forget a session; its ephemeral nodes go with it. It is not told."""
        self._end(store.session)

    def _end(self, session: int) -> None:
        self.hear_of(session)
        if self._sessions.pop(session, None) is None:
            return
        self._announce(self._tree.end(session))

    def _announce(self, changed: Sequence[str]) -> None:
        self.on_changed(changed)
        for store in list(self._sessions.values()):
            if self.watch_delay_s:
                store.hear_later(topmost(changed), self.watch_delay_s)
            else:
                store.hear(topmost(changed))


class SimulatedStore:
    """One session after the other. `suspend`, `resume` and `expire` are for the test that holds it."""

    def __init__(self, ensemble: SimulatedEnsemble, owner: str) -> None:
        """Use `SimulatedEnsemble.connect`."""
        self.owner = owner
        self._ensemble = ensemble
        self._watches = Watches()
        self._unheard: list[str] = []
        self._context = contextvars.copy_context()
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._lease_until_s = math.inf
        self._is_leased = False
        self._is_synced = False
        self._seen_transaction = 0
        self.is_closed = False
        self.session = ensemble.begin(self)
        self._state = SessionState.CONNECTED

    def suspend(self) -> None:
        """Cut off from the ensemble: operations wait, changes are not heard of."""
        self._resumed.clear()
        if not self._is_leased:
            self._lease_until_s = self._full_lease()
        self._ensemble.miss(self.session)
        self._enter(SessionState.SUSPENDED)

    def lose_sight(self) -> None:
        """Cut off for so long that this side takes the session for lost, as it may be. `expire` ends it."""
        self.suspend()
        self._enter(SessionState.LOST)

    def resume(self) -> None:
        """Connected again; in a new session when the old one has been given up meanwhile."""
        if not self._ensemble.hear_of(self.session):
            self._lose()
            return
        self._enter(SessionState.CONNECTED)
        unheard, self._unheard = self._unheard, []
        self._watches.notify(topmost(unheard))
        self._resumed.set()

    def expire(self) -> None:
        """The ensemble has given the session up, and a new one is begun."""
        self._ensemble.end(self)
        self._lose()

    def abandon(self) -> None:
        """Its process has ended: nobody listens any more, and the ensemble does not know yet."""
        self.is_closed = True
        self._watches = Watches()
        self._state = SessionState.LOST
        self._ensemble.miss(self.session)

    def hear_later(self, changed: Sequence[str], delay_s: float) -> None:
        """On the way it is nobody's, so that a process that ends leaves nothing behind."""
        asyncio.get_running_loop().call_later(delay_s, self._arrive, changed, context=self._ensemble.context)

    def _arrive(self, changed: Sequence[str]) -> None:
        if not self.is_closed:
            asyncio.get_running_loop().call_soon(self.hear, changed, context=self._context)

    def hear(self, changed: Iterable[str]) -> None:
        if self._state is SessionState.CONNECTED:
            self._watches.notify(changed)
        else:
            self._unheard += changed

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def lease_until_s(self) -> float:
        """While it is connected, answers come all the time, unless somebody says when (`renew`)."""
        if self._state is SessionState.CONNECTED and not self._is_leased:
            return self._full_lease()
        return self._lease_until_s

    def _full_lease(self) -> float:
        return asyncio.get_running_loop().time() + self._ensemble.session_timeout_s

    def renew(self, now_s: float) -> None:
        """An answer has come at this time of the process's clock. From the first call on, the lease is as old
        as the last one."""
        self._is_leased = True
        self._lease_until_s = now_s + self._ensemble.session_timeout_s

    @property
    def multi_bytes_max(self) -> int:
        return _MULTI_BYTES_MAX

    @property
    def seen_transaction(self) -> int:
        """The latest that was to be seen in what its process has read."""
        return self._seen_transaction

    async def get(self, path: str) -> Versioned | None:
        session = await self._turn()
        return self._ensemble.get(path, session, is_synced=self._is_synced)

    async def children(self, path: str) -> list[str]:
        await self._turn()
        return self._ensemble.children(path, is_synced=self._is_synced)

    async def tree(self, path: str) -> dict[str, Versioned]:
        session = await self._turn()
        return self._ensemble.tree(path, session, is_synced=self._is_synced)

    async def sync(self) -> None:
        await self._turn()
        if self._ensemble.last_transaction < self._seen_transaction:
            self._ensemble.found_older += 1
            raise WentBackError("The metadata store has gone back to an older state.")
        self._is_synced = True

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        session = await self._turn()
        missing: list[Operation] = []
        above = parent_of(path)
        while self._ensemble.get(above) is None:
            missing.append(Create(above))
            above = parent_of(above)
        if missing:
            self._ensemble.commit(missing[::-1], session)
        if sequential:
            path = self._ensemble.number(path)
        self._commit([Create(path, data, ephemeral)], session)
        await self._answer(session)
        return path

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        session = await self._turn()
        self._commit([Set(path, data, expected_version)], session)
        node = self._ensemble.get(path)
        assert node is not None
        await self._answer(session)
        return node.version

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self.multi([Delete(path, expected_version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        session = await self._turn()
        self._commit(operations, session)
        await self._answer(session)

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._ensemble.end(self)
        self._lose()

    def _commit(self, operations: Sequence[Operation], session: int) -> None:
        ensemble = self._ensemble
        if ensemble.lost_requests > 0:
            ensemble.lost_requests -= 1
            ensemble.on_unanswered(operations)
            raise OutcomeUnknownError("The metadata store has not answered a write.")
        ensemble.commit(operations, session)
        if ensemble.lost_answers > 0:
            ensemble.lost_answers -= 1
            ensemble.on_unanswered(operations)
            raise OutcomeUnknownError("The metadata store has not answered a write.")
        if ensemble.lost_replies > 0:
            ensemble.lost_replies -= 1
            self.expire()
            raise SessionLostError("The session with the metadata store ended before its answer came.")

    async def _answer(self, session: int) -> None:
        """What was written is answered later, unless the connection is gone by then."""
        answer_s = self._ensemble.answer_s
        if answer_s is None:
            return
        await asyncio.sleep(answer_s())
        if self.session != session or self._state is SessionState.LOST:
            raise SessionLostError("The session with the metadata store ended before its answer came.")
        if not self._resumed.is_set():
            raise OutcomeUnknownError("The metadata store has not answered a write.")

    async def _turn(self) -> int:
        """Wait for an answer's time to come, and say in which session."""
        session = self.session
        await asyncio.sleep(self._ensemble.latency_s() + self._ensemble.extra_latency_s)
        if not self._resumed.is_set():
            try:
                await asyncio.wait_for(self._resumed.wait(), self._ensemble.session_timeout_s)
            except TimeoutError:
                raise UnreachableError("The metadata store does not answer.") from None
        if self._state is not SessionState.LOST and not self._ensemble.has(self):
            self._lose()
        if self._state is SessionState.LOST or self.session != session:
            raise SessionLostError("The session with the metadata store has ended.")
        if self._is_synced:
            self._seen_transaction = max(self._seen_transaction, self._ensemble.last_transaction)
        return session

    def _lose(self) -> None:
        self._lease_until_s = -math.inf
        self._unheard.clear()
        self._enter(SessionState.LOST)
        self._resumed.set()
        if not self.is_closed:
            asyncio.get_running_loop().call_soon(self._begin_again, context=self._context)

    def _begin_again(self) -> None:
        if not self.is_closed and self._state is SessionState.LOST:
            self.session = self._ensemble.begin(self)
            self._is_synced = False
            self._lease_until_s = self._full_lease()
            self._enter(SessionState.CONNECTED)

    def _enter(self, state: SessionState) -> None:
        self._state = state
        self._watches.notify_session(state)
