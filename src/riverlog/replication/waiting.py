"""Those who wait on a partition: readers for records, producers for the high watermark.

Waking costs nothing for partitions without waiting readers, and never polls. A reader is told how many bytes
came in, so that it need not look again until there may be enough; a producer waits for one offset. Who stays
for longer and reads many partitions, as a follower does, is only told which ones changed.
"""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Protocol

_PIECES_MAX: Final = 256


class Reader(Protocol):
    def on_records(self, size_bytes: int) -> None:
        """So many more bytes can be read."""
        ...

    def on_disturbance(self) -> None:
        """The partition has changed hands, gone, or lost its head: look again now."""
        ...


class WaitingReaders:
    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Reader, None] = {}
        """Changed only here."""

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, reader: Reader) -> None:
        self.waiting[reader] = None

    def discard(self, reader: Reader) -> None:
        self.waiting.pop(reader, None)

    def wake(self, size_bytes: int) -> None:
        for reader in self._snapshot():
            reader.on_records(size_bytes)

    def disturb(self) -> None:
        for reader in self._snapshot():
            reader.on_disturbance()

    def _snapshot(self) -> Iterable[Reader]:
        """A woken reader leaves, so the walk is over a copy."""
        return tuple(self.waiting) if self.waiting else ()


class UnreadBytes:
    """The sizes of what is written and not committed, so that a move of the watermark can be told in bytes.

    Never too few, which a reader would wait for in vain; too many where the watermark is within a piece.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, int, int]] = deque()
        """First offset, end offset and bytes, ascending."""

    def add(self, first_offset: int, end_offset: int, *, size_bytes: int) -> None:
        pieces = self._pieces
        if len(pieces) == _PIECES_MAX:
            first_offset, _, earlier_bytes = pieces.pop()
            size_bytes += earlier_bytes
        pieces.append((first_offset, end_offset, size_bytes))

    def take(self, high_watermark: int) -> int:
        """How many bytes are readable since the last time."""
        pieces, size_bytes = self._pieces, 0
        while pieces and pieces[0][1] <= high_watermark:
            size_bytes += pieces.popleft()[2]
        if pieces and pieces[0][0] < high_watermark:
            size_bytes += pieces[0][2]
        return size_bytes

    def clear(self) -> None:
        self._pieces.clear()


class PendingAck:
    """A wait for the high watermark to reach one offset."""

    __slots__ = ("_queue", "_then", "end_offset", "is_committed")

    def __init__(
        self, queue: "WaitingProducers", end_offset: int, then: "Callable[[PendingAck], None]"
    ) -> None:
        self._queue = queue
        self._then: Callable[[PendingAck], None] | None = then
        self.end_offset = end_offset
        self.is_committed: bool | None = None
        """False when it never will be under this leader, None while it waits."""

    @property
    def is_cancelled(self) -> bool:
        return self._then is None and self.is_committed is None

    def settle(self, is_committed: bool) -> None:
        then, self._then = self._then, None
        if then is not None:
            self.is_committed = is_committed
            then(self)

    def cancel(self) -> None:
        """Not waited for any more. Can be called again, and afterwards."""
        if self._then is not None:
            self._then = None
            self._queue.note_cancelled()


class WaitingProducers:
    """Acknowledgements by their offsets: a batch that is sent again may wait for less than the last one.

    Releasing one costs the logarithm of how many wait; of those cancelled there are never more than others.
    """

    __slots__ = ("_cancelled_count", "_numbers", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, PendingAck]] = []
        self._numbers = count()
        self._cancelled_count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, end_offset: int, then: Callable[[PendingAck], None]) -> PendingAck:
        """Has `then` called when the high watermark has reached `end_offset`, or when it never will."""
        pending = PendingAck(self, end_offset, then)
        heappush(self._waiting, (end_offset, next(self._numbers), pending))
        return pending

    def release(self, high_watermark: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= high_watermark:
            pending = heappop(waiting)[2]
            if pending.is_cancelled:
                self._cancelled_count -= 1
            else:
                pending.settle(True)

    def give_up(self) -> None:
        given_up = sorted(self._waiting)
        self._waiting.clear()
        self._cancelled_count = 0
        for _, _, pending in given_up:
            pending.settle(False)

    def note_cancelled(self) -> None:
        self._cancelled_count += 1
        if self._cancelled_count * 2 > len(self._waiting):
            self._waiting[:] = [each for each in self._waiting if not each[2].is_cancelled]
            heapify(self._waiting)
            self._cancelled_count = 0
