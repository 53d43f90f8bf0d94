"""Those who wait on a partition: readers for records, producers for the high watermark.

Waking costs nothing to partitions that nobody waits on and never polls. A reader is told how many bytes came
in, so that it need not look again until there may be enough; a producer waits for one offset.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol


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
        """Nobody else changes it."""

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


class WaitingProducers:
    """Acknowledgements in the order of their offsets."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()
        """Nobody else changes it."""

    def wait(self, end_offset: int) -> "asyncio.Future[bool]":
        """True when the high watermark has reached `end_offset`, False when it never will under this leader.

        Cancelling it only ends the wait.
        """
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.waiting.append((end_offset, future))
        return future

    def release(self, high_watermark: int) -> None:
        waiting = self.waiting
        if not waiting:
            return
        kept = deque[tuple[int, asyncio.Future[bool]]]()
        for end_offset, future in waiting:
            if end_offset > high_watermark and not future.done():
                kept.append((end_offset, future))
            elif not future.done():
                future.set_result(True)
        self.waiting = kept

    def give_up(self) -> None:
        for _, future in self.waiting:
            if not future.done():
                future.set_result(False)
        self.waiting.clear()
