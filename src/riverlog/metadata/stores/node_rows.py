"""The nodes of a metadata tree as rows of SQLite, read and changed on a connection that somebody else has
opened.

Shared by the store of one node (`node_table`) and by that of the nodes of one host (`shared`). Not here:
transactions and sessions; `change` is called inside a transaction of the caller. Invariant: every node but
the root has its parent.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, assert_never

from riverlog.metadata.layout import parent as parent_of
from riverlog.model.errors import FormatError
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

FORMAT_VERSION: Final = 2

_SCHEMA: Final = """
CREATE TABLE format (version INTEGER NOT NULL);
CREATE TABLE node (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    ephemeral INTEGER NOT NULL,
    next_sequence INTEGER NOT NULL
);
CREATE UNIQUE INDEX node_path ON node (parent, name);
CREATE INDEX node_ephemeral ON node (ephemeral) WHERE ephemeral = 1;
INSERT INTO node VALUES ('', '', x'', 0, 0, 0);
INSERT INTO format VALUES (1);
"""
# The index is apart from the data because a search in a tree of whole rows reads each row it compares with,
# and that of a topic with very many partitions is a megabyte long.

_UPGRADES: Final = {
    1: """
ALTER TABLE node ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN modified INTEGER NOT NULL DEFAULT 0;
CREATE TABLE transactions (last INTEGER NOT NULL);
INSERT INTO transactions VALUES (0);
UPDATE format SET version = 2;
""",
}
"""From the format to the next one."""

_CONTENT: Final = "data, version, created, modified, ephemeral"


def prepare(db: sqlite3.Connection, path: str) -> None:
    """Make what is missing, inside a transaction. Raises `FormatError` when a newer release wrote it."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'format'").fetchone() is None:
        _run(db, _SCHEMA)
    while (found := _format(db)) in _UPGRADES:
        _run(db, _UPGRADES[found])
    if found != FORMAT_VERSION:
        raise FormatError(
            f"{path} has metadata format {found}; this release knows {FORMAT_VERSION}. "
            "Start the release that wrote it, or a newer one."
        )


class NodeRows:
    def __init__(self, db: sqlite3.Connection, session: int) -> None:
        """`session`, above 0, is noted in the ephemeral nodes that are made here."""
        self._db = db
        self._session = session

    def get(self, path: str) -> Versioned | None:
        row = self._db.execute(
            f"SELECT {_CONTENT} FROM node WHERE parent = ? AND name = ?", _key(path)
        ).fetchone()
        return None if row is None else self._versioned(row)

    def children(self, path: str) -> list[str]:
        rows = self._db.execute("SELECT name FROM node WHERE parent = ? ORDER BY name", (path,))
        return [name for (name,) in rows]

    def tree(self, path: str) -> dict[str, Versioned]:
        root = self.get(path)
        if root is None:
            return {}
        prefix = path.rstrip("/")
        rows = self._db.execute(
            f"SELECT rtrim(parent, '/') || '/' || name, {_CONTENT} FROM node"
            " WHERE parent = ? OR (parent > ? AND parent < ?)",  # '0' follows '/' in order
            (path, prefix + "/", prefix + "0"),
        )
        shared: dict[tuple[Any, ...], Versioned] = {}  # partitions made together and idle read alike
        result = {path: root}
        for each, *content in rows:
            key = tuple(content)
            result[each] = shared.get(key) or shared.setdefault(key, self._versioned(key))
        return result

    def next_sequential(self, path: str) -> str:
        """The path with the next number of its parent appended. The caller is about to create it."""
        above = _key(parent_of(path))
        row = self._db.execute(
            "UPDATE node SET next_sequence = next_sequence + 1 WHERE parent = ? AND name = ?"
            " RETURNING next_sequence - 1",
            above,
        ).fetchall()
        if not row:
            raise _no_node(parent_of(path))
        return f"{path}{row[0][0]:010d}"

    def change(self, operations: Sequence[Operation], transaction: int) -> list[str]:
        """Carry out one after the other and return the paths that changed."""
        changed: list[str] = []
        known: set[str] = set()
        for operation in operations:
            self._apply_one(operation, known, transaction)
            if not isinstance(operation, Check):
                changed.append(operation.path)
        return changed

    def _apply_one(self, operation: Operation, known: set[str], transaction: int) -> None:
        match operation:
            case Create(path=path):
                self._create(operation, known, transaction)
                known.add(path)
            case Set(path=path, data=data, expected_version=expected):
                self._check(path, expected)
                self._db.execute(
                    "UPDATE node SET data = ?, version = version + 1, modified = ?"
                    " WHERE parent = ? AND name = ?",
                    (data, transaction, *_key(path)),
                )
            case Delete(path=path):
                self._delete(operation)
                known.discard(path)
            case Check(path=path, expected_version=expected):
                self._check(path, expected)
            case _:
                assert_never(operation)

    def _create(self, operation: Create, known: set[str], transaction: int) -> None:
        above, name = _key(operation.path)
        if above not in known:
            if self.get(above) is None:
                raise _no_node(above)
            known.add(above)
        try:
            self._db.execute(
                "INSERT INTO node VALUES (?, ?, ?, 0, ?, 0, ?, ?)",
                (above, name, operation.data, operation.ephemeral * self._session, transaction, transaction),
            )
        except sqlite3.IntegrityError as error:
            raise NodeExistsError(f"Metadata node {operation.path} already exists.") from error

    def _delete(self, operation: Delete) -> None:
        path = operation.path
        if operation.expected_version is not None:
            self._check(path, operation.expected_version)
        if self._db.execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchone():
            raise NotEmptyError(f"Metadata node {path} has children.")
        if self._db.execute("DELETE FROM node WHERE parent = ? AND name = ?", _key(path)).rowcount == 0:
            raise _no_node(path)

    def _check(self, path: str, expected_version: int | None) -> None:
        node = self.get(path)
        if node is None:
            raise _no_node(path)
        if expected_version is not None and node.version != expected_version:
            raise BadVersionError(
                f"Metadata node {path} has version {node.version}, not the expected {expected_version}."
            )

    def _versioned(self, row: Sequence[Any]) -> Versioned:
        data, version, created, modified, session = row
        return Versioned(data, version, created, modified, session == self._session)


def _run(db: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";"):
        db.execute(statement)


def _format(db: sqlite3.Connection) -> int:
    found: int = db.execute("SELECT max(version) FROM format").fetchone()[0]
    return found


def _key(path: str) -> tuple[str, str]:
    if path == "/":
        return "", ""
    above, _, name = path.rpartition("/")
    return above or "/", name


def _no_node(path: str) -> NoNodeError:
    return NoNodeError(f"Metadata node {path} does not exist.")
