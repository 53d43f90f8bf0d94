"""AlterReplicaLogDirs 1-2: the data directory that a replica shall be in.

The answer says that a move was begun, or that there is nothing to do; DescribeLogDirs shows how far it is.
To ask for the directory where a log is already calls off a move elsewhere. A partition that was never used
yet has no files and begins its life where it is asked for.
"""

from typing import Protocol

from riverlog.broker.exchange.context import RequestContext
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


class ReplicaPlaces(Protocol):
    def has_directory(self, path: str) -> bool: ...

    def place(self, topic_partition: TopicPartition, topic_id: TopicId, path: str) -> ErrorCode:
        """See to it that the log will be in this directory, which there is."""
        ...


class AlterReplicaLogDirsHandler:
    def __init__(self, follower: MetadataFollower, places: ReplicaPlaces) -> None:
        self._follower = follower
        self._places = places

    def handle(
        self, request: AlterReplicaLogDirsRequest, context: RequestContext
    ) -> AlterReplicaLogDirsResponse:
        """Of a partition that occurs more than once the last directory counts."""
        wanted: dict[TopicPartition, str] = {}
        for directory in request.dirs:
            for topic in directory.topics:
                for index in topic.partitions:
                    wanted[TopicPartition(topic.name, index)] = directory.path
        results: dict[str, AlterReplicaLogDirTopicResult] = {}
        for topic_partition, path in wanted.items():
            name, index = topic_partition
            answer = results.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
            answer.partitions.append(
                AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=self._place(topic_partition, path)
                )
            )
        return AlterReplicaLogDirsResponse(results=list(results.values()))

    def _place(self, topic_partition: TopicPartition, path: str) -> ErrorCode:
        if not self._places.has_directory(path):
            return ErrorCode.LOG_DIR_NOT_FOUND
        image = self._follower.image
        if image.partition(*topic_partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._places.place(topic_partition, image.topics[topic_partition.topic].topic_id, path)
