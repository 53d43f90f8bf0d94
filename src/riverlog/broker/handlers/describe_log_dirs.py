"""DescribeLogDirs 1-5: data directories, how full they are, and the size of the partitions in them.

A null list of topics asks for all partitions, the empty one for none. Partitions that are not here are left
out, and so are logs that were moved aside, as in Kafka. A copy on its way into a directory is shown there,
beside the partitions. No directory is ever cordoned (5).
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from riverlog.broker.exchange.context import RequestContext
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.storage.directory.described import DescribedDirectory
from riverlog.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class LogDirectories(Protocol):
    async def describe(self, wanted: Collection[TopicPartition] | None) -> Sequence[DescribedDirectory]:
        """Every data directory; with `None`, all partitions. Does not open logs, nor block the event loop."""
        ...


class DescribeLogDirsHandler:
    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    async def handle(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> DescribeLogDirsResponse:
        wanted: dict[TopicPartition, None] | None = None
        if request.topics is not None:
            wanted = {
                TopicPartition(topic.topic, index): None
                for topic in request.topics
                for index in topic.partitions
            }
        directories = await self._directories.describe(None if wanted is None else wanted.keys())
        return DescribeLogDirsResponse(results=[_result(directory, wanted) for directory in directories])


def _result(
    directory: DescribedDirectory, wanted: Collection[TopicPartition] | None
) -> DescribeLogDirsResult:
    if directory.is_offline:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for each in directory.sizes_bytes if wanted is None else wanted:
        size = directory.sizes_bytes.get(each)
        if size is None:
            continue
        topic = topics.setdefault(each.topic, DescribeLogDirsTopic(name=each.topic))
        topic.partitions.append(DescribeLogDirsPartition(partition_index=each.partition, partition_size=size))
    for each, future in directory.futures.items():
        topic = topics.setdefault(each.topic, DescribeLogDirsTopic(name=each.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=each.partition,
                partition_size=future.size_bytes,
                offset_lag=future.offset_lag,
                is_future_key=True,
            )
        )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=list(topics.values()),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
