"""The aborted transactions that ended in a segment (`.txnindex`), in the order of their end.

Entries are Kafka's: version 0, producer id, first and last offset, and the last stable offset when the
abort marker was written. The file exists only when there is an entry. Rebuilt from the markers on recovery.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from riverlog.model.disk import DiskFile
from riverlog.storage.disk.open_files import Files, LazyFile

_ENTRY: Final = struct.Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_count", "_file", "unchecked_count")

    def __init__(self, path: str, files: Files) -> None:
        self._file = LazyFile(path, files)
        self._count = self._file.size_on_disk() // ENTRY_BYTES
        self.unchecked_count = self._count
        """So many entries were found on disk, and nobody has compared them with the log yet."""

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def count(self) -> int:
        return self._count

    def append(self, aborted: AbortedTransaction) -> None:
        self._file.get(create=True).pwrite(_ENTRY.pack(_VERSION, *aborted), self._count * ENTRY_BYTES)
        self._count += 1

    def __iter__(self) -> Iterator[AbortedTransaction]:
        if self._count:
            data = self._file.get().pread(self._count * ENTRY_BYTES, 0)
            for _version, *fields in _ENTRY.iter_unpack(data):
                yield AbortedTransaction(*fields)

    def keep_below(self, end_offset: int) -> None:
        """Drop the transactions that ended at or after `end_offset`."""
        keep = sum(1 for aborted in self if aborted.last_offset < end_offset)
        if keep < self._count:
            self._file.get().truncate(keep * ENTRY_BYTES)
            self._count = keep
            self.unchecked_count = min(self.unchecked_count, keep)

    def open(self) -> DiskFile:
        return self._file.get(create=True)

    def forget(self) -> None:
        self._file.forget()
