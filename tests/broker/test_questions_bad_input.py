"""Requests of 100,000 entries about what is not there: answered as a single one is, in little memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from riverlog.wire.schema import Message
from tests.broker.raw_client import RawClient

ENTRIES = 100_000
MORE_MAX_BYTES = 100 * 1024**2
"""Of the broker and of who asks, who are one process here."""
OFFLINE, ABSENT = "offline", "absent"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def broker(path: Path) -> Iterator[Broker]:
    """With partitions in a directory that cannot be opened, or without one, so that they may be in it."""
    settings = {"log.dirs": f"{path}/a,{path}/b"}
    with Broker(settings) as broker, RawClient(broker) as client:
        client.create_topic(OFFLINE, partitions=1_000)
        for index in (0, 1):
            assert client.produce(OFFLINE, partition=index).error_code == ErrorCode.NONE
    (path / "b").rename(path / "kept")
    (path / "b").write_bytes(b"")
    with Broker(settings) as broker:
        yield broker


def questions(topic: str, indexes: list[int]) -> Iterator[tuple[ApiKey, int, Message]]:
    offsets = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in indexes]
    yield (
        ApiKey.LIST_OFFSETS,
        7,
        ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=offsets)]),
    )
    epochs = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in indexes]
    asked = [OffsetForLeaderTopic(topic=topic, partitions=epochs)]
    yield ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(topics=asked)
    producers = [TopicRequest(name=topic, partition_indexes=indexes)]
    yield ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=producers)
    described = [DescribableLogDirTopic(topic=topic, partitions=indexes)]
    yield ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=described)
    fetched = [FetchPartition(partition=index, partition_max_bytes=1) for index in indexes]
    yield ApiKey.FETCH, 12, FetchRequest(max_bytes=1, topics=[FetchTopic(topic=topic, partitions=fetched)])
    deleted = [DeleteRecordsPartition(partition_index=index, offset=0) for index in indexes]
    topics = [DeleteRecordsTopic(name=topic, partitions=deleted)]
    yield ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=1_000)


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def begin_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def entries_of(reply: Any) -> list[Any]:
    """What is said of each partition, without its number."""
    topics = getattr(reply, "topics", None) or getattr(reply, "responses", None) or []
    return [each for topic in topics for each in topic.partitions]


def numbered(entries: list[Any]) -> dict[int, Any]:
    found = {}
    for entry in entries:
        name = next(n for n in ("partition_index", "partition") if hasattr(entry, n))
        found[getattr(entry, name)] = entry
        setattr(entry, name, -1)
    return found


@pytest.mark.parametrize("which", range(6), ids=lambda number: list(questions("t", []))[number][0].name)
def test_partitions_that_do_not_exist_are_answered_as_one_is(broker: Broker, which: int) -> None:
    with RawClient(broker, timeout_s=300) as client:
        (few,) = entries_of(client.ask(*list(questions(ABSENT, [7]))[which])) or [None]
        key, version, request = list(questions(ABSENT, list(range(ENTRIES))))[which]
        before = begin_peak()
        client.send(key, version, request)
        frame = client.receive_frame()
        more = peak_bytes() - before
        api = APIS[key]
        reply, _ = decode(api.response, version, frame, 4 + api.response_header_version(version))
        if few is None:
            assert not entries_of(reply)
        else:
            expected = numbered([few])[7]
            answers = numbered(entries_of(reply))
            assert answers.keys() == set(range(ENTRIES))
            assert all(each == expected for each in answers.values())
            assert expected.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert more < MORE_MAX_BYTES, f"{more / 2**20:.0f} MiB"
        assert broker.node.open_logs == 0


def test_partitions_in_a_directory_that_is_offline_are_answered_as_one_is(broker: Broker, path: Path) -> None:
    indexes = [index for index in range(1_000) if not (path / "a" / f"{OFFLINE}-{index}").is_dir()]
    assert len(indexes) == 999
    assert len(list(path.glob(f"kept/{OFFLINE}-*"))) == 1
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in indexes]
    topics = [ListOffsetsTopic(name=OFFLINE, partitions=wanted)] * (ENTRIES // len(indexes) + 1)
    with RawClient(broker, timeout_s=300) as client:
        before = begin_peak()
        client.send(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=topics))
        frame = client.receive_frame()
        more = peak_bytes() - before
    api = APIS[ApiKey.LIST_OFFSETS]
    reply, _ = decode(api.response, 7, frame, 4 + api.response_header_version(7))
    answers = entries_of(reply)
    assert len(answers) >= ENTRIES
    assert {each.error_code for each in answers} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert more < MORE_MAX_BYTES, f"{more / 2**20:.0f} MiB"
    assert broker.node.open_logs == 0
