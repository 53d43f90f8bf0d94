"""The memory that requests are received into: one shared scratch buffer, a pool, and a budget for all.

An idle connection owns no buffer: it receives into the scratch, and only a request that has not arrived
whole is given memory of its own. Large requests reserve their size against a budget first, so that the
total stays within the budget plus one request however many clients announce however much. The budget is
checked before a reservation, not after: a request larger than the whole budget still gets through, alone.
"""

from collections import deque
from collections.abc import Callable

SCRATCH_BYTES = 64 * 1024
_POOLED_BYTES_MAX = 16 * 1024**2
_ROUND_BYTES = 64 * 1024


class ReceiveMemory:
    def __init__(self, budget_bytes: int = 256 * 1024**2) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._budget_bytes = budget_bytes
        self._reserved_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._pool: list[bytearray] = []
        self._pooled_bytes = 0

    @property
    def reserved_bytes(self) -> int:
        return self._reserved_bytes

    @property
    def is_short(self) -> bool:
        """Somebody waits for memory that others hold."""
        return bool(self._waiting)

    def reserve(self, size_bytes: int) -> bool:
        if self._reserved_bytes and self._reserved_bytes + size_bytes > self._budget_bytes:
            return False
        self._reserved_bytes += size_bytes
        return True

    def when_released(self, callback: Callable[[], None]) -> None:
        """Call back, once, when it makes sense to try a reservation again; first come, first served."""
        self._waiting.append(callback)

    def release(self, size_bytes: int) -> None:
        self._reserved_bytes -= size_bytes
        assert self._reserved_bytes >= 0
        for _ in range(len(self._waiting)):
            if self._reserved_bytes >= self._budget_bytes:
                return
            self._waiting.popleft()()

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least that size, with arbitrary content."""
        if size_bytes <= SCRATCH_BYTES:
            return bytearray(size_bytes)
        for index in range(len(self._pool) - 1, -1, -1):
            if size_bytes <= len(self._pool[index]) <= 4 * size_bytes:
                buffer = self._pool.pop(index)
                self._pooled_bytes -= len(buffer)
                return buffer
        return bytearray(-(-size_bytes // _ROUND_BYTES) * _ROUND_BYTES)

    def give_back(self, buffer: bytearray) -> None:
        if len(buffer) > SCRATCH_BYTES and self._pooled_bytes + len(buffer) <= _POOLED_BYTES_MAX:
            self._pool.append(buffer)
            self._pooled_bytes += len(buffer)
