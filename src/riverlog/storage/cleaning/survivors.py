"""How many records of each dirty batch are still the newest of their key, counted while the keys are noted.

A batch that has lost all of them, or none, is dealt with by its header alone in the second half of a pass:
it is neither decompressed nor decoded again. Not here: whether a tombstone stays, so a batch that holds one,
or a record without a key, is never called whole. Memory is bounded: batches beyond the bound are not counted
and have to be looked into.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import Final

BATCHES_MAX: Final = 1_000_000


class Fate(Enum):
    UNKNOWN = "look into it"
    NONE_STAYS = "every record was superseded"
    ALL_STAY = "every record is the newest of its key, and none is a tombstone"


class Survivors:
    """Batches come in order of their offsets."""

    __slots__ = ("_bases", "_batches_max", "_end", "_is_plain", "_left")

    def __init__(self, batches_max: int = BATCHES_MAX) -> None:
        self._batches_max = batches_max
        self._bases = array("q")
        self._left = array("i")
        self._is_plain = bytearray()
        self._end = 0  # Where the last batch that is counted ends.

    def add(self, base_offset: int, next_offset: int, keyed: int, is_plain: bool) -> None:
        """A batch with so many records that have a key; before any of them is noted."""
        if len(self._bases) < self._batches_max:
            self._bases.append(base_offset)
            self._left.append(keyed)
            self._is_plain.append(is_plain)
            self._end = next_offset

    def lose(self, offsets: Iterable[int]) -> None:
        """The records there, noted earlier, are not the newest of their keys any more."""
        bases, left = self._bases, self._left
        number, low, high = -1, 0, 0
        for offset in offsets:
            if not low <= offset < high:  # Neighbours mostly lose their place to neighbours.
                if offset >= self._end:
                    continue
                number = bisect_right(bases, offset) - 1
                low, high = bases[number], bases[number + 1] if number + 1 < len(bases) else self._end
            left[number] -= 1

    def fate(self, base_offset: int, record_count: int) -> Fate:
        number = bisect_right(self._bases, base_offset) - 1
        if number < 0 or self._bases[number] != base_offset:
            return Fate.UNKNOWN
        left = self._left[number]
        if left == 0:
            return Fate.NONE_STAYS
        return Fate.ALL_STAY if left == record_count and self._is_plain[number] else Fate.UNKNOWN
