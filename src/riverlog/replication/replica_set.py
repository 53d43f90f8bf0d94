"""All partitions that this node holds, opened when they are first asked for.

Follows the cluster image: roles, deletions and configs take effect in `apply`, before anybody who waited for
the change goes on. A partition that nobody has asked for since the start costs nothing here, however many
there are; its log is opened (and, if new, created) by the first request for it.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Protocol
from uuid import UUID

from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.storage.flusher import Flusher
from riverlog.storage.log import Log

_logger = logging.getLogger(__name__)


class Logs(Protocol):
    """The logs on this node's disks."""

    def open_log(self, topic_partition: TopicPartition, topic_id: UUID) -> Log:
        """The log, created if it is new, with its topic's config. Raises `StorageError`, `DiskFullError`."""
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
    ) -> None:
        self.node_id = node_id
        self._logs = logs
        self._flusher = flusher
        self._log_config = log_config
        self._image = ClusterImage()
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        """The partitions that have been opened."""
        return iter(tuple(self._partitions.values()))

    def find(self, topic: str, index: int) -> Partition | ErrorCode:
        partition = self._partitions.get((topic, index))
        return partition if partition is not None else self._open(topic, index)

    def has_log(self, topic: str, index: int) -> bool:
        """Whether anything can be in the partition; asking does not create it."""
        return (topic, index) in self._partitions or self._logs.holds_log(TopicPartition(topic, index))

    def find_by_id(self, topic_id: UUID | None, index: int) -> Partition | ErrorCode:
        topic = None if topic_id is None else self._image.topic_names.get(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self.find(topic, index)

    def close(self) -> None:
        """Lead nothing any more: from here on nobody appends, and the logs can be saved and closed.

        Whoever is late, be it a timer or a request that is still being given up, is refused like by a broker
        that has handed over the partition.
        """
        self._is_closed = True
        for partition in self:
            partition.take_role(Follower(partition.leader_epoch, None))

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Take over a new image; `old` is the one before it."""
        if self._is_closed:
            return
        self._image = new
        if old.topics is not new.topics:
            self._drop_deleted(old, new)
            self._update_roles(new)
        if old.configs is not new.configs:
            self._update_configs(new)

    def _open(self, topic: str, index: int) -> Partition | ErrorCode:
        image = self._image.partition(topic, index)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._is_closed or self.node_id not in image.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        topic_partition = TopicPartition(topic, index)
        topic_id = self._image.topics[topic].topic_id
        try:
            log = self._logs.open_log(topic_partition, topic_id)
        except (StorageError, DiskFullError) as error:
            _logger.error("%s cannot be opened: %s", topic_partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.update_config(self._log_config(self._image, topic))
        partition = Partition(log, topic_id, self._role(image), self._flusher)
        partition.begin()
        self._partitions[topic_partition] = partition
        return partition

    def _role(self, image: PartitionImage) -> Role:
        if image.leader == self.node_id:
            return Leader(image.leader_epoch, image.isr, len(image.replicas))
        return Follower(image.leader_epoch, image.leader)

    def _drop_deleted(self, old: ClusterImage, new: ClusterImage) -> None:
        for name, topic in _gone(old, new):
            for index, image in enumerate(topic.partitions):
                if self.node_id not in image.replicas:
                    continue
                partition = self._partitions.pop((name, index), None)
                if partition is not None:
                    partition.take_role(Offline(image.leader_epoch, is_deleted=True))
                self._logs.delete_log(TopicPartition(name, index))

    def _update_roles(self, new: ClusterImage) -> None:
        for partition in self:
            topic, index = partition.topic_partition
            image = new.partition(topic, index)
            if image is not None and not isinstance(partition.role, Offline):
                partition.take_role(self._role(image))

    def _update_configs(self, new: ClusterImage) -> None:
        for partition in self:
            config = self._log_config(new, partition.topic_partition.topic)
            if config != partition.log.config:
                partition.update_config(config)


def _gone(old: ClusterImage, new: ClusterImage) -> list[tuple[str, TopicImage]]:
    """Topics that are not there any more, or only as another topic of the same name."""
    return [
        (name, topic)
        for name, topic in old.topics.items()
        if (kept := new.topics.get(name)) is not topic and (kept is None or kept.topic_id != topic.topic_id)
    ]
