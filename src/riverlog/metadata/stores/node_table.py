"""The tree of versioned nodes in a SQLite file of its own. Blocking, and used from one thread.

Not here: watches and sessions (see `embedded_store`). Invariants: a batch of operations is one transaction,
durable when `apply` returns (write-ahead log, synchronous=FULL); transactions that change something are
numbered upwards without end, over all openings of the file. Nobody else has the file open.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from riverlog.metadata.export import HOW_TO_RESTORE
from riverlog.metadata.stores.node_rows import NodeRows, prepare
from riverlog.model.errors import DirectoryInUseError, FormatError
from riverlog.model.metadata_store import Operation, StoreWriteError

_SESSION: Final = 1
"""There is one at a time."""


class NodeTable(NodeRows):
    def __init__(self, path: str) -> None:
        """Open or create the database; the nodes of a session that ended without a goodbye are removed."""
        self._path = path
        super().__init__(
            sqlite3.connect(path, timeout=1, isolation_level=None, cached_statements=32), _SESSION
        )
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._db.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise DirectoryInUseError(
                    f"{path} is in use by another process. Stop the node that owns it first."
                ) from error
            raise FormatError(
                f"{path} is not a usable metadata database ({error}). {HOW_TO_RESTORE}"
            ) from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute("BEGIN IMMEDIATE")
        prepare(self._db, self._path)
        self._last_transaction: int = self._db.execute("SELECT last FROM transactions").fetchone()[0]
        self._db.execute(f"DELETE FROM node WHERE ephemeral = {_SESSION}")
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.execute(f"DELETE FROM node WHERE ephemeral = {_SESSION}")
        self._db.close()

    def apply(self, operations: Sequence[Operation]) -> list[str]:
        """Carry out all or nothing and return the paths that changed."""
        transaction = self._last_transaction + 1
        self._db.execute("BEGIN IMMEDIATE")
        try:
            changed = self.change(operations, transaction)
            if changed:
                self._db.execute("UPDATE transactions SET last = ?", (transaction,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise StoreWriteError(f"Metadata in {self._path} could not be written: {error}.") from error
        except BaseException:
            self._roll_back()
            raise
        if changed:
            self._last_transaction = transaction
        return changed

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
