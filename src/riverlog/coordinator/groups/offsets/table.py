"""The committed offsets of a shard, and those that open transactions may yet commit. Hard state only.

Changed by replay alone. A pending offset counts when its transaction commits, unless a record that stands
later in the log has spoken for the same partition since. Not here: who may commit, and when offsets expire.
"""

from collections.abc import Collection, Iterator, Mapping

from riverlog.coordinator.groups.offsets.committed import CommittedOffset, Kept, unpack
from riverlog.model.ids import TopicPartition

Partitions = dict[int, Kept]


class OffsetTable:
    def __init__(self) -> None:
        self._committed: dict[str, dict[str, Partitions]] = {}
        self._pending: dict[int, dict[tuple[str, str, int], Kept]] = {}
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Committed offsets, without the pending ones."""
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetTable):
            return NotImplemented
        return (self._committed, self._pending, self._open) == (other._committed, other._pending, other._open)

    __hash__ = None  # type: ignore[assignment]  # the table changes

    def group_ids(self) -> Collection[str]:
        return dict.fromkeys((*self._committed, *self._open)).keys()

    def has_any(self, group_id: str) -> bool:
        return group_id in self._committed or group_id in self._open

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        kept = self._committed.get(group_id, _NONE).get(topic, _NO_PARTITIONS).get(partition)
        return None if kept is None else unpack(kept)

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for topic, partitions in self._committed.get(group_id, _NONE).items():
            for partition, kept in partitions.items():
                yield TopicPartition(topic, partition), unpack(kept)

    def topics_of(self, group_id: str) -> Mapping[str, Collection[int]]:
        """The partitions that have an offset, by topic."""
        return self._committed.get(group_id, _NONE)

    def copy_of(self, group_id: str) -> "OffsetTable":
        """What the group has committed, and which partitions are pending, as it is now."""
        copy = OffsetTable()
        if topics := self._committed.get(group_id):
            copy._committed[group_id] = {topic: dict(partitions) for topic, partitions in topics.items()}
        if opened := self._open.get(group_id):
            copy._open[group_id] = dict(opened)
        return copy

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for the partition."""
        pending = self._open.get(group_id)
        return pending is not None and (topic, partition) in pending

    def pending_of(self, group_id: str) -> Collection[TopicPartition]:
        return self._open.get(group_id, {}).keys()

    def apply_commit(self, group_id: str, topic: str, partition: int, committed: Kept) -> None:
        partitions = self._committed.setdefault(group_id, {}).setdefault(topic, {})
        self._count += partition not in partitions
        partitions[partition] = committed

    def apply_pending(
        self, producer_id: int, group_id: str, topic: str, partition: int, committed: Kept
    ) -> None:
        self._pending.setdefault(producer_id, {})[group_id, topic, partition] = committed
        opened = self._open.setdefault(group_id, {})
        opened.setdefault(TopicPartition(topic, partition), set()).add(producer_id)

    def apply_removal(self, group_id: str, topic: str, partition: int) -> None:
        """Also what open transactions hold for the partition."""
        topics = self._committed.get(group_id, _NONE)
        partitions = topics.get(topic, _NO_PARTITIONS)
        if partitions.pop(partition, None) is not None:
            self._count -= 1
            if not partitions:
                del topics[topic]
                if not topics:
                    del self._committed[group_id]
        for producer_id in tuple(self._open.get(group_id, {}).get(TopicPartition(topic, partition), ())):
            del self._pending[producer_id][group_id, topic, partition]
            if not self._pending[producer_id]:
                del self._pending[producer_id]
            self._close(producer_id, group_id, topic, partition)

    def apply_end(self, producer_id: int, *, committed: bool) -> None:
        """The transaction has ended: its offsets count now, or never did."""
        for (group_id, topic, partition), pending in self._pending.pop(producer_id, {}).items():
            self._close(producer_id, group_id, topic, partition)
            if not committed:
                continue
            present = self.get(group_id, topic, partition)
            if present is None or present.record_offset < unpack(pending).record_offset:
                self.apply_commit(group_id, topic, partition, pending)

    def _close(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        opened = self._open[group_id]
        producers = opened[TopicPartition(topic, partition)]
        producers.discard(producer_id)
        if not producers:
            del opened[TopicPartition(topic, partition)]
            if not opened:
                del self._open[group_id]


_NONE: dict[str, Partitions] = {}
_NO_PARTITIONS: Partitions = {}
