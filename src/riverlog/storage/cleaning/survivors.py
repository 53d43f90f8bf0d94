"""Where the newest record of each key stands: the second half of a pass need not decode what this knows.

When the keys of the dirty part have been noted, the offsets in the map are just the records that stay. Of a
plain batch (every record has key and value and stands at the offset that its number says) nothing more has
to be known. Others, and those before the dirty part, are looked into. Memory is bounded: beyond a number of
batches that are not plain none is taken for plain any more.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from riverlog.records.batch import BatchHeader

ODD_MAX: Final = 500_000


class Survivors:
    """Batches are noted in order of their offsets; `settle` comes before `of`."""

    __slots__ = ("_end", "_odd", "_odd_max", "_offsets", "_start")

    def __init__(self, odd_max: int = ODD_MAX) -> None:
        self._odd_max = odd_max
        self._odd: set[int] = set()
        self._offsets = array("q")
        # What lies between them was noted, and is plain where it is not odd.
        self._start = -1
        self._end = -1

    def note(self, header: BatchHeader, *, is_plain: bool) -> None:
        if self._start < 0:
            self._start = header.base_offset
        if len(self._odd) < self._odd_max:
            self._end = header.next_offset
            if not is_plain:
                self._odd.add(header.base_offset)

    def settle(self, newest: Iterable[int]) -> None:
        """`newest`: the offset of each key's newest record."""
        self._offsets = array("q", sorted(newest))

    def of(self, header: BatchHeader) -> Sequence[int] | None:
        """The offsets that stay of a batch which was noted; None for one that has to be looked into."""
        base_offset = header.base_offset
        if not self._start <= base_offset < self._end or base_offset in self._odd:
            return None
        first = bisect_left(self._offsets, base_offset)
        return self._offsets[first : bisect_left(self._offsets, header.next_offset, first)]
