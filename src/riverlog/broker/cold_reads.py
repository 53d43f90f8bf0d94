"""Keeps reads of old data off the event loop: asks the kernel whether bytes are in memory, and warms them.

`sendfile` and `pread` of a page that is not in the page cache wait for the disk, and with them every other
client of the loop. A read with RWF_NOWAIT fails instead of waiting, so it tells; a thread then brings the
range in, through the file, so that a disk that fails to read takes its directory offline. File systems that
cannot tell (or systems without the call) count as warm.
"""

import asyncio
import errno
import os
from concurrent.futures import ThreadPoolExecutor

from riverlog.model.disk import FileSlice

_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_CANNOT_TELL = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_PROBE = [bytearray(1)]


def read_if_warm(descriptor: int, position: int, length: int) -> bytes | bytearray | None:
    """The bytes, or None when reading them now would wait for the disk (or ends before `length`)."""
    if _NOWAIT is None:
        return os.pread(descriptor, length, position)
    buffer = bytearray(length)
    try:
        count = os.preadv(descriptor, [buffer], position, _NOWAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno in _CANNOT_TELL:
            return os.pread(descriptor, length, position)
        raise
    return buffer if count == length else None


def is_warm(descriptor: int, position: int, length: int) -> bool:
    """Whether the first and the last byte of a range can be read without waiting for the disk."""
    if _NOWAIT is None:
        return True
    try:
        return (
            os.preadv(descriptor, _PROBE, position, _NOWAIT) == 1
            and os.preadv(descriptor, _PROBE, position + length - 1, _NOWAIT) == 1
        )
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _CANNOT_TELL:
            return True
        raise


class ColdReader:
    """Reads ranges into the page cache on threads of its own."""

    def __init__(self, threads: int = 2) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="riverlog-cold-read")
        self.reads = 0

    def warm(self, piece: FileSlice) -> "asyncio.Future[None]":
        """Fails as reading the file fails."""
        self.reads += 1
        return asyncio.get_running_loop().run_in_executor(self._threads, _bring_in, piece)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


def _bring_in(piece: FileSlice) -> None:
    piece.file.bring_in(piece.position, piece.length)
