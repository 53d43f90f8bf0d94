"""ListOffsets, OffsetForLeaderEpoch and InitProducerId against a real broker."""

import pytest

from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.errors import ErrorCode
from riverlog.model.metadata_store import StoreWriteError
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from riverlog.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.raw_client import RawClient
from tests.broker.transaction_client import TransactionClient

START_MS = 1_700_000_000_000


@pytest.fixture
def timed_topic(riverlog_broker: Broker, riverlog_topic: str) -> str:
    """Seven batches of two records, ten milliseconds apart."""
    with RawClient(riverlog_broker) as client:
        for number in range(7):
            stamp = START_MS + 10 * number
            client.produce(riverlog_topic, build_batch([(stamp, b"k", b"v", ())] * 2))
    return riverlog_topic


def look_up(
    broker: Broker, topic: str, timestamp: int, version: int = 11, **options: int
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(timestamp=timestamp, **{"partition_index": 0, **options})
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    with RawClient(broker) as client:
        reply = client.ask(ApiKey.LIST_OFFSETS, version, request)
        found: ListOffsetsPartitionResponse = reply.topics[0].partitions[0]
        return found


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms"),
    [
        (-1, 14, -1),
        (-2, 0, -1),
        (-3, 12, START_MS + 60),
        (-4, 0, -1),
        (-5, -1, -1),
        (-6, -1, -1),
        (0, 0, START_MS),
        (START_MS + 1, 2, START_MS + 10),
        (START_MS + 10, 2, START_MS + 10),
        (START_MS + 60, 12, START_MS + 60),
        (START_MS + 61, -1, -1),
    ],
)
def test_offsets_are_found_by_place_and_by_time(
    riverlog_broker: Broker, timed_topic: str, timestamp: int, offset: int, found_ms: int
) -> None:
    found = look_up(riverlog_broker, timed_topic, timestamp)
    assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, offset, found_ms)
    assert found.leader_epoch == (0 if offset >= 0 else -1)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)])
def test_special_timestamps_belong_to_versions(
    riverlog_broker: Broker, timed_topic: str, timestamp: int, since: int
) -> None:
    for version in range(1, 12):
        found = look_up(riverlog_broker, timed_topic, timestamp, version)
        expected = ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION
        assert found.error_code == expected, f"version {version}"


def test_lookups_that_cannot_be_answered_say_why(riverlog_broker: Broker, timed_topic: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert look_up(riverlog_broker, "there-is-none", -1).error_code == unknown
    assert look_up(riverlog_broker, timed_topic, -1, partition_index=5).error_code == unknown
    ahead = look_up(riverlog_broker, timed_topic, -1, current_leader_epoch=3)
    assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_asked_for_twice_is_an_invalid_request(riverlog_broker: Broker, timed_topic: str) -> None:
    twice = [ListOffsetsPartition(partition_index=0, timestamp=stamp) for stamp in (-1, -2)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=timed_topic, partitions=twice)])
    with RawClient(riverlog_broker) as client:
        replies = client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions
        assert [reply.error_code for reply in replies] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "current", "expected"),
    [
        (0, -1, (ErrorCode.NONE, 0, 14)),
        (0, 0, (ErrorCode.NONE, 0, 14)),
        (5, -1, (ErrorCode.NONE, -1, -1)),
        (-1, -1, (ErrorCode.NONE, -1, -1)),
        (0, 9, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
    ],
)
def test_the_end_of_a_leader_epoch_is_told(
    riverlog_broker: Broker,
    timed_topic: str,
    version: int,
    epoch: int,
    current: int,
    expected: tuple[int, int, int],
) -> None:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=timed_topic, partitions=[wanted])]
    )
    with RawClient(riverlog_broker) as client:
        reply = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)
        found: EpochEndOffset = reply.topics[0].partitions[0]
        assert (found.error_code, found.leader_epoch, found.end_offset) == expected


def test_every_producer_gets_an_id_of_its_own(riverlog_broker: Broker) -> None:
    with RawClient(riverlog_broker) as client:
        ids = set()
        for version in (0, 2, 3, 4, 5):
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            reply = client.ask(ApiKey.INIT_PRODUCER_ID, version, request)
            assert (reply.error_code, reply.producer_epoch) == (ErrorCode.NONE, 0)
            ids.add(reply.producer_id)
        assert len(ids) == 5


@pytest.mark.parametrize("transactional_id", [None, "writer"])
def test_a_producer_is_told_to_ask_again_while_no_ids_can_be_taken(transactional_id: str | None) -> None:
    async def full(self: ProducerIds) -> int:
        raise StoreWriteError("the disk is full")

    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    with Broker() as broker, TransactionClient(broker, "writer") as client:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ProducerIds, "_take_block", full)
            refused = client.ask(ApiKey.INIT_PRODUCER_ID, 5, request)
        assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        given = client.ask(ApiKey.INIT_PRODUCER_ID, 5, request)
        assert (given.error_code, given.producer_epoch) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "producer", "error"),
    [
        ("", 1000, (-1, -1), ErrorCode.INVALID_REQUEST),
        (None, 1000, (5, -1), ErrorCode.INVALID_REQUEST),
        (None, 1000, (-1, 5), ErrorCode.INVALID_REQUEST),
        ("payments", 0, (-1, -1), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("payments", 1000, (-1, -1), ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_producer_id_that_cannot_be_given_is_refused(
    riverlog_broker: Broker,
    transactional_id: str | None,
    timeout_ms: int,
    producer: tuple[int, int],
    error: ErrorCode,
) -> None:
    with RawClient(riverlog_broker) as client:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        reply = client.ask(ApiKey.INIT_PRODUCER_ID, 3, request)
        assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (error, -1, -1)
