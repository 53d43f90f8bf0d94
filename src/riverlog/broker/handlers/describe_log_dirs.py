"""DescribeLogDirs 1-5: data directories, how full they are, and the size of the partitions in them.

A null list of topics asks for all partitions, the empty one for none. Partitions that are not here are left
out, and so are logs that were moved aside, as in Kafka. A copy on its way into a directory is shown there,
beside the partitions. No directory is ever cordoned (5).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.pieces import Pieces
from riverlog.storage.directory.described import DescribedDirectory
from riverlog.wire.codec import encoded_element
from riverlog.wire.dissolving import dissolve
from riverlog.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class LogDirectories(Protocol):
    def describe(self, wanted: Collection[TopicPartition] | None) -> Pieces[Sequence[DescribedDirectory]]:
        """Every data directory; with `None`, all partitions. Opens no log."""
        ...


class DescribeLogDirsHandler:
    def __init__(self, directories: LogDirectories) -> None:
        self._directories = directories

    def handle(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> InPieces[DescribeLogDirsResponse]:
        is_large = request.topics is None or len(request.topics) > SHORT_ENTRIES_MAX
        return InPieces(self._in_pieces(request, context.version), is_large)

    def _in_pieces(self, request: DescribeLogDirsRequest, version: int) -> Pieces[DescribeLogDirsResponse]:
        wanted: dict[TopicPartition, None] | None = None
        if request.topics is not None:
            wanted = {}
            for topic in request.topics:
                for index in topic.partitions:
                    wanted[TopicPartition(topic.topic, index)] = None
                    yield None
        directories = yield from self._directories.describe(None if wanted is None else wanted.keys())
        response = DescribeLogDirsResponse()
        for directory in directories:
            response.results.append((yield from _result(directory, wanted, version)))
        return response


def _result(
    directory: DescribedDirectory, wanted: Collection[TopicPartition] | None, version: int
) -> Pieces[DescribeLogDirsResult]:
    if directory.is_offline:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for each, size in _sizes(directory, wanted):
        yield None
        if size is not None:
            topic = topics.setdefault(each.topic, DescribeLogDirsTopic(name=each.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=each.partition, partition_size=size)
            )
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
    result = DescribeLogDirsResult(
        log_dir=directory.path, total_bytes=directory.total_bytes, usable_bytes=directory.usable_bytes
    )
    for topic in topics.values():
        result.topics.append((yield from encoded_element(topic, version)))
        yield from dissolve(topic)
    return result


def _sizes(
    directory: DescribedDirectory, wanted: Collection[TopicPartition] | None
) -> Iterator[tuple[TopicPartition, int | None]]:
    sizes = directory.sizes_bytes
    if wanted is not None:
        for each in wanted:
            yield each, sizes.get(each.topic, _NONE).get(each.partition)
        return
    for topic, partitions in sizes.items():
        for index, size in partitions.items():
            yield TopicPartition(topic, index), size


_NONE: Mapping[int, int] = {}
