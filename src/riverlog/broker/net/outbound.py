"""The sending half of a connection: queued reply parts out, in order, without copying records.

Small parts are joined into one send; a large slice of a file follows its head by `sendfile`. A socket that
takes less than it is given is full, and is not asked again until it has room. One turn of the event loop
sends a bounded number of bytes, so that a bulk reader does not hold up the others, and a slice that is not in
the page cache is read by a thread first. A slice in the queue keeps its file open.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable

from riverlog.broker.exchange.context import Parts
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.model.disk import FileSlice
from riverlog.model.errors import StorageError
from riverlog.model.network import Socket
from riverlog.wire.schema import RecordData

_TURN_BYTES = 1024**2  # No send begins after so many, and none is of more.
_LONG_REPLY_BYTES = _TURN_BYTES  # Up to here a reply is one `sendfile` into a buffer that the kernel sizes.
_JOIN_BYTES = 64 * 1024
_SMALL_SLICE_BYTES = 32 * 1024  # Up to here a copy costs less than sending in three calls.
_CUT_SHORT = "a log file ended before the records that were promised"


class Outbound:
    __slots__ = (
        "_cold_reader",
        "_has_long_replies",
        "_is_watching",
        "_loop",
        "_on_broken",
        "_on_progress",
        "_send",
        "_socket",
        "_suspended",
        "_warm_end",
        "queued",
        "queued_bytes",
    )

    def __init__(
        self,
        socket: Socket,
        cold_reader: ColdReader,
        *,
        on_progress: Callable[[], None],
        on_broken: Callable[[str], None],
    ) -> None:
        """`on_progress` is called when the queue, or what of it is in memory, has become shorter later."""
        self._socket = socket
        self._send = socket.send
        self._cold_reader = cold_reader
        self._on_progress = on_progress
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self.queued: deque[RecordData] = deque()
        """What is still to be sent; nobody else changes it."""
        self._suspended = False
        self._is_watching = False
        self._has_long_replies = False
        self._warm_end = -1
        """Up to this position the file at the head is known to be in memory. It is not asked for again, so
        that a socket which takes little at a time does not cost a question each time, and a file that was
        cut short is not asked for ever."""
        self.queued_bytes = 0
        """Bytes that wait in memory; slices of files are not among them."""

    def queue(self, parts: Parts) -> None:
        from_files = 0
        for part in parts:
            if type(part) is FileSlice:
                from_files += part.length
            else:
                self.queued_bytes += len(part)
        if from_files > _LONG_REPLY_BYTES and not self._has_long_replies:
            self._has_long_replies = True
            self._socket.expect_long_replies()
        self.queued.extend(parts)

    def send_now(self, parts: Parts) -> None:
        """Send a reply while nothing else is queued; what the socket does not take now is queued.

        Bytes, or bytes around one slice of a file, need no queue while the socket takes them.
        """
        count = len(parts)
        try:
            if count == 1:
                data = parts[0]
                sent = self._send(data)  # type: ignore[arg-type]
                if sent == len(data):
                    return
                parts = [memoryview(data)[sent:]]  # type: ignore[arg-type]
            elif count <= 3 and type(parts[1]) is FileSlice:
                parts = self._send_around(parts[1], parts)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._on_broken(error.strerror or str(error))
            return
        except StorageError as error:
            self._on_broken(f"records could not be read: {error}")
            return
        if parts:
            self.queue(parts)
            self.flush()

    def _send_bytes(self, data: bytes | memoryview) -> Parts:
        """What is left of it."""
        sent = self._send(data)
        return [] if sent == len(data) else [memoryview(data)[sent:]]

    def _send_around(self, records: FileSlice, parts: Parts) -> Parts:
        """What is left of bytes, a slice and perhaps more bytes. `BlockingIOError` means all of it."""
        file, position, length = records
        head = parts[0]
        if length <= _SMALL_SLICE_BYTES:
            data = file.read_if_warm(length, position)
            if data is None:
                return parts
            return self._send_bytes(b"".join((head, data, *parts[2:])))  # type: ignore[arg-type]
        if length > _TURN_BYTES or not file.is_warm(position, length):
            return parts
        sent = self._socket.send_more(head)  # type: ignore[arg-type]
        if sent < len(head):
            return [memoryview(head)[sent:], *parts[1:]]  # type: ignore[arg-type]
        try:
            sent = self._send_file(records, length)
        except (BlockingIOError, InterruptedError):
            sent = 0
        tail = parts[2:]
        if sent < length:
            self._warm_end = position + length
            self._wait_for_room()
            return [FileSlice(file, position + sent, length - sent), *tail]
        try:
            return self._send_bytes(tail[0]) if tail else tail  # type: ignore[arg-type]
        except (BlockingIOError, InterruptedError):
            return tail

    def flush(self) -> None:
        """Send until the queue is empty, the socket is full, or this turn has sent its share."""
        if self._suspended:
            return
        share = _TURN_BYTES
        try:
            while self.queued:
                if share <= 0:
                    self._suspended = True
                    self._loop.call_soon(self._resume)
                    break
                sent = self._send_head()
                if sent is None:
                    break
                share -= sent
            if self._is_watching:
                self._is_watching = False
                self._socket.on_writable(None)
        except (BlockingIOError, InterruptedError):
            self._wait_for_room()
        except OSError as error:
            self._on_broken(error.strerror or str(error))
        except StorageError as error:
            self._on_broken(f"records could not be read: {error}")

    def _wait_for_room(self) -> None:
        self._suspended = True
        if not self._is_watching:
            self._is_watching = True
            self._socket.on_writable(self._resume)

    def drop(self) -> None:
        self.queued.clear()
        self._suspended = True

    def _send_head(self) -> int | None:
        """Bytes sent, or None when sending goes on later, in another callback.

        `BlockingIOError` means that the socket is full, even if it took something.
        """
        head = self.queued[0]
        if type(head) is FileSlice and head.length > _SMALL_SLICE_BYTES:
            return self._send_slice(head)
        data = self._gather()
        if data is None:
            assert type(head) is FileSlice
            self._warm_first(head, head.length)
            return None
        self.queued.appendleft(data)
        sent = self._socket.send_more(data) if len(self.queued) > 1 else self._send(data)
        self.queued.popleft()
        self.queued_bytes -= sent
        if sent < len(data):
            self.queued.appendleft(memoryview(data)[sent:])
            raise BlockingIOError
        return sent

    def _gather(self) -> bytes | memoryview | None:
        """The parts at the head that are small enough to join; None when the first of them is cold."""
        queue = self.queued
        first = queue[0]
        if type(first) is not FileSlice and (len(queue) == 1 or len(first) >= _JOIN_BYTES):
            return queue.popleft()  # type: ignore[return-value]
        parts: list[bytes | bytearray | memoryview] = []
        size = 0
        while queue and size < _JOIN_BYTES:
            head = queue[0]
            if type(head) is FileSlice:
                data = self._read_small(head)
                if data is None:
                    break
                self.queued_bytes += len(data)
                parts.append(data)
                size += len(data)
            else:
                parts.append(head)  # type: ignore[arg-type]
                size += len(head)
            queue.popleft()
        return b"".join(parts) if parts else None

    def _read_small(self, part: FileSlice) -> bytes | bytearray | None:
        if part.length > _SMALL_SLICE_BYTES:
            return None
        if self._warm_end < part.position + part.length:
            return part.file.read_if_warm(part.length, part.position)
        self._warm_end = -1
        data = part.file.pread(part.length, part.position)
        if len(data) < part.length:
            raise OSError(_CUT_SHORT)
        return data

    def _send_slice(self, part: FileSlice) -> int | None:
        length = min(part.length, _TURN_BYTES)
        if part.position >= self._warm_end:
            if not part.file.is_warm(part.position, length):
                self._warm_first(part, length)
                return None
            self._warm_end = part.position + length
        length = min(length, self._warm_end - part.position)
        sent = self._send_file(part, length)
        if sent == part.length:
            self.queued.popleft()
            self._warm_end = -1
        else:
            self.queued[0] = FileSlice(part.file, part.position + sent, part.length - sent)
            if sent < length:
                raise BlockingIOError
        return sent

    def _send_file(self, part: FileSlice, length: int) -> int:
        """Of the first `length` bytes of a slice, which are in memory, as many as the socket takes."""
        try:
            sent = self._socket.sendfile(part.file, part.position, length)
        except OSError as error:
            if error.errno == errno.EIO:
                part.file.pread(length, part.position)  # Fails as well, and takes the directory offline.
            raise
        if sent == 0:
            raise OSError(_CUT_SHORT)
        return sent

    def _warm_first(self, part: FileSlice, length: int) -> None:
        self._suspended = True
        end = part.position + length
        warming = self._cold_reader.warm(FileSlice(part.file, part.position, length))
        warming.add_done_callback(lambda done: self._on_warmed(done, end))

    def _on_warmed(self, warming: "asyncio.Future[None]", end: int) -> None:
        if warming.cancelled():
            return
        error = warming.exception()
        if error is not None:
            self._on_broken(f"records could not be read: {error}")
            return
        self._warm_end = end
        self._resume()

    def _resume(self) -> None:
        if not self.queued:
            return
        self._suspended = False
        waiting_bytes = self.queued_bytes
        self.flush()
        if not self.queued or self.queued_bytes != waiting_bytes:
            self._on_progress()
