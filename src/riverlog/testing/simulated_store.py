"""A metadata store in memory with several sessions, which can be suspended and expired at will.

Behaves as the `MetadataStore` port says; the same conformance suite runs on it and on the real stores. Not a
store to keep anything in. Deterministic: operations take effect in the order in which their turns come, and
watchers hear of a commit before its caller does. A suspended session hears of it when it is resumed.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

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
    Versioned,
    WatchEvent,
    Watching,
)


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
        self._nodes: dict[str, _Node] = {"/": _Node(b"")}
        self._sessions: list[SimulatedStore] = []

    def connect(self) -> "SimulatedStore":
        session = SimulatedStore(self)
        self._sessions.append(session)
        return session

    def get(self, path: str) -> Versioned | None:
        node = self._nodes.get(path)
        return None if node is None else Versioned(node.data, node.version)

    def tree(self, path: str) -> dict[str, Versioned]:
        found = (each for each in sorted(self._nodes) if is_at_or_below(each, path))
        return {each: Versioned(self._nodes[each].data, self._nodes[each].version) for each in found}

    def children(self, path: str) -> list[str]:
        return sorted(each.rpartition("/")[2] for each in self._nodes if parent_of(each) == path)

    def number(self, path: str) -> str:
        """The path with the next number of its parent appended."""
        above = self._require(parent_of(path))
        numbered = _Node(above.data, above.version, above.owner, above.next_sequence + 1)
        self._nodes[parent_of(path)] = numbered
        return f"{path}{above.next_sequence:010d}"

    def commit(self, operations: Sequence[Operation], owner: "SimulatedStore") -> None:
        before = self._nodes
        self._nodes = dict(before)
        try:
            for operation in operations:
                self._apply(operation, owner)
        except BaseException:
            self._nodes = before
            raise
        changed = [operation.path for operation in operations if not isinstance(operation, Check)]
        self._announce(changed)

    def end(self, session: "SimulatedStore") -> None:
        """Forget a session; its ephemeral nodes go with it."""
        self._sessions.remove(session)
        gone = [path for path, node in self._nodes.items() if node.owner is session]
        for path in gone:
            del self._nodes[path]
        self._announce(gone)

    def _announce(self, changed: Sequence[str]) -> None:
        for session in list(self._sessions):
            session.hear(topmost(changed))

    def _apply(self, operation: Operation, owner: "SimulatedStore") -> None:
        path = operation.path
        match operation:
            case Create(data=data, ephemeral=ephemeral):
                self._require(parent_of(path))
                if path in self._nodes:
                    raise NodeExistsError(f"{path} already exists.")
                self._nodes[path] = _Node(data, owner=owner if ephemeral else None)
            case Set(data=data, expected_version=expected):
                node = self._require(path, expected)
                self._nodes[path] = _Node(data, node.version + 1, node.owner, node.next_sequence)
            case Delete(expected_version=expected):
                self._require(path, expected)
                if any(parent_of(each) == path for each in self._nodes):
                    raise NotEmptyError(f"{path} has children.")
                del self._nodes[path]
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

    def __init__(self, ensemble: SimulatedEnsemble) -> None:
        """Use `SimulatedEnsemble.connect`."""
        self._ensemble = ensemble
        self._watches = Watches()
        self._state = SessionState.CONNECTED
        self._unheard: list[str] = []
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
        return self._ensemble.get(path)

    async def children(self, path: str) -> list[str]:
        await self._turn()
        return self._ensemble.children(path)

    async def tree(self, path: str) -> dict[str, Versioned]:
        await self._turn()
        return self._ensemble.tree(path)

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
        self._ensemble.commit([Create(path, data, ephemeral)], self)
        return path

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        await self._turn()
        self._ensemble.commit([Set(path, data, expected_version)], self)
        node = self._ensemble.get(path)
        assert node is not None
        return node.version

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self.multi([Delete(path, expected_version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._turn()
        self._ensemble.commit(operations, self)

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def close(self) -> None:
        if self._state is not SessionState.LOST:
            self.expire()

    async def _turn(self) -> None:
        await asyncio.sleep(self._ensemble.latency_s())
        await self._resumed.wait()
        if self._state is SessionState.LOST:
            raise SessionLostError("The session with the metadata store has ended.")

    def _enter(self, state: SessionState) -> None:
        self._state = state
        self._watches.notify_session(state)
