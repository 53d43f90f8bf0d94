"""The committed offsets of a group as they were in one moment, for an answer that takes longer than that.

What it rests on is committed before it is handed out, and what is committed later is not in it: a commit of
many offsets is in an answer as a whole, or not at all.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from riverlog.coordinator.groups.offsets.requests import FoundOffset
from riverlog.coordinator.groups.offsets.table import OffsetTable
from riverlog.model.errors import ErrorCode


class OffsetsCopy(NamedTuple):
    table: OffsetTable
    """With nothing of other groups."""
    group_id: str
    wanted: Sequence[tuple[str, Sequence[int]]]
    require_stable: bool

    def found(self) -> Iterator[tuple[str, Iterator[FoundOffset]]]:
        """By topic; each is looked up when it is read."""
        for topic, partitions in self.wanted:
            yield topic, (self._find(topic, each) for each in partitions)

    def _find(self, topic: str, partition: int) -> FoundOffset:
        return find(self.table, self.group_id, topic, partition, self.require_stable)


def find(table: OffsetTable, group_id: str, topic: str, partition: int, require_stable: bool) -> FoundOffset:
    if require_stable and table.is_pending(group_id, topic, partition):
        return FoundOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    found = table.get(group_id, topic, partition)
    if found is None:
        return FoundOffset(partition)
    return FoundOffset(partition, found.offset, found.leader_epoch, found.metadata)
