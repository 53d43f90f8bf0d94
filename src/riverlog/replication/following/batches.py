"""What of a leader's answer may be stored: whole, undamaged batches that go on where the own log ends. Pure.

A leader sends its file without a look, so the CRC is what keeps a flipped bit of its disk off the others. A
leader that lost its office meanwhile may send what a later one has written in the same place of the file
(KAFKA-18723): batches of a higher epoch than was asked under are not taken.
"""

from typing import NamedTuple

from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import BatchHeader, CorruptBatch, crc_is_valid, walk
from riverlog.records.rules import Accepted


class BadBatch(NamedTuple):
    """Nothing from this offset on can be stored."""

    offset: int
    reason: str


class CheckedBatches(NamedTuple):
    good: Accepted | None
    """None where not even one batch is whole."""
    bad: BadBatch | None
    """The first behind the good ones that cannot be stored, if there is one."""


def check_batches(records: memoryview, *, end_offset: int, leader_epoch: LeaderEpoch) -> CheckedBatches:
    """Those that go on at `end_offset`. The first may begin before that: a leader whose log starts within a
    batch sends all of it."""
    good: list[tuple[int, BatchHeader]] = []
    bad: BadBatch | None = None
    next_offset = end_offset
    try:
        for position, header in walk(records):
            fault = _fault(records, position, header, next_offset, leader_epoch, is_first=not good)
            if fault is not None:
                bad = BadBatch(next_offset, fault)
                break
            good.append((position, header))
            next_offset = header.next_offset
    except CorruptBatch as error:
        bad = BadBatch(next_offset, str(error))
    return CheckedBatches(_accepted(records, good), bad)


def _fault(
    records: memoryview,
    position: int,
    header: BatchHeader,
    next_offset: int,
    leader_epoch: LeaderEpoch,
    *,
    is_first: bool,
) -> str | None:
    if header.last_offset_delta < 0:
        return f"its last offset delta is {header.last_offset_delta}"
    if header.base_offset < next_offset and not (is_first and header.last_offset >= next_offset):
        return f"it begins at {header.base_offset}, before {next_offset}"
    if header.leader_epoch > leader_epoch:
        return f"it is of epoch {header.leader_epoch}, and its leader of {leader_epoch}"
    if not crc_is_valid(records, position, header):
        return "its CRC is wrong"
    return None


def _accepted(records: memoryview, good: list[tuple[int, BatchHeader]]) -> Accepted | None:
    if not good:
        return None
    last_position, last = good[-1]
    return Accepted(
        records[: last_position + last.size_bytes],
        tuple(good),
        sum(header.record_count for _, header in good),
        max(header.max_timestamp_ms for _, header in good),
    )
