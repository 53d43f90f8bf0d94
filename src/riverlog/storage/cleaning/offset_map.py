"""The newest offset of each key in the dirty part of a log, in bounded memory.

Short keys stand for themselves; a long one is represented by a digest of 16 bytes, which no key that stands
for itself can equal. Two long keys with one digest would cost a record; at 128 bits that does not happen by
chance, and blake2 leaves no way to make it happen on purpose.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import count
from typing import Final

_DIGEST_BYTES: Final = 16
ENTRY_BYTES: Final = 240
"""What an entry may cost: its share of a table that has just grown beside the old one, key and offset."""


class OffsetMap:
    """`capacity` entries; a single batch may go beyond it, so that a pass always gets ahead."""

    __slots__ = ("_offsets", "capacity")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.capacity = max(int(memory_bytes * load_factor) // ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def has_room_for(self, count: int) -> bool:
        return len(self._offsets) + count <= self.capacity

    def put_in_order(self, keys: Sequence[bytes], first_offset: int) -> None:
        """Note these keys, which stand one after the other from `first_offset`."""
        if max(map(len, keys)) >= _DIGEST_BYTES:
            self.put(zip(keys, count(first_offset), strict=False))
        else:
            self._offsets.update(zip(keys, count(first_offset), strict=False))

    def put(self, keyed: Iterable[tuple[bytes, int]]) -> None:
        """Note the offsets of these keys, in order."""
        offsets = self._offsets
        for key, offset in keyed:
            if len(key) >= _DIGEST_BYTES:
                key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
            offsets[key] = offset

    def offsets(self) -> Iterable[int]:
        """The newest of each key."""
        return self._offsets.values()

    def newest(self, key: bytes) -> int:
        """The offset of the key's newest record in the dirty part; -1 when it has none there."""
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)
