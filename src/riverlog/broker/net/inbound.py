"""The receiving half of a connection: bytes in, whole request frames out.

A frame is handed out as a writable view and is valid until the next call: a produce request is patched and
written to its log from where it was received. Memory grows with the bytes that have really arrived, never
with the size that a client merely announces.
"""

import struct
from collections.abc import Callable

from riverlog.broker.net.receive_memory import SCRATCH_BYTES, ReceiveMemory

_SIZE = struct.Struct(">i")
_size = _SIZE.unpack_from
_FIRST_CAPACITY_BYTES = 1024**2
_EXPECTED_BYTES_MAX = 2 * 1024**2
_NOTHING = memoryview(b"")

Receive = Callable[[memoryview], int]
"""`recv_into` of a socket."""


class InvalidFrameSizeError(ValueError):
    """The announced size is negative or above `socket.request.max.bytes`."""


def is_whole_frame(view: memoryview, received: int, frame_bytes_max: int) -> bool:
    """Whether what was received is one request with its size, and nothing else."""
    return 4 <= received <= frame_bytes_max + 4 and bool(_size(view)[0] == received - 4)


class Inbound:
    __slots__ = (
        "_end",
        "_expected_bytes",
        "_frame_bytes_max",
        "_memory",
        "_reserved_bytes",
        "_start",
        "_view",
        "own",
    )

    def __init__(self, memory: ReceiveMemory, frame_bytes_max: int) -> None:
        self._memory = memory
        self._frame_bytes_max = frame_bytes_max
        self.own: bytearray | None = None
        """Where a request is received that the scratch, which all connections share, cannot hold."""
        self._view = _NOTHING
        self._start = 0
        self._end = 0
        self._reserved_bytes = 0
        self._expected_bytes = 0
        """As long as the last request, if that was long: the next one is received where it can stay."""

    @property
    def holds_memory(self) -> bool:
        return self._reserved_bytes > 0

    def fill(self, recv_into: Receive) -> int:
        """Receive once. 0 means that the peer has closed; `BlockingIOError` that nothing is there."""
        if self.own is not None:
            received = recv_into(self._view[self._end :])
            self._end += received
            return received
        if self._expected_bytes:
            return self._fill_long(recv_into)
        received = recv_into(self._memory.scratch)
        self.take_scratch(received)
        return received

    def _fill_long(self, recv_into: Receive) -> int:
        own = self._memory.take(self._expected_bytes)
        view = memoryview(own)[: self._expected_bytes]
        try:
            received = recv_into(view)
        except BaseException:
            self._memory.give_back(own)
            raise
        self.own, self._view, self._start, self._end = own, view, 0, received
        return received

    def receive(self, recv_into: Receive) -> memoryview | int:
        """Receive once, and hand out the request if it is whole and nothing follows it: the common case.

        Otherwise as `fill`, with how much has come. Nothing needs to be settled after a request from here,
        but one in memory of the connection's `own` is to be dropped.
        """
        if self.own is not None or self._expected_bytes:
            received = self.fill(recv_into)
            end = self._end
            if self._start or not is_whole_frame(self._view, end, self._frame_bytes_max):
                return received
            self._start = end
            self._expect(end)
            return self._view[4:end]
        scratch = self._memory.scratch
        received = recv_into(scratch)
        if is_whole_frame(scratch, received, self._frame_bytes_max):
            return scratch[4:received]
        self.take_scratch(received)
        return received

    def take_scratch(self, received: int) -> None:
        """So many bytes have been received into the scratch for this connection, and are no request alone."""
        self._view, self._start, self._end = self._memory.scratch, 0, received

    @property
    def is_plain(self) -> bool:
        """Nothing is kept, and the next request is expected in the scratch."""
        return self.own is None and not self._expected_bytes

    def _expect(self, size: int) -> None:
        self._expected_bytes = size if SCRATCH_BYTES < size <= _EXPECTED_BYTES_MAX else 0

    def next_frame(self) -> memoryview | None:
        start = self._start
        if self._end - start < 4:
            return None
        end = start + 4 + self._frame_bytes(start)
        if end > self._end:
            return None
        self._start = end
        self._expect(end - start)
        return self._view[start + 4 : end]

    @property
    def has_frame(self) -> bool:
        """Whether a request is here, whole; one of an impossible size counts, as it is to be refused."""
        left = self._end - self._start
        if left < 4:
            return False
        (size,) = _SIZE.unpack_from(self._view, self._start)
        return bool(size <= left - 4 or size > self._frame_bytes_max)

    def settle(self) -> bool:
        """Keep what has not been handed out, out of the scratch that others use next, and make room.

        False when the room must be waited for (`ReceiveMemory.when_released`); then settle again.
        """
        left = self._end - self._start
        if left == 0:
            self.drop()
            return True
        need = 4 if left < 4 else 4 + self._frame_bytes(self._start)
        reserve = need if need > SCRATCH_BYTES and need > left else 0
        if reserve != self._reserved_bytes:
            self._unreserve()
            if not self._memory.reserve(reserve):
                self._keep(left, left)
                return False
            self._reserved_bytes = reserve
        capacity = max(left, min(need, max(_FIRST_CAPACITY_BYTES, 2 * left)))
        is_spacious = len(self._view) > max(left, need)  # Another request than the one that was expected.
        if self.own is None or self._start or len(self._view) < capacity or is_spacious:
            self._keep(left, capacity)
        return True

    def drop(self) -> None:
        """Forget everything and give the memory back."""
        if self.own is not None:
            self._view = _NOTHING
            self._memory.give_back(self.own)
            self.own = None
        self._view = _NOTHING
        self._start = self._end = 0
        self._unreserve()

    def _keep(self, left: int, capacity: int) -> None:
        kept = self._memory.take(capacity)
        view = memoryview(kept)[:capacity]
        view[:left] = self._view[self._start : self._end]
        if self.own is not None:
            self._memory.give_back(self.own)
        self.own, self._view, self._start, self._end = kept, view, 0, left

    def _unreserve(self) -> None:
        if self._reserved_bytes:
            released, self._reserved_bytes = self._reserved_bytes, 0
            self._memory.release(released)

    def _frame_bytes(self, start: int) -> int:
        (size,) = _SIZE.unpack_from(self._view, start)
        if not 0 <= size <= self._frame_bytes_max:
            raise InvalidFrameSizeError(
                f"a request of {size} bytes; at most {self._frame_bytes_max} are taken"
            )
        return int(size)
