"""All partitions that this node holds, opened when they are first read or written.

Follows the cluster image: roles, deletions and configs take effect in `apply`, before a request that waited
for the change goes on. Only the partitions that the delta names are looked at. A partition that was not read
or written since the start costs nothing here, however many there are; its log is opened (and, if new,
created) by the first write to it, or by the first read of what is in it. Questions (`look`) neither open nor
make it, and nor do followers that have all there is (`resting`). A log whose replica was taken off this node
is deleted, as is that of a deleted topic. Not here: which role the metadata gives this node
(`assigned_roles`).
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol
from uuid import UUID

from riverlog.metadata.delta import ImageDelta, PartitionChange
from riverlog.metadata.image import ClusterImage, PartitionImage, ResourceType
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import BrokerEpoch, NodeId, TopicId, TopicPartition
from riverlog.replication.assigned_roles import AssignedRoles
from riverlog.replication.idle_partition import IdlePartition, IdleReaders, LookedAt
from riverlog.replication.leading.follower_states import FollowerStates
from riverlog.replication.leading.standing import Standing
from riverlog.replication.partition import Partition
from riverlog.replication.resting import Resting, RestingPartitions
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.storage.log.closed_log import ClosedLog, LogFacts
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log

_logger = logging.getLogger(__name__)


class Logs(Protocol):
    """The logs on this node's disks."""

    @property
    def changes(self) -> int:
        """Another number whenever `facts_of` may answer otherwise than before."""
        ...

    def open_log(self, topic_partition: TopicPartition, topic_id: TopicId) -> Log:
        """The log, created if it is new, with its topic's config. Raises `StorageError`, `DiskFullError`."""
        ...

    def facts_of(self, topic_partition: TopicPartition, topic_id: TopicId) -> LogFacts | None:
        """What is known of a log that is not open; None where it must be opened for that. Raises
        `StorageError` where `open_log` would."""
        ...

    def look_inside(self, topic_partition: TopicPartition, topic_id: TopicId) -> AbstractContextManager[Log]:
        """A log that is not open and has facts, opened for a moment."""
        ...

    def delete_log(self, topic_partition: TopicPartition) -> None: ...

    def holds_log(self, topic_partition: TopicPartition) -> bool:
        """Whether it has ever been opened."""
        ...


