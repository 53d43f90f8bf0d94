"""The nodes of a simulated metadata store: a tree with versions, transactions and all-or-nothing writes.

Not here: sessions, watches and faults (`simulated_store`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, assert_never

from riverlog.metadata.layout import is_at_or_below
from riverlog.metadata.layout import parent as parent_of
from riverlog.model.metadata_store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Set,
    Versioned,
)


@dataclass(frozen=True, slots=True)
class _Node:
    data: bytes
    version: int = 0
    session: int | None = None
    """Of an ephemeral node."""
    next_sequence: int = 0
    created: int = 0
    modified: int = 0

    def as_seen_in(self, session: int | None) -> Versioned:
        is_mine = self.session is not None and self.session == session
        return Versioned(self.data, self.version, self.created, self.modified, is_mine)


class Snapshot(NamedTuple):
    nodes: Mapping[str, _Node]
    last_transaction: int


class SimulatedTree:
    def __init__(self) -> None:
        self.last_transaction = 0
        self._nodes: dict[str, _Node] = {"/": _Node(b"")}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        self._undo: list[tuple[str, _Node | None]] = []
        self._stale: dict[str, _Node] | None = None

    def fall_behind(self) -> None:
        """From now on reads that are not synced show this state."""
        self._stale = dict(self._nodes)

    def catch_up(self) -> None:
        self._stale = None

    def snapshot(self) -> Snapshot:
        """Every node that is not a session's, for `restore`."""
        kept = {path: node for path, node in self._nodes.items() if node.session is None}
        return Snapshot(kept, self.last_transaction)

    def restore(self, snapshot: Snapshot) -> None:
        for path in sorted(self._nodes.keys() - snapshot.nodes.keys(), reverse=True):
            self._replace(path, None)
        for path in sorted(snapshot.nodes):
            self._replace(path, snapshot.nodes[path])
        self._undo.clear()
        self.last_transaction = snapshot.last_transaction

    def get(self, path: str, session: int | None = None, *, is_synced: bool = True) -> Versioned | None:
        nodes = self._nodes if is_synced or self._stale is None else self._stale
        node = nodes.get(path)
        return None if node is None else node.as_seen_in(session)

    def tree(self, path: str, session: int, *, is_synced: bool = True) -> dict[str, Versioned]:
        if not is_synced and self._stale is not None:
            older = sorted(each for each in self._stale if is_at_or_below(each, path))
            return {each: self._stale[each].as_seen_in(session) for each in older}
        found: dict[str, Versioned] = {}
        ahead = [path] if path in self._nodes else []
        while ahead:
            each = ahead.pop()
            found[each] = self._nodes[each].as_seen_in(session)
            prefix = "" if each == "/" else each
            ahead += [f"{prefix}/{name}" for name in self._children[each]]
        return dict(sorted(found.items()))

    def children(self, path: str, *, is_synced: bool = True) -> list[str]:
        if not is_synced and self._stale is not None:
            return sorted(
                each.rpartition("/")[2] for each in self._stale if each != "/" and parent_of(each) == path
            )
        return sorted(self._children.get(path, ()))

    def number(self, path: str) -> str:
        """The path with the next number of its parent appended."""
        above = self._require(parent_of(path))
        self._replace(parent_of(path), replace(above, next_sequence=above.next_sequence + 1))
        self._undo.clear()
        return f"{path}{above.next_sequence:010d}"

    def commit(self, operations: Sequence[Operation], session: int) -> list[str]:
        """All or nothing; the paths that have changed."""
        try:
            for operation in operations:
                self._apply(operation, session)
        except BaseException:
            for path, node in reversed(self._undo):
                self._replace(path, node)
            raise
        finally:
            self._undo.clear()
        changed = [operation.path for operation in operations if not isinstance(operation, Check)]
        self.last_transaction += bool(changed)
        return changed

    def end(self, session: int) -> list[str]:
        """Remove its ephemeral nodes; the paths that have changed."""
        gone = [path for path, node in self._nodes.items() if node.session == session]
        for path in gone:
            self._replace(path, None)
        self._undo.clear()
        self.last_transaction += bool(gone)
        return gone

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

    def _apply(self, operation: Operation, session: int) -> None:
        path, transaction = operation.path, self.last_transaction + 1
        match operation:
            case Create(data=data, ephemeral=ephemeral):
                self._require(parent_of(path))
                if path in self._nodes:
                    raise NodeExistsError(f"{path} already exists.")
                owner = session if ephemeral else None
                self._replace(path, _Node(data, 0, owner, 0, transaction, transaction))
            case Set(data=data, expected_version=expected):
                node = self._require(path, expected)
                self._replace(path, replace(node, data=data, version=node.version + 1, modified=transaction))
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
