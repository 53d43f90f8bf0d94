"""The segment that a pass writes in place of others, beside them, as `.cleaned` files.

Opened on the event loop and written in a thread: all files are open before the thread begins, so that a
partition's directory may be renamed meanwhile. Never synced in part: `finish` writes and syncs everything,
before `LogReplacement.replace_segments` puts the files in place.
"""

from riverlog.model.disk import ReadableBuffer
from riverlog.records.batch import read_header
from riverlog.storage.disk.open_files import Files, LazyFile, OpenFiles
from riverlog.storage.files import names
from riverlog.storage.files.transaction_index import AbortedTransaction
from riverlog.storage.log.segment import Segment

_FILES = 4


class CleanedSegment(Segment):
    """A segment under temporary names."""

    __slots__ = ("_buffer", "_buffer_max", "_written")

    def __init__(
        self, directory: str, base_offset: int, files: Files, *, now_ms: int, buffer_max: int
    ) -> None:
        own = files._replace(open_files=OpenFiles(_FILES))
        super().__init__(directory, base_offset, own, created_ms=now_ms)
        for suffix in names.SEGMENT_FILES:
            files.disk.unlink(self._path(suffix))
        self.log = LazyFile(self._path(names.LOG), own)
        self.log.get(create=True)
        self.open_indexes()
        self.transactions.open()
        self._buffer = bytearray()
        self._buffer_max = buffer_max
        self._written = 0

    def add(self, batch: ReadableBuffer, index_interval_bytes: int) -> None:
        """Append a batch."""
        header = read_header(batch)
        self._buffer += batch
        self.account_for(header, header.last_offset, index_interval_bytes)
        if len(self._buffer) >= self._buffer_max:
            self._write()

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Write what is left and make it all durable. Blocks."""
        self._write()
        for entry in aborted:
            self.transactions.append(entry)
        self.save_indexes()
        for file in (self.log.get(), *self.open_indexes()):
            file.datasync()

    def _write(self) -> None:
        if self._buffer:
            self.log.get().pwrite(self._buffer, self._written)
            self._written += len(self._buffer)
            self._buffer = bytearray()

    def remove_files(self) -> None:
        """After a pass that came to nothing."""
        self.forget_files()
        for suffix in names.SEGMENT_FILES:
            self.files.disk.unlink(self._path(suffix))

    def _path(self, suffix: str) -> str:
        return super()._path(suffix) + names.CLEANED
