"""DeleteRecords and DescribeLogDirs over a socket. Expectations were read off Kafka 4.3.1."""

from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.broker.raw_client import RawClient, one_record

Outcome = dict[tuple[str, int], tuple[int, int]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def delete(client: RawClient, *wanted: tuple[str, int, int], version: int = 2) -> Outcome:
    """Low watermark and error by topic and partition."""
    request = DeleteRecordsRequest(timeout_ms=5000)
    for topic, index, offset in wanted:
        partition = DeleteRecordsPartition(partition_index=index, offset=offset)
        request.topics.append(DeleteRecordsTopic(name=topic, partitions=[partition]))
    response: DeleteRecordsResponse = client.ask(ApiKey.DELETE_RECORDS, version, request)
    return {
        (topic.name, each.partition_index): (each.low_watermark, each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_go_and_minus_one_means_all(client: RawClient, version: int) -> None:
    topic = f"trimmed{version}"
    client.create_topic(topic, 2)
    for _ in range(5):
        client.produce(topic)
    assert delete(client, (topic, 0, 2), version=version) == {(topic, 0): (2, 0)}
    assert client.fetch(topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(topic, 2).log_start_offset == 2
    assert delete(client, (topic, 0, 1), version=version) == {(topic, 0): (2, 0)}, "never backwards"
    assert delete(client, (topic, 0, -1), (topic, 1, -1), version=version) == {
        (topic, 0): (5, 0),
        (topic, 1): (0, 0),
    }
    assert client.produce(topic).base_offset == 5


def test_offsets_that_are_out_of_range_and_partitions_that_are_not_there(client: RawClient) -> None:
    client.produce_to_new_topic("short")
    missing = (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert delete(client, ("short", 0, 2), ("short", 1, 0), ("short", -1, 0), ("none", 0, 0)) == {
        ("short", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("short", 1): missing,
        ("short", -1): missing,
        ("none", 0): missing,
    }
    assert delete(client, ("short", 0, -2)) == {("short", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
    assert delete(client) == {}


def test_of_a_partition_named_twice_the_last_offset_counts(client: RawClient) -> None:
    client.produce_to_new_topic("twice")
    assert delete(client, ("twice", 0, 1), ("twice", 0, 0)) == {("twice", 0): (0, 0)}


def test_compacted_and_internal_topics_are_refused(broker: Broker, client: RawClient) -> None:
    broker.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    broker.create_topic("both", 1, {"cleanup.policy": "compact,delete"})
    broker.create_topic("__consumer_offsets", 1)
    wanted = [(topic, 0, 0) for topic in ("compacted", "both", "__consumer_offsets")]
    assert delete(client, *wanted) == {
        ("compacted", 0): (-1, ErrorCode.POLICY_VIOLATION),
        ("both", 0): (0, 0),
        ("__consumer_offsets", 0): (-1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    }


def test_what_was_deleted_stays_deleted_after_a_clean_restart() -> None:
    with Broker() as broker:
        with RawClient(broker) as client:
            client.create_topic("t")
            for _ in range(5):
                client.produce("t")
            assert delete(client, ("t", 0, 3)) == {("t", 0): (3, 0)}
        broker.restart()
        with RawClient(broker) as client:
            assert client.fetch("t", 3).log_start_offset == 3


def describe(
    client: RawClient, wanted: dict[str, list[int]] | None, version: int = 5
) -> DescribeLogDirsResponse:
    request = DescribeLogDirsRequest(topics=None)
    if wanted is not None:
        request.topics = [
            DescribableLogDirTopic(topic=topic, partitions=indexes) for topic, indexes in wanted.items()
        ]
    response: DescribeLogDirsResponse = client.ask(ApiKey.DESCRIBE_LOG_DIRS, version, request)
    assert response.error_code == 0
    return response


def sizes(response: DescribeLogDirsResponse) -> dict[tuple[str, int], int]:
    [directory] = response.results
    return {
        (topic.name, each.partition_index): each.partition_size
        for topic in directory.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_directories_are_described_with_sizes_and_room(
    broker: Broker, client: RawClient, version: int
) -> None:
    topic = f"sized{version}"
    client.create_topic(topic, 3)
    client.produce(topic, one_record(b"x" * 1000), partition=1)
    found = describe(client, {topic: [1, 0, 9, 1], "none": [0]}, version)
    [directory] = found.results
    assert (directory.error_code, directory.log_dir) == (0, broker.data_dir)
    assert list(sizes(found)) == [(topic, 1), (topic, 0)]
    assert sizes(found)[topic, 1] > 1000
    assert sizes(found)[topic, 0] == 0
    assert {
        (each.offset_lag, each.is_future_key) for shown in directory.topics for each in shown.partitions
    } == {(0, False)}
    assert (directory.total_bytes >= directory.usable_bytes > 0) == (version >= 4)
    assert directory.is_cordoned is False


@pytest.mark.parametrize("version", range(1, 6))
def test_null_asks_for_all_partitions_and_the_empty_list_for_none(client: RawClient, version: int) -> None:
    topic = f"every{version}"
    client.create_topic(topic, 2)
    everything = sizes(describe(client, None, version))
    assert {(topic, 0), (topic, 1)} <= set(everything)
    assert sizes(describe(client, {}, version)) == {}


def test_every_data_directory_is_described(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = str(tmp_path_factory.mktemp("other"))
    first = str(tmp_path_factory.mktemp("first"))
    with Broker(data_dir=f"{first},{other}") as broker, RawClient(broker) as client:
        assert [each.log_dir for each in describe(client, None).results] == [first, other]
