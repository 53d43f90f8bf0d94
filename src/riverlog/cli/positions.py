"""Places in a partition as people write them, and the offsets they mean on a cluster.

`start`, `end`, an offset `N`, `-N` (the last N records), `@TIME` (ISO 8601, local time unless it says
otherwise, or milliseconds since 1970).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from riverlog.cli.cluster import OffsetRange, offset_ranges, offsets_at_time
from riverlog.cli.connection import Connection
from riverlog.cli.failures import usage

_WHOLE_NUMBER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Start:
    pass


@dataclass(frozen=True, slots=True)
class End:
    pass


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class Last:
    count: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp_ms: int


Position = Start | End | AtOffset | Last | AtTime


@dataclass(frozen=True, slots=True)
class Reading:
    """Where to begin in one partition, and what the partition held when we asked."""

    partition: int
    first_offset: int
    held: OffsetRange
    asked_offset: int | None = None

    @property
    def was_moved(self) -> bool:
        """The offset that was asked for is not there, so that reading begins at the nearest one."""
        return self.asked_offset is not None and self.asked_offset != self.first_offset


def parse_position(text: str, option: str) -> Position:
    if text in ("start", "beginning", "earliest"):
        return Start()
    if text in ("end", "latest"):
        return End()
    if text.startswith("@"):
        return AtTime(parse_timestamp(text[1:], option))
    if _WHOLE_NUMBER.fullmatch(text):
        return Last(-int(text)) if text.startswith("-") else AtOffset(int(text))
    raise usage(f"{option} {text!r} is no position", remedy=f"{option} start, end, N, -N or @TIME")


def parse_timestamp(text: str, option: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time, or of itself when it is a number."""
    if _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise usage(
            f"{option} @{text} is no time", remedy=f"{option} @2026-01-31T12:00:00 or @1769860800000"
        ) from None


def resolve(
    connection: Connection, topic: str, partitions: Sequence[int], position: Position
) -> list[Reading]:
    """The first offset to read in each partition."""
    held = offset_ranges(connection, topic, partitions)
    match position:
        case Start():
            return [Reading(partition, held[partition].start, held[partition]) for partition in partitions]
        case End():
            return [Reading(partition, held[partition].end, held[partition]) for partition in partitions]
        case AtOffset(offset):
            return [
                Reading(partition, _within(offset, held[partition]), held[partition], offset)
                for partition in partitions
            ]
        case Last(count):
            return [
                Reading(partition, _within(held[partition].end - count, held[partition]), held[partition])
                for partition in partitions
            ]
        case AtTime(timestamp_ms):
            found = offsets_at_time(connection, topic, partitions, timestamp_ms)
            return [
                Reading(partition, _or_end(found[partition], held[partition]), held[partition])
                for partition in partitions
            ]
    assert_never(position)


def _within(offset: int, held: OffsetRange) -> int:
    return min(max(offset, held.start), held.end)


def _or_end(offset: int | None, held: OffsetRange) -> int:
    return held.end if offset is None else offset
