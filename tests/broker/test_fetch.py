"""Fetch against a real broker: what is read, what is waited for, and incremental sessions."""

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.raw_client import RawClient, fetch_request, one_record, produce_request


def batches(data: PartitionData) -> list[tuple[int, int]]:
    """Base offset and record count of each batch in a reply."""
    assert isinstance(data.records, bytes | memoryview)
    return [(header.base_offset, header.record_count) for _, header in walk(data.records)]


def of_records(count: int, size: int = 10) -> bytes:
    return build_batch([(1_700_000_000_000, b"k", b"v" * size, ())] * count)


def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        for _ in range(3):
            client.produce(riverlog_topic, of_records(10))
        assert batches(client.fetch(riverlog_topic, 14)) == [(10, 10), (20, 10)]
        data = client.fetch(riverlog_topic, 29)
        assert batches(data) == [(20, 10)]
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (30, 30, 0)


def test_the_first_batch_is_returned_even_if_larger_than_the_limits(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        for _ in range(3):
            client.produce(riverlog_topic, of_records(1, 5000))
        for limits in ({"max_bytes": 10}, {"partition_max_bytes": 10}, {"max_bytes": 0}):
            assert batches(client.fetch(riverlog_topic, 1, **limits)) == [(1, 1)]
        assert batches(client.fetch(riverlog_topic, 0, partition_max_bytes=11_000)) == [(0, 1), (1, 1)]


def test_only_the_first_partition_with_records_may_exceed_the_limit(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic(topic := f"wide-{uuid4().hex}", partitions=3)
    with RawClient(riverlog_broker) as client:
        for partition in (1, 2):
            client.produce(topic, of_records(1, 5000), partition=partition)
        wanted = [FetchPartition(partition=index, partition_max_bytes=2**20) for index in range(3)]
        request = FetchRequest(
            min_bytes=1, max_bytes=100, topics=[FetchTopic(topic=topic, partitions=wanted)]
        )
        reply: FetchResponse = client.ask(ApiKey.FETCH, 12, request)
        assert [batches(data) for data in reply.responses[0].partitions] == [[], [(0, 1)], []]


@pytest.mark.parametrize("offset", [-1, 4, 2**40])
def test_an_offset_outside_the_log_is_out_of_range(
    riverlog_broker: Broker, riverlog_topic: str, offset: int
) -> None:
    with RawClient(riverlog_broker) as client:
        client.produce(riverlog_topic, of_records(3))
        data = client.fetch(riverlog_topic, offset, max_wait_ms=5000)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (data.high_watermark, data.records) == (-1, b"")


def test_a_client_with_another_leader_epoch_is_told(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        client.produce(riverlog_topic)
        assert client.fetch(riverlog_topic, 0, current_leader_epoch=0).error_code == ErrorCode.NONE
        ahead = client.fetch(riverlog_topic, 0, current_leader_epoch=7)
        assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert client.fetch(riverlog_topic, 0, last_fetched_epoch=0).error_code == ErrorCode.NONE
        assert (
            client.fetch(riverlog_topic, 0, last_fetched_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        )


def test_a_fetch_that_claims_to_be_a_replica_is_refused_and_moves_nothing(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        client.produce(riverlog_topic)
        refused = client.fetch(riverlog_topic, 0, replica_id=5)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        refused = client.fetch(riverlog_topic, 0, replica_id=1, current_leader_epoch=0)
        assert refused.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        by_id = fetch_request("", 0, replica_state=ReplicaState(replica_id=5, replica_epoch=1))
        by_id.topics[0].topic_id = topic_id(client, riverlog_topic)
        reply = client.ask(ApiKey.FETCH, 17, by_id)
        assert reply.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert client.fetch(riverlog_topic, 0).high_watermark == 1


def topic_id(client: RawClient, topic: str) -> UUID | None:
    reply = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    found: UUID | None = reply.topics[0].topic_id
    return found


def test_an_unknown_topic_id_is_told_as_such(riverlog_broker: Broker) -> None:
    with RawClient(riverlog_broker) as client:
        request = fetch_request("", 0)
        request.topics[0].topic_id = uuid4()
        reply = client.ask(ApiKey.FETCH, 13, request)
        assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.monotonic()
    result = work()
    return time.monotonic() - begun, result


def test_an_empty_fetch_waits_for_its_time_and_no_longer(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        took, data = timed(lambda: client.fetch(riverlog_topic, 0, max_wait_ms=300))
        assert 0.29 <= took < 5
        assert (data.error_code, data.records) == (0, b"")


def test_a_waiting_fetch_is_woken_by_records(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as reader, RawClient(riverlog_broker) as writer:
        reader.send(ApiKey.FETCH, 12, fetch_request(riverlog_topic, 0, max_wait_ms=30_000))
        writer.produce(riverlog_topic)
        took, reply = timed(lambda: reader.receive(ApiKey.FETCH, 12))
        assert took < 5
        assert batches(reply.responses[0].partitions[0]) == [(0, 1)]


def test_a_waiting_fetch_is_not_woken_before_there_are_min_bytes(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as reader, RawClient(riverlog_broker) as writer:
        one = of_records(1, 1000)
        request = fetch_request(riverlog_topic, 0, max_wait_ms=30_000, min_bytes=5 * len(one))
        reader.send(ApiKey.FETCH, 12, request)
        for _ in range(4):
            writer.produce(riverlog_topic, one)
            assert reader.hears_nothing()
        writer.produce(riverlog_topic, one)
        reply = reader.receive(ApiKey.FETCH, 12)
        assert len(batches(reply.responses[0].partitions[0])) == 5


def test_a_waiting_fetch_hears_at_once_that_its_topic_is_gone(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as reader, RawClient(riverlog_broker) as admin:
        admin.produce(riverlog_topic)
        reader.send_long_poll(riverlog_topic, 1)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=riverlog_topic)], timeout_ms=5000)
        admin.ask(ApiKey.DELETE_TOPICS, 6, deletion)
        took, reply = timed(lambda: reader.receive(ApiKey.FETCH, 12))
        assert took < 5
        assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_waiting_fetch_hears_at_once_that_its_offset_was_deleted(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        client.produce(riverlog_topic, of_records(5))
        deletion = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=riverlog_topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
                )
            ],
            timeout_ms=5000,
        )
        assert client.ask(ApiKey.DELETE_RECORDS, 2, deletion).topics[0].partitions[0].low_watermark == 3
        assert client.fetch(riverlog_topic, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert client.fetch(riverlog_topic, 3).log_start_offset == 3


def test_a_long_poll_does_not_hold_up_later_requests_of_others_or_its_own_connection(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        client.send(ApiKey.FETCH, 12, fetch_request(riverlog_topic, 0, max_wait_ms=30_000))
        client.send(ApiKey.PRODUCE, 9, produce_request(riverlog_topic, None))
        assert batches(client.receive(ApiKey.FETCH, 12).responses[0].partitions[0]) == [(0, 1)]
        assert client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].base_offset == 0


def test_hundreds_of_waiting_fetches_are_all_woken(riverlog_broker: Broker, riverlog_topic: str) -> None:
    clients = [RawClient(riverlog_broker) for _ in range(200)]
    try:
        for client in clients:
            client.send(ApiKey.FETCH, 12, fetch_request(riverlog_topic, 0, max_wait_ms=30_000))
        with RawClient(riverlog_broker) as writer:
            writer.produce(riverlog_topic)
        for client in clients:
            assert batches(client.receive(ApiKey.FETCH, 12).responses[0].partitions[0]) == [(0, 1)]
    finally:
        for client in clients:
            client.socket.close()


class Session:
    """A client of one incremental session over the partitions of a topic."""

    def __init__(self, client: RawClient, topic: str, partitions: int) -> None:
        self.client, self.topic = client, topic
        self.id, self.epoch = 0, 0
        self.reply = self.fetch(dict.fromkeys(range(partitions), 0))

    def fetch(self, changed: dict[int, int] | None = None, forget: tuple[int, ...] = ()) -> FetchResponse:
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=2**20)
            for index, offset in (changed or {}).items()
        ]
        request = FetchRequest(
            min_bytes=1,
            max_bytes=2**20,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic=self.topic, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(topic=self.topic, partitions=list(forget))]
            if forget
            else [],
        )
        reply: FetchResponse = self.client.ask(ApiKey.FETCH, 12, request)
        if reply.error_code == ErrorCode.NONE:
            self.id, self.epoch = reply.session_id, self.epoch + 1
        return reply


def told(reply: FetchResponse) -> dict[int, list[tuple[int, int]]]:
    return {data.partition_index: batches(data) for topic in reply.responses for data in topic.partitions}


@pytest.fixture
def wide_topic(riverlog_broker: Broker) -> str:
    riverlog_broker.create_topic(topic := f"wide-{uuid4().hex}", partitions=4)
    return topic


def test_a_session_is_told_only_what_changed(riverlog_broker: Broker, wide_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 4)
        assert session.id != 0
        assert told(session.reply) == {0: [], 1: [], 2: [], 3: []}
        assert told(session.fetch()) == {}
        client.produce(wide_topic, partition=2)
        assert told(session.fetch()) == {2: [(0, 1)]}
        assert told(session.fetch({2: 1})) == {}
        client.produce(wide_topic, partition=1)
        client.produce(wide_topic, partition=3)
        assert told(session.fetch(forget=(3,))) == {1: [(0, 1)]}
        assert told(session.fetch({1: 1})) == {}
        assert told(session.fetch({3: 0})) == {3: [(0, 1)]}


def test_an_error_in_a_session_is_told_every_time_and_its_end_as_well(
    riverlog_broker: Broker, wide_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 2)
        for changed in ({0: 99}, None, None):
            reply = session.fetch(changed)
            errors = [(data.partition_index, data.error_code) for data in reply.responses[0].partitions]
            assert errors == [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]
        assert told(session.fetch({0: 0})) == {0: []}
        assert told(session.fetch()) == {}


def test_partitions_that_were_served_go_to_the_end_of_the_line(
    riverlog_broker: Broker, wide_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 4)
        for index in range(4):
            client.produce(wide_topic, of_records(1, 5000), partition=index)
        first = []
        for _ in range(4):
            request = FetchRequest(
                min_bytes=1, max_bytes=100, session_id=session.id, session_epoch=session.epoch
            )
            reply = client.ask(ApiKey.FETCH, 12, request)
            session.epoch += 1
            first.append(next(index for index, found in told(reply).items() if found))
        assert sorted(first) == [0, 1, 2, 3], "a small limit must not starve the partitions behind the first"


def test_a_session_with_a_wrong_id_or_epoch_is_refused(riverlog_broker: Broker, wide_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 1)
        session.epoch += 5
        assert session.fetch().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch -= 5
        assert session.fetch().error_code == ErrorCode.NONE
        by_id = FetchRequest(min_bytes=1, max_bytes=100, session_id=session.id, session_epoch=session.epoch)
        assert client.ask(ApiKey.FETCH, 13, by_id).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        final = FetchRequest(min_bytes=1, max_bytes=100, session_id=session.id, session_epoch=-1)
        assert client.ask(ApiKey.FETCH, 12, final).error_code == ErrorCode.NONE
        assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_forgets_everything_ends(riverlog_broker: Broker, wide_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 2)
        known = session.id
        assert session.fetch(forget=(0, 1)).session_id == 0
        session.id = known
        assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_stays_consistent_while_producers_write(riverlog_broker: Broker, wide_topic: str) -> None:
    def write() -> None:
        with RawClient(riverlog_broker) as writer:
            for number in range(400):
                writer.produce(wide_topic, one_record(b"%d" % number), partition=number % 4, acks=1)

    thread = threading.Thread(target=write)
    with RawClient(riverlog_broker) as client:
        session = Session(client, wide_topic, 4)
        thread.start()
        offsets = dict.fromkeys(range(4), 0)
        changed: dict[int, int] = {}
        deadline = time.monotonic() + 30
        while sum(offsets.values()) < 400 and time.monotonic() < deadline:
            found = told(session.fetch(changed))
            changed = {}
            for index, batch_list in found.items():
                for base, count in batch_list:
                    assert base == offsets[index], "a batch was skipped or came twice"
                    offsets[index] += count
                    changed[index] = offsets[index]
        thread.join()
        assert offsets == dict.fromkeys(range(4), 100)
