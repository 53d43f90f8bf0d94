"""Where an append comes from, what it is made of, and how it can end. Values only."""

from enum import Enum
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import BatchHeader
from riverlog.storage.producers.state import EndMarker

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""Indexes hold offsets relative to the first of their segment."""


class PlacedBatch(NamedTuple):
    """A batch on its way into the log; `header.base_offset` is still the client's."""

    base_offset: int
    last_offset: int
    header: BatchHeader
    marker: EndMarker | None


def split_by_segment(placed: list[PlacedBatch], segment_bytes: int) -> list[list[PlacedBatch]]:
    """Runs of batches that fit into a segment each, in bytes and in offsets; a batch that is larger than a
    segment is alone in its own."""
    runs: list[list[PlacedBatch]] = []
    left_bytes = 0
    for batch in placed:
        size_bytes = batch.header.size_bytes
        if (
            not runs
            or size_bytes > left_bytes
            or batch.last_offset - runs[-1][0].base_offset > RELATIVE_OFFSET_MAX
        ):
            runs.append([])
            left_bytes = segment_bytes
        runs[-1].append(batch)
        left_bytes -= size_bytes
    return runs


class AppendOrigin(Enum):
    """What is checked: a client's sequences, a coordinator's epochs, of a leader's batches only the order."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class Appended(NamedTuple):
    """The batches are in the log. `append_time_ms` is None where records carry the producer's time."""

    first_offset: int
    last_offset: int
    append_time_ms: int | None


class Duplicate(NamedTuple):
    """The batch was in the log already, at these offsets."""

    first_offset: int
    last_offset: int
    append_time_ms: int | None


class Refused(NamedTuple):
    error: ErrorCode
    message: str


AppendOutcome = Appended | Duplicate | Refused


class OffsetOutOfRange(NamedTuple):
    """The offset asked for is not in the log; these are its bounds."""

    log_start_offset: int
    log_end_offset: int
