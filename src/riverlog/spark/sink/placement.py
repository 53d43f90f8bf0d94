"""Which partition each row goes to: the `partition` column, the key's hash, or one partition for a while.

The hash is murmur2 of the whole column at once, the same numbers as `records.murmur2` gives key by key, which
is what the Java client's partitioner does. Rows with neither a partition nor a key go together to one
partition, the next such batch to the next one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from riverlog.model.errors import RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.records.murmur2 import murmur2

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)
_WORDS_AT_ONCE_MAX: Final = 256
"""A key longer than this many words is hashed by itself: columns of such keys are rare."""

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]


class Bytes(NamedTuple):
    """A column of byte strings: one after the other in `data`, from `starts`, `lengths` long."""

    data: npt.NDArray[np.uint8]
    starts: Ints
    lengths: Ints

    def at(self, rows: npt.NDArray[Any]) -> "Bytes":
        return Bytes(self.data, self.starts[rows], self.lengths[rows])


def hashes(keys: Bytes) -> Hashes:
    """murmur2 of each key, as unsigned numbers."""
    result = _SEED ^ keys.lengths.astype(np.uint32)
    words = keys.lengths >> 2
    longest = int(words.max(initial=0))
    if longest > _WORDS_AT_ONCE_MAX:
        return _one_by_one(keys)
    # Rows by falling length, so that those which still have a word are always the first ones.
    order = np.argsort(-words, kind="stable")
    result = result[order]
    starts = keys.starts[order]
    counts = words[order]
    unaligned = _words_of(keys.data)
    for index in range(longest):
        upto = int(np.searchsorted(-counts, -index, side="left"))
        k = unaligned[starts[:upto] + 4 * index] * _M
        k ^= k >> np.uint32(24)
        k *= _M
        result[:upto] = result[:upto] * _M ^ k
    result = _tail(result, keys.data, starts + 4 * counts, keys.lengths[order] & 3)
    result ^= result >> np.uint32(13)
    result *= _M
    result ^= result >> np.uint32(15)
    back = np.empty_like(result)
    back[order] = result
    return back


def _tail(result: Hashes, data: npt.NDArray[np.uint8], starts: Ints, rest: Ints) -> Hashes:
    """The one to three bytes behind the last whole word."""
    mixed = result.copy()
    for index in range(3):
        has = np.nonzero(rest > index)[0]
        mixed[has] ^= data[starts[has] + index].astype(np.uint32) << np.uint32(8 * index)
    return np.where(rest > 0, mixed * _M, mixed)


def _words_of(data: npt.NDArray[np.uint8]) -> Hashes:
    """Every four bytes as a little-endian number, wherever they begin."""
    if len(data) < 4:
        return np.zeros(0, np.uint32)
    return np.ndarray(len(data) - 3, np.dtype("<u4"), data, strides=(1,))


def _one_by_one(keys: Bytes) -> Hashes:
    view = keys.data.tobytes()
    found = [
        murmur2(view[start : start + length]) & 0xFFFFFFFF
        for start, length in zip(keys.starts.tolist(), keys.lengths.tolist(), strict=True)
    ]
    return np.array(found, np.uint32)


class Placed(NamedTuple):
    """For each row the number of its destination, and what the numbers stand for."""

    numbers: Ints
    destinations: Sequence[TopicPartition]
    is_one: bool
    """All rows go to the same one."""


class RowRefused(RiverlogError):  # noqa: N818 - named for what it is
    """A row that cannot be written, whatever is tried."""


@dataclass(slots=True)
class Placement:
    """Remembers how many partitions a topic has, and whose turn it is where nothing else decides."""

    partition_count: Callable[[str], int]
    turn: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    def place(
        self, topics: tuple[Ints, Sequence[str]], keys: Bytes | None, is_keyed: Any, partitions: Ints | None
    ) -> Placed:
        """`is_keyed` flags the rows that have a key; a partition of -1 means that the row names none."""
        codes, names = topics
        if (codes < 0).any():
            raise RowRefused("a row has no topic; give the option topic, or a topic in every row")
        counts = np.array([self._count(name) for name in names], np.int64)
        firsts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        destinations = [TopicPartition(name, index) for name in names for index in range(self._count(name))]
        self.turn += 1
        chosen = self.turn % counts[codes]
        if keys is not None and is_keyed.any():
            rows = np.nonzero(is_keyed)[0]
            chosen[rows] = (hashes(keys.at(rows)) & _POSITIVE).astype(np.int64) % counts[codes[rows]]
        if partitions is not None:
            self._check(partitions, counts[codes], codes, names)
            chosen = np.where(partitions >= 0, partitions, chosen)
        numbers = firsts[codes] + chosen
        return Placed(numbers, destinations, bool(len(numbers)) and bool((numbers == numbers[0]).all()))

    def _count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self.partition_count(topic)
        return self._counts[topic]

    def _check(self, partitions: Ints, counts: Ints, codes: Ints, names: Sequence[str]) -> None:
        wrong = np.nonzero((partitions >= counts) | (partitions < -1))[0]
        if len(wrong):
            row = wrong[0]
            raise RowRefused(
                f"a row names partition {partitions[row]} of topic {names[codes[row]]}, "
                f"which has {counts[row]}; partitions are numbered from 0"
            )
