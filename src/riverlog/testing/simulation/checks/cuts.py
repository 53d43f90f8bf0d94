"""After a cut at its end nothing of a log speaks of what is gone: neither what it knows of producers, nor the
leader epochs, nor the index of aborted transactions (I10). Looked at right after the cut, since what a
replica copies next hides much of it."""

import struct
from typing import Final

from riverlog.replication.partition import Partition
from riverlog.storage.files import names
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.violations import Violation

_ABORTED: Final = struct.Struct(">hqqqq")
"""Version, producer id, first offset, last offset, last stable offset."""


def check_cut(partition: Partition, disk: SimulatedDisk, where: str) -> None:
    end = partition.log.log_end_offset
    for producer_id, entry in partition.log.producers:
        last = max((batch.last_offset for batch in entry.batches), default=-1)
        if last >= end or (entry.transaction_first_offset or -1) >= end:
            what = f"producer {producer_id} is known to have written {last}"
            raise Violation("I10", f"{where}: cut to {end}, {what}")
    for epoch, start in partition.log.state.epochs.entries:
        if start > end:
            raise Violation("I10", f"{where}: cut to {end}, epoch {epoch} is known to begin at {start}")
    for producer_id, last in _aborted(partition, disk):
        if last >= end:
            what = f"a transaction of producer {producer_id} is known to be aborted at {last}"
            raise Violation("I10", f"{where}: cut to {end}, {what}")


def _aborted(partition: Partition, disk: SimulatedDisk) -> list[tuple[int, int]]:
    base = partition.log.state.segments.active.base_offset
    path = names.segment_path(partition.log.directory, base, names.TRANSACTION_INDEX)
    content = disk.peek_if_there(path)
    if not content:
        return []
    whole = bytes(content[: len(content) // _ABORTED.size * _ABORTED.size])
    return [(producer_id, last) for _, producer_id, _, last, _ in _ABORTED.iter_unpack(whole)]
