"""Frames cut out of what a broker sends: a size of four bytes, then so many bytes.

Bytes go straight into the memory that they stay in: a frame that is larger than the first few kilobytes is
received into a buffer of its own, which is not copied or used again, unless the driver is done with each
frame before it receives more: then one buffer is used for all but the largest. Small frames, of which many
may come at once, are copied out of a buffer that is.
"""

from collections.abc import Iterator
from typing import Final

_SIZE_BYTES: Final = 4
_FRAME_BYTES_MIN: Final = 4
"""The correlation id."""
_HEAD_BYTES: Final = 4096


class FrameError(Exception):
    """What came cannot be what a broker would send; nothing behind it can be read."""


class Frames:
    def __init__(self, frame_bytes_max: int, reused_bytes_max: int = 0) -> None:
        """Memory of up to `reused_bytes_max` is used for one large frame after the other."""
        self._frame_bytes_max = frame_bytes_max
        self._reused_bytes_max = reused_bytes_max
        self._reused = memoryview(bytearray())
        self._head = memoryview(bytearray(_HEAD_BYTES))
        self._frame: memoryview | None = None
        """One that is larger than what had come of it; otherwise bytes go into the head."""
        self._filled = 0

    def room(self) -> memoryview:
        """Where the next bytes are to be put; never empty."""
        return (self._head if self._frame is None else self._frame)[self._filled :]

    def received(self, count: int) -> bool:
        """So many more bytes are in `room`. Whether that makes something to `cut`."""
        self._filled += count
        return self._filled >= _SIZE_BYTES if self._frame is None else self._filled == len(self._frame)

    def cut(self) -> Iterator[memoryview]:
        """The frames that are complete, without their sizes. Take all of them."""
        frame = self._frame
        if frame is None:
            yield from self._cut()
        else:
            self._frame = None
            self._filled = 0
            yield frame

    def _cut(self) -> Iterator[memoryview]:
        start = 0
        while self._filled - start >= _SIZE_BYTES:
            begin = start + _SIZE_BYTES
            size = self._size(start)
            here = min(size, self._filled - begin)
            frame = memoryview(bytearray(size)) if here == size else self._memory(size)
            frame[:here] = self._head[begin : begin + here]
            if here < size:
                self._frame = frame
                self._filled = here
                return
            start = begin + here
            yield frame
        rest = self._filled - start
        self._head[:rest] = bytes(self._head[start : self._filled])
        self._filled = rest

    def _memory(self, size: int) -> memoryview:
        """For a large frame. New memory has to be cleared and found by the kernel page by page, which costs
        about as much as what is received into it."""
        if size > self._reused_bytes_max:
            return memoryview(bytearray(size))
        if size > len(self._reused):
            self._reused = memoryview(bytearray(min(2 * size, self._reused_bytes_max)))
        return self._reused[:size]

    def _size(self, start: int) -> int:
        size = int.from_bytes(self._head[start : start + _SIZE_BYTES], signed=True)
        # Checked before the memory is taken, so that a false claim costs no more than the limit.
        if not _FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise FrameError(f"the broker announced an answer of {size} bytes")
        return size
