"""The metadata store port: a small tree of versioned nodes, as ZooKeeper has it.

`embedded` (SQLite) serves one node, `zookeeper` a cluster, `simulated` the tests; one conformance suite runs
on all of them. Paths are absolute and slash-separated. Outcomes that a caller must handle are exceptions of
this module; anything else is an operating failure.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from riverlog.model.errors import RiverlogError


class StoreError(RiverlogError):
    """The store refused or could not carry out an operation."""


class NodeExistsError(StoreError):
    pass


class NoNodeError(StoreError):
    pass


class BadVersionError(StoreError):
    """The node has changed since the version that the caller expected."""


class NotEmptyError(StoreError):
    """A node with children cannot be deleted."""


class StoreWriteError(StoreError):
    """The store could not be written, as when its disk is full, and is as it was; a later try may succeed."""


class SessionLostError(StoreError):
    """The session with the store has ended; ephemeral nodes are gone and nothing more may be decided."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Versioned(NamedTuple):
    data: bytes
    version: int


class WatchEvent(NamedTuple):
    """Something at or below the watched path changed; read again to learn what."""

    path: str


class Create(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    expected_version: int | None = None


class Delete(NamedTuple):
    path: str
    expected_version: int | None = None


class Check(NamedTuple):
    path: str
    expected_version: int


Operation = Create | Set | Delete | Check


class Watching(Protocol):
    def stop(self) -> None: ...


class MetadataStore(Protocol):
    @property
    def session_state(self) -> SessionState: ...

    async def get(self, path: str) -> Versioned | None: ...

    async def children(self, path: str) -> list[str]:
        """Sorted names below a path; empty when there is no such node."""
        ...

    async def tree(self, path: str) -> dict[str, Versioned]:
        """Every node at or below a path, by absolute path."""
        ...

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node (and the parents it lacks) and return its path, with the sequence number if asked."""
        ...

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        """Replace the data and return the new version."""
        ...

    async def delete(self, path: str, *, expected_version: int | None = None) -> None: ...

    async def multi(self, operations: Sequence[Operation]) -> None:
        """All or nothing."""
        ...

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        """Call back, on the event loop, after each change at or below a path until stopped."""
        ...

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching: ...

    async def close(self) -> None: ...
