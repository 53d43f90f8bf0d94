"""A metadata store in memory with several sessions, which can be suspended and expired at will.

Behaves as the `MetadataStore` port says; the same conformance suite runs on it and on the real stores. Not a
store to keep anything in. Deterministic: operations take effect in the order in which their turns come, and
watchers hear of a commit before its caller does. A suspended session hears of it when it is resumed.

What can go wrong is set on the ensemble, for all sessions: answers that take longer, writes that are refused,
watches that are late, answers that are lost with the session (the port has no outcome "unknown" yet), reads
that show an older state until `sync`, and a restart from an older snapshot.
"""

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from riverlog.metadata.layout import is_at_or_below
from riverlog.metadata.layout import parent as parent_of
from riverlog.metadata.watches import Watches, topmost
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
    StoreWriteError,
    Versioned,
    WatchEvent,
    Watching,
)

_MULTI_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Node:
    data: bytes
    version: int = 0
    owner: "SimulatedStore | None" = None
    next_sequence: int = 0


class SimulatedEnsemble:
    """The nodes themselves, and the sessions that use them."""

    def __init__(self, latency_s: Callable[[], float] = lambda: 0.0) -> None:
        self.latency_s = latency_s
        self.extra_latency_s = 0.0
        self.is_unwritable = False
        """Writes are refused and change nothing, as by a full disk."""
        self.watch_delay_s = 0.0
        """How much later than a commit its watchers hear of it."""
        self.lost_replies = 0
        """So many of the next writes take effect, and their sessions end before the answer."""
        self._nodes: dict[str, _Node] = {"/": _Node(b"")}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        self._undo: list[tuple[str, _Node | None]] = []
        self._stale: dict[str, _Node] | None = None
        self._sessions: list[SimulatedStore] = []

    def connect(self, owner: str = "") -> "SimulatedStore":
        """A session; `owner` is the process it belongs to, for `end_sessions_of`."""
        session = SimulatedStore(self, owner)
        self._sessions.append(session)
        return session

    def end_sessions_of(self, owner: str) -> None:
        """Those that the process has left behind."""
        for session in [each for each in self._sessions if each.owner == owner]:
            self.end(session)

    def fall_behind(self) -> None:
        """From now on reads show this state, until their session has called `sync`."""
        self._stale = dict(self._nodes)

    def catch_up(self) -> None:
        self._stale = None

    def snapshot(self) -> dict[str, bytes]:
        """Every node that is not a session's, for `restore`."""
        return {path: node.data for path, node in self._nodes.items() if node.owner is None}

    def restore(self, snapshot: Mapping[str, bytes]) -> None:
        """Begin again with an older state, as an ensemble that has lost its newest one. Sessions end."""
        for session in list(self._sessions):
            session.expire()
        for path in sorted(self._nodes.keys() - snapshot.keys(), reverse=True):
            self._replace(path, None)
        for path in sorted(snapshot):
            self._replace(path, _Node(snapshot[path]))
        self._undo.clear()

    def get(self, path: str, *, is_synced: bool = True) -> Versioned | None:
        nodes = self._nodes if is_synced or self._stale is None else self._stale
        node = nodes.get(path)
        return None if node is None else Versioned(node.data, node.version)

    def tree(self, path: str, *, is_synced: bool = True) -> dict[str, Versioned]:
        if not is_synced and self._stale is not None:
            older = sorted(each for each in self._stale if is_at_or_below(each, path))
            return {each: Versioned(self._stale[each].data, self._stale[each].version) for each in older}
        found: dict[str, Versioned] = {}
        ahead = [path] if path in self._nodes else []
        while ahead:
            each = ahead.pop()
            node = self._nodes[each]
            found[each] = Versioned(node.data, node.version)
            prefix = "" if each == "/" else each
            ahead += [f"{prefix}/{name}" for name in self._children[each]]
        return dict(sorted(found.items()))

    def children(self, path: str) -> list[str]:
        return sorted(self._children.get(path, ()))

    def number(self, path: str) -> str:
        """The path with the next number of its parent appended."""
        above = self._require(parent_of(path))
        numbered = _Node(above.data, above.version, above.owner, above.next_sequence + 1)
        self._replace(parent_of(path), numbered)
        self._undo.clear()
        return f"{path}{above.next_sequence:010d}"

    def commit(self, operations: Sequence[Operation], owner: "SimulatedStore") -> None:
        if sum(len(getattr(each, "data", b"")) for each in operations) > _MULTI_BYTES_MAX:
            raise StoreError(f"A write of more than {_MULTI_BYTES_MAX} bytes is refused; write less at once.")
        if self.is_unwritable and any(not isinstance(each, Check) for each in operations):
            raise StoreWriteError("The metadata store cannot be written at the moment.")
        try:
            for operation in operations:
                self._apply(operation, owner)
        except BaseException:
            for path, node in reversed(self._undo):
                self._replace(path, node)
            raise
        finally:
            self._undo.clear()
        changed = [operation.path for operation in operations if not isinstance(operation, Check)]
        self._announce(changed)

    def has(self, session: "SimulatedStore") -> bool:
        """Whether it has not ended here; the session itself may not have heard of that yet."""
        return session in self._sessions

    def end(self, session: "SimulatedStore") -> None:
        """Forget a session; its ephemeral nodes go with it."""
        if session not in self._sessions:
            return
        self._sessions.remove(session)
        gone = [path for path, node in self._nodes.items() if node.owner is session]
        for path in gone:
            self._replace(path, None)
        self._undo.clear()
        self._announce(gone)

    def _announce(self, changed: Sequence[str]) -> None:
        for session in list(self._sessions):
            if self.watch_delay_s:
                session.hear_later(topmost(changed), self.watch_delay_s)
            else:
                session.hear(topmost(changed))

    def _replace(self, path: str, node: _Node | None) -> None:
        """The only place where nodes change; what was before is kept until the commit is through."""
        self._undo.append((path, self._nodes.get(path)))
        name = path.rpartition("/")[2]
        if node is None:
            del self._nodes[path], self._children[path]
            self._children[parent_of(path)].pop(name)
        else:
            if path not in self._nodes and path != "/":
                self._children[parent_of(path)][name] = None
            self._nodes[path] = node
            self._children.setdefault(path, {})

    def _apply(self, operation: Operation, owner: "SimulatedStore") -> None:
        path = operation.path
        match operation:
            case Create(data=data, ephemeral=ephemeral):
                self._require(parent_of(path))
                if path in self._nodes:
                    raise NodeExistsError(f"{path} already exists.")
                self._replace(path, _Node(data, owner=owner if ephemeral else None))
            case Set(data=data, expected_version=expected):
                node = self._require(path, expected)
                self._replace(path, _Node(data, node.version + 1, node.owner, node.next_sequence))
            case Delete(expected_version=expected):
                self._require(path, expected)
                if self._children[path]:
                    raise NotEmptyError(f"{path} has children.")
                self._replace(path, None)
            case Check(expected_version=expected):
                self._require(path, expected)
            case _:
                assert_never(operation)

    def _require(self, path: str, expected_version: int | None = None) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError(f"{path} does not exist.")
        if expected_version is not None and node.version != expected_version:
            raise BadVersionError(f"{path} has version {node.version}, not {expected_version}.")
        return node


