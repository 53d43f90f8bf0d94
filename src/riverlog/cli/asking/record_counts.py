"""How many records a partition holds. Offsets alone do not tell: markers of transactions have some, too, and
records that compaction has removed leave gaps.

No API tells the number, so the batches are fetched and the numbers in their headers added up, without those
of markers. That is done for as much as a person would wait for, and not where connections are not plain.
"""

import time
from collections.abc import Mapping
from typing import Final

from riverlog.cli.asking.batches import headers_from
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import OffsetRange, Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError

BYTES_READ_MAX: Final = 64 * 1024 * 1024


def record_counts(
    connection: Connection, topic: str, held: Mapping[int, OffsetRange], sizes: Mapping[int, int]
) -> dict[int, int]:
    """By partition; those are missing that are too large, or could not be read in time."""
    deadline = time.monotonic() + connection.timeout_s
    counts: dict[int, int] = {}
    left = BYTES_READ_MAX
    try:
        with Brokers(connection) as brokers:
            for partition, size in sorted(sizes.items(), key=lambda each: each[1]):
                left -= size
                if left < 0 or partition not in held:
                    continue
                count = _count(brokers, connection, (topic, partition), held[partition], deadline)
                if count is not None:
                    counts[partition] = count
    except (CommandError, ValueError):
        pass  # Damaged, or gone: the number is worth showing, but not worth failing for.
    return counts


def _count(
    brokers: Brokers, connection: Connection, place: Place, held: OffsetRange, deadline: float
) -> int | None:
    from riverlog.records.record import records_of

    count, offset = 0, held.start
    while offset < held.end:
        batches = headers_from(brokers, connection, place, offset)
        if not batches or time.monotonic() > deadline:
            return None
        for header, buffer, position in batches:
            if header.is_control or header.base_offset >= held.end:
                pass
            elif header.base_offset >= held.start and header.next_offset <= held.end:
                count += header.record_count
            else:
                count += sum(held.start <= each.offset < held.end for each in records_of(buffer, position))
            offset = max(offset, header.next_offset)
    return count
