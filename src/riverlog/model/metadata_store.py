"""The metadata store port: a small tree of versioned nodes, as ZooKeeper has it.

`embedded` (SQLite) serves one node, `zookeeper` a cluster, `simulated` the tests; one conformance suite runs
on all of them. Paths are absolute and slash-separated. Outcomes that a caller must handle are exceptions of
this module; anything else is an operating failure.

A write can end in three ways: it was carried out, it was refused and changed nothing, or its answer was lost
(`OutcomeUnknownError`) and only reading tells (`riverlog.metadata.outcomes` does that for a multi).
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

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


class UnreachableError(StoreWriteError):
    """The store does not answer, and what was asked was never sent; a later try may succeed."""


class OutcomeUnknownError(StoreError):
    """The answer to a write was lost: it was carried out or it was not. Read again before deciding."""


class TooLargeError(StoreError):
    """A write of more bytes than the store takes at once; it was not sent. Write less at once."""


class WentBackError(StoreError):
    """The store is older than what it has shown before, as one that was restored from a backup. What was
    decided since cannot be found in it: nothing more may be decided with it."""


class SessionLostError(StoreError):
    """The session with the store has ended; ephemeral nodes are gone and nothing more may be decided."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Versioned(NamedTuple):
    data: bytes
    version: int
    """The number of times the data was replaced since the node was made."""
    created: int = 0
    """The transaction that made the node. Transactions of a store are numbered upwards."""
    modified: int = 0
    """The transaction that wrote the data."""
    is_mine: bool = False
    """It is ephemeral and ends with the session that read it."""


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
    expected_version: int | None = None
    """None: any version, but the node must be there."""


Operation = Create | Set | Delete | Check

_OPERATION_BYTES: Final = 64
"""More than a store adds to path and data of one operation."""


def bytes_of(operations: Iterable[Operation]) -> int:
    """What operations count against `MetadataStore.multi_bytes_max`; rather too much than too little."""
    return sum(
        _OPERATION_BYTES + len(each.path.encode()) + len(getattr(each, "data", b"")) for each in operations
    )


class Watching(Protocol):
    def stop(self) -> None: ...


class MetadataStore(Protocol):
    """After a connection is lost (`SUSPENDED`) operations wait for the next one, at most for a session's
    time-out. After `LOST` a store of several nodes begins a new session by itself and says `CONNECTED`;
    watches go on, and whoever cares has to read everything again."""

    @property
    def session_state(self) -> SessionState: ...

    @property
    def lease_until_s(self) -> float:
        """Until when the store keeps this session, as far as its last answer tells: on the monotonic clock.
        After it, ephemeral nodes may be gone and others may have been given our roles."""
        ...

    @property
    def multi_bytes_max(self) -> int:
        """The most that one write may have, as `bytes_of` counts."""
        ...

    async def sync(self) -> None:
        """Reads that begin after this show everything that was committed when it was called; and nothing
        older than was shown before, in whatever session: if the store cannot, it raises `WentBackError`."""
        ...

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
