"""The tree of the shared store in SQLite, with the sessions that have it open and the changes they made.

Blocking, and used from one thread; each session has its own, on the same file. Invariants: a transaction
notes the paths that it changed under its number, so that every session can tell what it has not heard of
yet; an ephemeral node belongs to a session that is noted; the number of a session is never given twice. Who
waits for changes, and how the end of a session is heard of, is in `store`.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from riverlog.metadata.stores.node_rows import NodeRows, prepare
from riverlog.metadata.stores.shared import session_files
from riverlog.metadata.stores.shared.host import check_is_local, host_id, host_name
from riverlog.metadata.stores.watches import topmost
from riverlog.model.errors import DirectoryInUseError, FormatError
from riverlog.model.metadata_store import Operation, StoreWriteError, Versioned

FILE_NAME: Final = "riverlog-shared-metadata.sqlite"
SESSIONS: Final = "sessions"

_FORMAT_VERSION: Final = 1
_BUSY_S: Final = 10.0
_CHANGES_KEPT: Final = 10_000
_EVERYTHING: Final = "/"
_SCHEMA: Final = (
    "CREATE TABLE shared_format (version INTEGER NOT NULL)",
    f"INSERT INTO shared_format VALUES ({_FORMAT_VERSION})",
    "CREATE TABLE session (number INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, name TEXT NOT NULL)",
    "CREATE TABLE change (number INTEGER PRIMARY KEY, paths TEXT NOT NULL)",
    "CREATE INDEX node_session ON node (ephemeral) WHERE ephemeral > 0",
)


class News(NamedTuple):
    """What a session learns when it looks."""

    changed: list[str]
    sessions: list[int]
    """The others that are noted."""


class SharedTree:
    def __init__(self, directory: str, *, is_synced: bool = True) -> None:
        """Open or create it and begin a session. `is_synced`: what was written outlives a loss of power, and
        not only the process."""
        os.makedirs(directory, mode=0o700, exist_ok=True)
        check_is_local(directory)
        self._path = f"{directory}/{FILE_NAME}"
        self._sessions = f"{directory}/{SESSIONS}"
        self._directory = directory
        self._is_to_ring = False
        with session_files.alone(directory):
            # The thread that closes it may be another one, when its owner was given up.
            self._db = sqlite3.connect(
                self._path,
                timeout=_BUSY_S,
                isolation_level=None,
                cached_statements=32,
                check_same_thread=False,
            )
            try:
                self._open(is_synced)
            except sqlite3.DatabaseError as error:
                self._db.close()
                raise self._unusable(error) from error
            except BaseException:
                self._db.close()
                raise

    def _unusable(self, error: sqlite3.DatabaseError) -> FormatError | DirectoryInUseError:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return DirectoryInUseError(
                f"{self._path} is held by a process that has not let go of it for {_BUSY_S:g} s. Look for "
                "one that is stopped."
            )
        return FormatError(f"{self._path} is not a usable metadata database ({error}).")

    def _open(self, is_synced: bool) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if is_synced else 'OFF'}")
        with ExitStack() as undone:
            with self._transaction():
                prepare(self._db, self._path)
                self._prepare()
                self._refuse_other_hosts()
                number = self._db.execute(
                    "INSERT INTO session (host, name) VALUES (?, ?)", (host_id(), host_name())
                ).lastrowid
                assert number is not None
                self._rows = NodeRows(self._db, number)
                self._seen = self._last_transaction()
                self.own = session_files.begin(self._sessions, number)
                undone.callback(self.own.release)
            undone.pop_all()
        self.end_the_dead()
        self._ring()

    def _prepare(self) -> None:
        known = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'shared_format'").fetchone()
        if known is None:
            for statement in _SCHEMA:
                self._db.execute(statement)
        [found] = self._db.execute("SELECT max(version) FROM shared_format").fetchone()
        if found != _FORMAT_VERSION:
            raise FormatError(
                f"{self._path} has format {found} of shared metadata; this release knows {_FORMAT_VERSION}. "
                "Start the release that wrote it, or a newer one."
            )

    def _refuse_other_hosts(self) -> None:
        other = self._db.execute("SELECT name FROM session WHERE host != ?", (host_id(),)).fetchone()
        if other is not None:
            raise DirectoryInUseError(
                f"{self._path} is in use by brokers of the host {other[0]}, or they ended there without a "
                f"goodbye; this host is {host_name()}. Brokers of one host can share it, for several there "
                f"is zookeeper.connect. If {other[0]} is gone for good: `sqlite3 {self._path} "
                '"DELETE FROM session"`.'
            )

    def apply(self, operations: Sequence[Operation], *, version_of: str | None = None) -> int | None:
        """Carry out all or nothing. Returns the version of a node afterwards, before anybody else comes."""
        with self._writing() as transaction:
            changed = self._rows.change(operations, transaction)
            if changed:
                self._note(transaction, topmost(changed))
            node = None if version_of is None else self._rows.get(version_of)
        if changed:
            with suppress(OSError):  # What was written stands; the next look rings again.
                self._ring()
        return None if node is None else node.version

    def get(self, path: str) -> Versioned | None:
        return self._rows.get(path)

    def children(self, path: str) -> list[str]:
        return self._rows.children(path)

    def tree(self, path: str) -> dict[str, Versioned]:
        """As it was at one moment, whatever others write meanwhile."""
        with self._transaction("DEFERRED"):
            return self._rows.tree(path)

    def next_sequential(self, path: str) -> str:
        with self._writing():
            return self._rows.next_sequential(path)

    def look(self) -> News:
        """What has changed since the last look, oldest first, and who is there."""
        if self._is_to_ring:
            self._ring()
        rows = self._db.execute(
            "SELECT number, paths, (SELECT min(number) FROM change) FROM change"
            " WHERE number > ? ORDER BY number",
            (self._seen,),
        ).fetchall()
        changed: list[str] = []
        if rows and rows[0][2] > self._seen + 1:
            changed.append(_EVERYTHING)  # Some of it has been forgotten meanwhile.
        else:
            changed += (path for _, paths, _ in rows for path in json.loads(paths))
        if rows:
            self._seen = rows[-1][0]
        return News(changed, self._others())

    def end_the_dead(self) -> None:
        """End the sessions of which the owner is gone; whoever comes first does it."""
        dead = [each for each in self._others() if not session_files.is_alive(self._sessions, each)]
        if not dead:
            return
        with self._writing() as transaction:
            self._end(dead, transaction)
        self._ring()
        for number in dead:
            session_files.remove(self._sessions, number)

    def listen_for_end(self, number: int) -> int | None:
        return session_files.listen_for_end(self._sessions, number)

    def close(self) -> None:
        """End the own session; its ephemeral nodes go at once."""
        others = self._others()
        with suppress(StoreWriteError):  # Then others find out and do it.
            with self._writing() as transaction:
                self._end([self.own.number], transaction)
            session_files.remove(self._sessions, self.own.number)
        with session_files.alone(self._directory):
            self.abandon()
        session_files.ring(self._sessions, others)

    def abandon(self) -> None:
        """Let go without a goodbye, as when a process is killed: others find out and clear up."""
        self.own.release()
        self._db.close()

    def _end(self, numbers: Iterable[int], transaction: int) -> None:
        gone: list[str] = []
        for number in numbers:
            found = self._db.execute(
                "DELETE FROM node WHERE ephemeral = ? RETURNING rtrim(parent, '/') || '/' || name", (number,)
            ).fetchall()
            gone += (path for (path,) in found)
            self._db.execute("DELETE FROM session WHERE number = ?", (number,))
        if gone:
            self._note(transaction, topmost(gone))

    def _note(self, transaction: int, changed: list[str]) -> None:
        self._db.execute("INSERT INTO change VALUES (?, ?)", (transaction, json.dumps(changed)))
        self._db.execute("DELETE FROM change WHERE number <= ?", (transaction - _CHANGES_KEPT,))
        self._db.execute("UPDATE transactions SET last = ?", (transaction,))

    def _others(self) -> list[int]:
        rows = self._db.execute("SELECT number FROM session WHERE number != ?", (self.own.number,))
        return [number for (number,) in rows]

    def _ring(self) -> None:
        """Raises `OSError` when no descriptor can be had; whoever looks next rings then."""
        self._is_to_ring = True
        session_files.ring(self._sessions, self._others())
        self._is_to_ring = False

    def _last_transaction(self) -> int:
        [last] = self._db.execute("SELECT last FROM transactions").fetchone()
        return int(last)

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction and the number it has if it changes something."""
        try:
            with self._transaction():
                yield self._last_transaction() + 1
        except sqlite3.Error as error:
            raise StoreWriteError(f"Metadata in {self._path} could not be written: {error}.") from error

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