class ReplicaSet:
    def __init__(
        self,
        node_id: NodeId,
        logs: Logs,
        flusher: Flusher,
        log_config: Callable[[ClusterImage, str], LogConfig],
        *,
        is_alone: bool = True,
    ) -> None:
        """`is_alone`: no other broker could have led in this one's absence, so that it leads what it led
        before a restart. Otherwise it takes a partition only from a controller that knows of its present
        registration."""
        self.node_id = node_id
        self._logs = logs
        self._flusher = flusher
        self._log_config = log_config
        self.standing = Standing()
        self._roles = AssignedRoles(node_id, self.standing, is_alone=is_alone)
        self.ahead = self._roles.ahead
        self._image = ClusterImage()
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._idle = IdleReaders()
        self._resting = RestingPartitions()
        self._failed: set[TopicPartition] = set()
        """In directories that have failed; opened or not."""
        self._looked_at = LookedAt()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        """The partitions that have been opened."""
        return iter(tuple(self._partitions.values()))

    def find(self, topic: str, index: int) -> Partition | ErrorCode:
        partition = self._partitions.get((topic, index))
        return partition if partition is not None else self._open(topic, index)

    @property
    def image(self) -> ClusterImage:
        return self._image

    def config_of(self, topic: str) -> LogConfig:
        return self._log_config(self._image, topic)

    def image_of(self, partition: Partition) -> PartitionImage | None:
        """What the metadata says of it; None when it is gone."""
        topic = self._image.topics.get(partition.topic_partition.topic)
        if topic is None or topic.topic_id != partition.topic_id:
            return None
        return self._image.partition(*partition.topic_partition)

    def look(self, topic: str, index: int) -> Partition | IdlePartition | ErrorCode:
        """For a question: a log is neither made by it nor opened, unless it is not known how much of it is
        committed."""
        key = topic, index
        partition = self._partitions.get(key)
        if partition is not None:
            return partition
        # A reader that waits for many asks for each of them again and again, so they are kept.
        idle = self._looked_at.kept.get(key)
        if idle is not None and self._logs.changes == self._looked_at.changes:
            return idle
        return self._look_at_closed(topic, index)

    def look_by_id(self, topic_id: UUID | None, index: int) -> Partition | IdlePartition | ErrorCode:
        topic = None if topic_id is None else self._image.topic_names.get(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self.look(topic, index)

    def closed_copy(self, topic: str, index: int, topic_id: TopicId) -> tuple[Role, LogFacts] | None:
        """The role of a partition here whose log is closed, and what is known of that; None for any other,
        and where that cannot be told."""
        image = self._placed(topic, index)
        if (topic, index) in self._partitions or isinstance(image, ErrorCode):
            return None
        if self._image.topics[topic].topic_id != topic_id:
            return None
        try:
            facts = self._logs.facts_of(TopicPartition(topic, index), topic_id)
        except (StorageError, DiskFullError):
            return None
        if facts is None or self._roles.goes_beyond(facts, image):
            return None
        return self._roles.of(image), facts

    def rest(self, idle: IdlePartition, follower: NodeId, broker_epoch: BrokerEpoch) -> Resting | None:
        """What is kept of a closed partition that this node leads, for a follower that has all of it; None
        where it has to be opened for that follower."""
        image = self._placed(*idle.topic_partition)
        if isinstance(image, ErrorCode) or not isinstance(idle.role, Leader):
            return None
        if follower not in image.isr or not self.standing.is_present(follower, broker_epoch):
            return None
        state, epoch = idle.log.state, idle.role.epoch
        return self._resting.of(
            idle.topic_partition,
            lambda: Resting(
                idle.topic_partition,
                idle.topic_id,
                epoch,
                log_start_offset=state.log_start_offset,
                log_end_offset=state.log_end_offset,
                followers=FollowerStates(),
            ),
        )

    def wake(self, topic_partition: TopicPartition) -> None:
        """Records were deleted from a closed log."""
        self._resting.wake(topic_partition)

    def has_log(self, topic: str, index: int) -> bool:
        """Whether anything can be in the partition; asking does not create it."""
        return (topic, index) in self._partitions or self._logs.holds_log(TopicPartition(topic, index))

    def find_by_id(self, topic_id: UUID | None, index: int) -> Partition | ErrorCode:
        topic = None if topic_id is None else self._image.topic_names.get(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self.find(topic, index)

    def opened(self, topic_partition: TopicPartition) -> Partition | None:
        """What requests are given, if its log is open."""
        return self._partitions.get(topic_partition)

    def let_go(self, partition: Partition) -> None:
        """Its log is about to be closed; it must be at rest. Those who wait for records go on waiting."""
        del self._partitions[partition.topic_partition]
        if isinstance(partition.role, Leader) and not partition.in_sync.is_sole:
            self._roles.note_let_go(partition.topic_partition, partition.role.epoch)
        if (resting := partition.rest()) is not None:
            self._resting.put(resting)
        if readers := partition.retire():
            self._idle.put(partition.topic_partition, readers)

    def close(self) -> None:
        """Lead nothing any more: from here on nothing is appended, and the logs can be saved and closed.

        What comes late, a timer or a request that is still being cancelled, is refused as by a broker
        that has handed over the partition.
        """
        self._is_closed = True
        self._looked_at.forget_all()
        self._resting.wake_all()
        for partition in self:
            partition.take_role(Follower(partition.leader_epoch, None))
        self._idle.disturb_all()

    def fail(self, partitions: Iterable[tuple[TopicPartition, TopicId]]) -> None:
        """The directory of these has failed: nothing of them is served until the next start."""
        self._looked_at.forget_all()
        for topic_partition, topic_id in partitions:
            self._failed.add(topic_partition)
            self._resting.wake(topic_partition)
            partition = self._partitions.get(topic_partition)
            image = self._image.partition(*topic_partition)
            if partition is None or image is None:
                self._idle.disturb(topic_partition)
            elif partition.topic_id == topic_id:
                partition.take_role(self._roles.with_failed_directory(image))

    def has_failed(self, topic: str, index: int) -> bool:
        return (topic, index) in self._failed

    def apply(self, delta: ImageDelta) -> None:
        """Take over a new image."""
        if self._is_closed:
            return
        self._image = delta.new
        self._looked_at.forget_all()
        self.standing.brokers = delta.new.brokers
        for name, topic in delta.deleted.items():
            for index, image in enumerate(topic.partitions):
                self._drop(name, index, image, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for name, changes in delta.partitions.items():
            for change in changes:
                self._follow(name, change)
        if delta.configs:
            self._update_configs(delta)
        if delta.old.brokers.get(self.node_id) != delta.new.brokers.get(self.node_id):
            self._take_roles()

    def _take_roles(self) -> None:
        """Look at all partitions again: this broker is registered anew, or not any more."""
        self._idle.disturb_all()
        self._resting.wake_all()
        for topic, index in list(self._partitions):
            image = self._image.partition(topic, index)
            if image is not None:
                self._follow(topic, PartitionChange(index, image, image))

    def _placed(self, topic: str, index: int) -> PartitionImage | ErrorCode:
        image = self._image.partition(topic, index)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._is_closed or self.node_id not in image.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return image

    def _look_at_closed(self, topic: str, index: int) -> Partition | IdlePartition | ErrorCode:
        self._looked_at.make_room(self._logs.changes)
        made = self._make_idle(topic, index)
        if isinstance(made, IdlePartition):
            self._looked_at.kept[topic, index] = made
        return made

    def _make_idle(self, topic: str, index: int) -> Partition | IdlePartition | ErrorCode:
        image = self._placed(topic, index)
        if isinstance(image, ErrorCode):
            return image
        topic_partition, topic_id = TopicPartition(topic, index), self._image.topics[topic].topic_id
        role, is_sole = self._roles.of(image), self._roles.in_sync(image).is_sole
        if not is_sole and topic_partition in self._failed:
            return self._roles.with_failed_directory(image).error
        try:
            facts = self._logs.facts_of(topic_partition, topic_id)
        except (StorageError, DiskFullError):
            return ErrorCode.KAFKA_STORAGE_ERROR  # That the directory has failed was told when it did.
        if facts is None or self._roles.goes_beyond(facts, image):
            return self._open(topic, index)
        if not is_sole and facts.high_watermark != facts.log_end_offset:
            return self._open(topic, index)  # How much of it is committed, others have to say.
        log = ClosedLog(
            facts,
            role.epoch if isinstance(role, Leader) else None,
            partial(self._log_config, self._image, topic),
            partial(self._logs.look_inside, topic_partition, topic_id),
            is_sole=is_sole,
        )
        return IdlePartition(topic_partition, topic_id, role, log, self._idle)

    def _open(self, topic: str, index: int) -> Partition | ErrorCode:
        image = self._placed(topic, index)
        if isinstance(image, ErrorCode):
            return image
        topic_partition = TopicPartition(topic, index)
        if topic_partition in self._failed:
            return self._roles.with_failed_directory(image).error
        topic_id = self._image.topics[topic].topic_id
        try:
            log = self._logs.open_log(topic_partition, topic_id)
        except (StorageError, DiskFullError) as error:
            _logger.error("%s cannot be opened: %s", topic_partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.state.update_config(self._log_config(self._image, topic))
        partition = Partition(
            log,
            topic_id,
            self._roles.with_log(log, image, is_opened=True),
            self._roles.in_sync(image),
            self._flusher,
            self.standing,
            readers=self._idle.take(topic_partition),
            rested=self._resting.take(topic_partition),
        )
        partition.begin()
        self._partitions[topic_partition] = partition
        return partition

    def note_ahead(self, partition: Partition) -> None:
        """Its leader was found to have another history under the same epoch."""
        image = self.image_of(partition)
        if image is not None and self._roles.note_ahead(partition.log, image):
            partition.take_role(self._roles.with_log(partition.log, image))

    def _follow(self, topic: str, change: PartitionChange) -> None:
        index, before, after = change
        if before is None:
            return  # An added partition is opened when it is asked for.
        if self.node_id not in after.replicas:
            self._drop(topic, index, before, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        partition = self._partitions.get((topic, index))
        if partition is None:
            self._idle.disturb(TopicPartition(topic, index))
            self._resting.wake(TopicPartition(topic, index))
        elif (topic, index) in self._failed:
            partition.take_role(self._roles.with_failed_directory(after))
        elif not isinstance(partition.role, Offline):
            partition.take_role(self._roles.with_log(partition.log, after), self._roles.in_sync(after))

    def _drop(self, topic: str, index: int, image: PartitionImage, error: ErrorCode) -> None:
        """Let go of a partition that was here under `image`, and of its log."""
        if self.node_id not in image.replicas:
            return
        partition = self._partitions.pop((topic, index), None)
        if partition is not None:
            partition.take_role(Offline(image.leader_epoch, error))
        self._failed.discard(TopicPartition(topic, index))
        self._roles.forget(TopicPartition(topic, index))
        self._logs.delete_log(TopicPartition(topic, index))
        self._idle.drop(TopicPartition(topic, index))
        self._resting.wake(TopicPartition(topic, index))

    def _update_configs(self, delta: ImageDelta) -> None:
        """A setting of brokers is the default of every topic; one of a topic concerns that topic alone."""
        concerns_all = delta.changes_configs_of(ResourceType.BROKER)
        topics = {resource.name for resource in delta.configs if resource.type is ResourceType.TOPIC}
        for partition in self:
            topic = partition.topic_partition.topic
            if not concerns_all and topic not in topics:
                continue
            config = self._log_config(delta.new, topic)
            if config != partition.log.config:
                partition.update_config(config)
