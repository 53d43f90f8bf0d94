"""Keeps reads of old data off the event loop: asks whether bytes are in memory, and has them brought in.

`sendfile` and `pread` of a page that is not in the page cache wait for the disk, and with them every other
client of the loop. So the file is asked first (`DiskFile.is_warm`); what is cold a thread then brings in,
through the file, so that a disk that fails to read takes its directory offline.
"""

import asyncio

from riverlog.model.disk import FileSlice
from riverlog.model.executor import Executor

_PROBE_EVERY_BYTES = 128 * 1024  # As much as the kernel commonly reads ahead.


def is_in_memory(piece: FileSlice) -> bool:
    """Asks in between as well, for a slice whose ends have just been looked at, and so tell nothing."""
    file, start, length = piece
    end = start + length
    return all(
        file.is_warm(position, min(_PROBE_EVERY_BYTES, end - position))
        for position in range(start, end, _PROBE_EVERY_BYTES)
    )


class ColdReader:
    """Reads ranges into the page cache."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.reads = 0

    def warm(self, piece: FileSlice) -> "asyncio.Future[None]":
        """Fails as reading the file fails."""
        self.reads += 1
        return asyncio.get_running_loop().run_in_executor(self._executor, _bring_in, piece)


def _bring_in(piece: FileSlice) -> None:
    piece.file.bring_in(piece.position, piece.length)
