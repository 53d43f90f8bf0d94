"""What a leader keeps of a partition with followers while its log is closed: how far they are, who copies.

A partition rests when everything in it is committed and all in sync have said so, and nobody who is not in
sync copies it. Then there is nothing for it to decide: the high watermark is the end, a follower at the end
is told of nothing new, and one that stands anywhere else has the log opened. What rests wakes with the first
write, and the `Partition` takes over what is here. A new image ends the rest of what it names: those who copy
are looked at anew under it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Union
from uuid import UUID

from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.replication.follower_states import FollowerFetch, FollowerStates
from riverlog.replication.tenure import Asker

if TYPE_CHECKING:
    from riverlog.replication.partition import Partition

Watched = Union["Partition", "Resting", None]


class PartitionWatcher(Protocol):
    def on_partition_changed(self, partition: "Partition") -> None:
        """There are more records, or the watermark, the log start or the role is another. Called in the
        middle of a change: it may only note that there was one, and look later."""
        ...

    def asked(self, partition: "Partition") -> Asker | None:
        """Who copies the partition from its leader of this epoch; None for nobody."""
        ...

    def hurry(self) -> None:
        """Have its fetch answered, so that the next one comes."""
        ...

    def may_rest(self, partition: "Partition") -> bool:
        """Whether there is nothing for it to hear of until somebody writes."""
        ...

    def move_to(self, watched: Watched) -> None:
        """It watches this from now on; None: nothing, and it has to look anew."""
        ...


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
        topic_id: UUID,
        leader_epoch: LeaderEpoch,
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
        self.watchers: dict[PartitionWatcher, None] = {}

    def on_replica_fetch(self, fetch: FollowerFetch, now_s: float) -> None:
        """Of a follower in sync that has everything."""
        self.followers.note(fetch, now_s, self.log_end_offset)

    def add_watcher(self, watcher: PartitionWatcher) -> None:
        self.watchers[watcher] = None

    def remove_watcher(self, watcher: PartitionWatcher) -> None:
        self.watchers.pop(watcher, None)


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
            for watcher in tuple(resting.watchers):
                watcher.move_to(None)

    def wake_all(self) -> None:
        for topic_partition in tuple(self._resting):
            self.wake(topic_partition)
