"""Which task of a batch read looks after what, for as long as the DataFrame lives. Pure.

Spark asks a Python source for the tasks of a batch once for each `load()` and keeps them for every query on
that DataFrame. So a task is not told offsets that would grow old but what it answers for, and finds the
offsets when it runs. Whatever partitions there are by then and whenever each task looks, every offset belongs
to exactly one task: the partitions that were there at planning keep their tasks, one that has come since goes
by its name. A partition that is cut is cut at fixed offsets, and its first and last piece are open.
"""

import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from riverlog.model.ids import TopicPartition
from riverlog.spark.source.plan import Range, cut_ranges


@dataclass(frozen=True)
class Piece:
    """A partition from `first` up to `end`, which is not among them; None: as far as the read goes."""

    at: TopicPartition
    first: int | None = None
    end: int | None = None

    def of(self, whole: Range) -> Range:
        start = whole.start if self.first is None else max(whole.start, self.first)
        end = whole.end if self.end is None else min(whole.end, self.end)
        return Range(self.at, start, max(start, end))


@dataclass(frozen=True)
class Share(InputPartition):
    """What one of `count` tasks reads."""

    index: int
    count: int
    piece: Piece | None
    known: Mapping[str, int]
    """How many partitions each topic had at planning: those are in the piece of some task."""

    def pieces(self, partitions: Collection[TopicPartition]) -> Iterator[Piece]:
        """This task's, of the partitions that there are now."""
        if self.piece is not None and self.piece.at in partitions:
            yield self.piece
        for at in partitions:
            if at.partition >= self.known.get(at.topic, 0) and _number(at) % self.count == self.index:
                yield Piece(at)


def plan_shares(
    ranges: list[Range], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[Share]:
    """One for each partition, empty ones too, or more where one is cut; at least one for what may come."""
    ends: dict[TopicPartition, list[int]] = {each.at: [] for each in ranges}
    for piece in cut_ranges(ranges, min_partitions, max_records):
        ends[piece.at].append(piece.end)
    pieces: list[Piece | None] = [piece for at in ends for piece in _pieces(at, ends[at])] or [None]
    known: dict[str, int] = {}
    for at in (each.at for each in ranges):
        known[at.topic] = max(known.get(at.topic, 0), at.partition + 1)
    return [Share(index, len(pieces), piece, known) for index, piece in enumerate(pieces)]


def _pieces(at: TopicPartition, ends: list[int]) -> list[Piece]:
    bounds: list[int | None] = [None, *ends[:-1], None]
    return [Piece(at, first, end) for first, end in pairwise(bounds)]


def _number(at: TopicPartition) -> int:
    return zlib.crc32(f"{at.topic}-{at.partition}".encode())
