"""Places in a partition as people write them, and the offsets they mean on a cluster.

`start`, `end`, an offset `N`, `-N` (the last N records), `@TIME` (ISO 8601, local time unless it says
otherwise, milliseconds since 1970, or `-1h` for so long ago by the broker's clock). Two of them with a colon
between are a span.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from riverlog.cli.asking.broker_time import now_ms
from riverlog.cli.asking.cluster import OffsetRange, Place, offset_ranges, offsets_at_time, partitions_of
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.printing.durations import parse_duration

_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
_AGO = re.compile(r"-[0-9]+[a-z]+")


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


@dataclass(frozen=True, slots=True)
class Ago:
    """So long ago; `settled` makes a time of it."""

    duration_ms: int


Settled = Start | End | AtOffset | Last | AtTime
Position = Settled | Ago


@dataclass(frozen=True, slots=True)
class Span:
    """From one place up to, not including, another; None is no end."""

    first: Settled
    end: Settled | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Where to begin in one partition, and what the partition held when we asked."""

    topic: str
    partition: int
    first_offset: int
    held: OffsetRange
    asked_offset: int | None = None
    bound: "Reading | None" = None
    """Where it is to end, as a place to begin; None is what was held."""

    @property
    def end_offset(self) -> int:
        return self.held.end if self.bound is None else self.bound.first_offset

    @property
    def is_bounded(self) -> bool:
        return self.bound is not None

    @property
    def end_was_moved(self) -> bool:
        return self.bound is not None and self.bound.was_moved

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def was_moved(self) -> bool:
        """The offset that was asked for is not there, so that reading begins at the nearest one."""
        return self.asked_offset is not None and self.asked_offset != self.first_offset


def parse_position(text: str, option: str) -> Position:
    if text in ("start", "beginning", "earliest"):
        return Start()
    if text in ("end", "latest"):
        return End()
    if text.startswith("@") and _AGO.fullmatch(text[1:]):
        return Ago(parse_duration(text[2:], option))
    if text.startswith("@"):
        return AtTime(_parse_timestamp(text[1:], option))
    if _WHOLE_NUMBER.fullmatch(text):
        return Last(-int(text)) if text.startswith("-") else AtOffset(int(text))
    raise usage(f"{option} {text!r} is no position", remedy=f"{option} start, end, N, -N or @TIME")


def parse_span(first: str, end: str | None, option: str, end_option: str) -> tuple[Position, Position | None]:
    """Of two options, the first of which may hold both places: `10:20`, `@-2h:@-1h`."""
    if ":@" in first or (":" in first and not first.startswith("@")):
        if end is not None:
            raise usage(f"{option} {first} has an end already", remedy=f"leave out {end_option}")
        first, _, end = first.partition(":@" if first.startswith("@") else ":")
        end = f"@{end}" if first.startswith("@") else end
        end_option = option
    return parse_position(first, option), None if end is None else parse_position(end, end_option)


def _parse_timestamp(text: str, option: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time, or of itself when it is a number."""
    if _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise usage(
            f"{option} @{text} is no time", remedy=f"{option} @2026-01-31T12:00:00, @1769860800000 or @-1h"
        ) from None


def is_local_time(text: str) -> bool:
    """Whether a position is a time that leaves its zone to where the command runs."""
    try:
        return text.startswith("@") and datetime.fromisoformat(text[1:]).tzinfo is None
    except ValueError:
        return False


def settled(connection: Connection, position: Position) -> Settled:
    """So long ago is meant by the broker's clock, which is asked when it matters."""
    if isinstance(position, Ago):
        return AtTime(now_ms(connection) - position.duration_ms)
    return position


def settled_span(connection: Connection, first: Position, end: Position | None) -> Span:
    return Span(settled(connection, first), None if end is None else settled(connection, end))


def resolve(
    connection: Connection, topic: str, partitions: Sequence[int], position: Settled
) -> list[Reading]:
    """The first offset to read in each partition."""
    held = offset_ranges(connection, topic, partitions)
    match position:
        case Start():
            return [
                Reading(topic, partition, held[partition].start, held[partition]) for partition in partitions
            ]
        case End():
            return [
                Reading(topic, partition, held[partition].end, held[partition]) for partition in partitions
            ]
        case AtOffset(offset):
            return [
                Reading(topic, partition, _within(offset, held[partition]), held[partition], offset)
                for partition in partitions
            ]
        case Last(count):
            return [
                Reading(
                    topic, partition, _within(held[partition].end - count, held[partition]), held[partition]
                )
                for partition in partitions
            ]
        case AtTime(timestamp_ms):
            found = offsets_at_time(connection, topic, partitions, timestamp_ms)
            return [
                Reading(topic, partition, _or_end(found[partition], held[partition]), held[partition])
                for partition in partitions
            ]
    assert_never(position)


def resolve_span(connection: Connection, topic: str, partitions: Sequence[int], span: Span) -> list[Reading]:
    """The first offset to read in each partition, and where to stop."""
    readings = resolve(connection, topic, partitions, span.first)
    if span.end is None:
        return readings
    bounds = resolve(connection, topic, partitions, span.end)
    return [replace(reading, bound=bound) for reading, bound in zip(readings, bounds, strict=True)]


def shifted(connection: Connection, topic: str, known: Mapping[int, int], by: int) -> list[Reading]:
    """So many offsets further in each partition, or back, as far as there are any."""
    held = offset_ranges(connection, topic, list(known))
    return [
        Reading(topic, partition, _within(offset + by, held[partition]), held[partition], max(0, offset + by))
        for partition, offset in known.items()
    ]


def choose_partitions(connection: Connection, topic: str, wanted: list[int] | None) -> list[int]:
    """The partitions that were named, all of them if none was; naming one that is not there is an error."""
    present = partitions_of(connection, topic)
    if missing := sorted(set(wanted or []) - set(present)):
        raise CommandError(
            f"topic {topic} has no partition {', '.join(map(str, missing))}",
            remedy=f"it has {present[0]} to {present[-1]}",
            code=ExitCode.NOT_FOUND,
        )
    return sorted(set(wanted)) if wanted else present


def _within(offset: int, held: OffsetRange) -> int:
    return min(max(offset, held.start), held.end)


def _or_end(offset: int | None, held: OffsetRange) -> int:
    return held.end if offset is None else offset
