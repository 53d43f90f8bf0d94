"""What a leader keeps of a partition with followers while its log is closed: how far they are, who copies.

A partition rests when everything in it is committed and all in sync have said so, and nobody who is not in
sync copies it. Then there is nothing for it to decide: the high watermark is the end, a follower at the end
is told of nothing new, and one that stands anywhere else has the log opened. What rests wakes with the first
write, and the `Partition` takes over what is here. A new image ends the rest of what it names: those who copy
are looked at anew under it.
"""

from collections.abc import Callable

from riverlog.model.ids import LeaderEpoch, TopicId, TopicPartition
from riverlog.replication.leading.follower_states import FollowerFetch, FollowerStates
from riverlog.replication.watchers import PartitionWatcher, Watchers


class Resting:
    __slots__ = (
        "followers",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "topic_id",
        "topic_partition",
        "watchers",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        leader_epoch: LeaderEpoch,
        *,
        log_start_offset: int,
        log_end_offset: int,
        followers: FollowerStates,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        """And the high watermark."""
        self.followers = followers
        self.watchers = Watchers()

    def on_replica_fetch(self, fetch: FollowerFetch, now_s: float) -> None:
        """Of a follower in sync that has everything."""
        self.followers.note(fetch, now_s, self.log_end_offset)

    def add_watcher(self, watcher: PartitionWatcher) -> None:
        self.watchers.add(watcher)

    def remove_watcher(self, watcher: PartitionWatcher) -> None:
        self.watchers.remove(watcher)


class RestingPartitions:
    __slots__ = ("_resting",)

    def __init__(self) -> None:
        self._resting: dict[TopicPartition, Resting] = {}

    def __len__(self) -> int:
        return len(self._resting)

    def of(self, topic_partition: TopicPartition, make: Callable[[], Resting]) -> Resting:
        """What rests there, or else is to rest from now on."""
        resting = self._resting.get(topic_partition)
        if resting is None:
            resting = self._resting[topic_partition] = make()
        return resting

    def put(self, resting: Resting) -> None:
        self._resting[resting.topic_partition] = resting

    def take(self, topic_partition: TopicPartition) -> Resting | None:
        """What rests there does not any more; who watches it is for the caller to move."""
        return self._resting.pop(topic_partition, None)

    def wake(self, topic_partition: TopicPartition) -> None:
        """The image, or the log, is another: who copies it is looked at anew."""
        if (resting := self._resting.pop(topic_partition, None)) is not None:
            resting.watchers.move_to(None)

    def wake_all(self) -> None:
        for topic_partition in tuple(self._resting):
            self.wake(topic_partition)