class SimulatedStore:
    """One session. `suspend`, `resume` and `expire` are for the test that holds it."""

    def __init__(self, ensemble: SimulatedEnsemble, owner: str) -> None:
        """Use `SimulatedEnsemble.connect`."""
        self.owner = owner
        self._ensemble = ensemble
        self._watches = Watches()
        self._state = SessionState.CONNECTED
        self._unheard: list[str] = []
        self._is_synced = False
        self._context = contextvars.copy_context()
        self._resumed = asyncio.Event()
        self._resumed.set()

    def suspend(self) -> None:
        """Cut off from the ensemble: operations wait, changes are not heard of."""
        self._resumed.clear()
        self._enter(SessionState.SUSPENDED)

    def resume(self) -> None:
        self._enter(SessionState.CONNECTED)
        unheard, self._unheard = self._unheard, []
        self._watches.notify(topmost(unheard))
        self._resumed.set()

    def expire(self) -> None:
        """The ensemble has given the session up."""
        self._ensemble.end(self)
        self._enter(SessionState.LOST)
        self._resumed.set()

    def abandon(self) -> None:
        """Its process has ended: nobody listens any more, and the ensemble does not know yet."""
        self._watches = Watches()
        self._state = SessionState.LOST

    def hear_later(self, changed: Sequence[str], delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self.hear, changed, context=self._context)

    def hear(self, changed: Sequence[str]) -> None:
        if self._state is SessionState.CONNECTED:
            self._watches.notify(changed)
        else:
            self._unheard += changed

    @property
    def session_state(self) -> SessionState:
        return self._state

    async def get(self, path: str) -> Versioned | None:
        await self._turn()
        return self._ensemble.get(path, is_synced=self._is_synced)

    async def children(self, path: str) -> list[str]:
        await self._turn()
        return self._ensemble.children(path)

    async def tree(self, path: str) -> dict[str, Versioned]:
        await self._turn()
        return self._ensemble.tree(path, is_synced=self._is_synced)

    async def sync(self) -> None:
        """From now on this session reads what is committed. Not in the port yet."""
        await self._turn()
        self._is_synced = True

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        await self._turn()
        missing: list[Operation] = []
        above = parent_of(path)
        while self._ensemble.get(above) is None:
            missing.append(Create(above))
            above = parent_of(above)
        if missing:
            self._ensemble.commit(missing[::-1], self)
        if sequential:
            path = self._ensemble.number(path)
        self._commit([Create(path, data, ephemeral)])
        return path

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        await self._turn()
        self._commit([Set(path, data, expected_version)])
        node = self._ensemble.get(path)
        assert node is not None
        return node.version

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self.multi([Delete(path, expected_version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._turn()
        self._commit(operations)

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def close(self) -> None:
        if self._state is not SessionState.LOST:
            self.expire()

    def _commit(self, operations: Sequence[Operation]) -> None:
        self._ensemble.commit(operations, self)
        if self._ensemble.lost_replies > 0:
            self._ensemble.lost_replies -= 1
            self.expire()
            raise SessionLostError("The session with the metadata store ended before its answer came.")

    async def _turn(self) -> None:
        await asyncio.sleep(self._ensemble.latency_s() + self._ensemble.extra_latency_s)
        await self._resumed.wait()
        if self._state is not SessionState.LOST and not self._ensemble.has(self):
            self.expire()
        if self._state is SessionState.LOST:
            raise SessionLostError("The session with the metadata store has ended.")

    def _enter(self, state: SessionState) -> None:
        self._state = state
        self._watches.notify_session(state)
