"""Fetch and Produce of thousands of partitions: the same as of few, and others are not held up."""

import time
from collections.abc import Iterator
from itertools import count

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.node import Node
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_client import RawClient, one_record
from tests.waiting import eventually

PARTITIONS = 600
WRITTEN = (3, 300, 599)
FINAL, INITIAL = -1, 0
_topics = count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path_factory.mktemp("data"))) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker, timeout_s=60) as client:
        yield client


@pytest.fixture
def topic(client: RawClient) -> str:
    name = f"large-{next(_topics)}"
    client.create_topic(name, partitions=PARTITIONS)
    return name


def fetch_of(
    topic: str,
    indexes: range,
    *,
    offset: int = 0,
    wait_ms: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, FINAL),
) -> FetchRequest:
    wanted = [FetchPartition(partition=i, fetch_offset=offset, partition_max_bytes=1 << 20) for i in indexes]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 26,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic=topic, partitions=wanted)] if wanted else [],
        replica_id=-1,
    )


def produce_of(topic: str, indexes: range, acks: int = -1, value: bytes = b"x") -> ProduceRequest:
    data = [PartitionProduceData(index=i, records=memoryview(one_record(value))) for i in indexes]
    written = TopicProduceData(name=topic, partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[written])


def read(response: FetchResponse) -> list[PartitionData]:
    return [each for topic in response.responses for each in topic.partitions]


def told(response: FetchResponse) -> dict[int, tuple[int, int, bytes]]:
    return {
        each.partition_index: (each.error_code, each.high_watermark, records_in(each))
        for each in read(response)
    }


def records_in(data: PartitionData) -> bytes:
    assert isinstance(data.records, bytes | memoryview)
    return bytes(data.records)


def write(client: RawClient, topic: str, *indexes: int) -> None:
    for index in indexes:
        assert client.produce(topic, one_record(b"x"), partition=index).error_code == 0


def in_chunks(indexes: range, size: int = 90) -> Iterator[range]:
    for start in range(0, len(indexes), size):
        yield indexes[start : start + size]


@pytest.mark.parametrize("offset", [0, 1, 7])
def test_many_partitions_are_read_as_few_are(client: RawClient, topic: str, offset: int) -> None:
    write(client, topic, *WRITTEN)
    indexes = range(-2, PARTITIONS + 2)
    few = [client.ask(ApiKey.FETCH, 12, fetch_of(topic, some, offset=offset)) for some in in_chunks(indexes)]
    many = client.ask(ApiKey.FETCH, 12, fetch_of(topic, indexes, offset=offset))
    assert told(many) == {index: each for response in few for index, each in told(response).items()}
    assert [each.partition_index for each in read(many)][-4:] == [-2, -1, PARTITIONS, PARTITIONS + 1]


def test_a_long_poll_of_many_is_answered_by_the_first_records(
    broker: Broker, client: RawClient, topic: str
) -> None:
    with RawClient(broker) as reader:
        reader.send(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=60_000))
        assert reader.hears_nothing()
        write(client, topic, 543)
        found = told(reader.receive(ApiKey.FETCH, 12))
        assert len(found) == PARTITIONS
        assert [index for index, (_, _, records) in found.items() if records] == [543]


def test_a_long_poll_of_many_waits_for_as_many_bytes_as_it_asks_for(
    broker: Broker, client: RawClient, topic: str
) -> None:
    with RawClient(broker) as reader:
        enough = 2 * len(one_record(b"x"))
        reader.send(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=60_000, min_bytes=enough))
        write(client, topic, 5)
        assert reader.hears_nothing()
        write(client, topic, 512)
        found = told(reader.receive(ApiKey.FETCH, 12))
        assert [index for index, (_, _, records) in found.items() if records] == [5, 512]


def test_a_long_poll_of_many_ends_with_its_time_or_its_topic(
    broker: Broker, client: RawClient, topic: str
) -> None:
    begun_s = time.monotonic()
    found = told(client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=300)))
    assert len(found) == PARTITIONS
    assert time.monotonic() - begun_s >= 0.3
    with RawClient(broker) as reader:
        reader.send(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=60_000))
        assert reader.hears_nothing()
        client.delete_topic(topic)
        assert any(error for error, _, _ in told(reader.receive(ApiKey.FETCH, 12)).values())


def watching(broker: Broker, topic: str) -> int:
    async def counted(node: Node) -> int:
        replicas = node._idle_logs._replicas
        waiting = {
            **replicas._idle._waiting,
            **{each.topic_partition: each._waits.readers for each in replicas},
        }
        return sum(len(readers) for at, readers in waiting.items() if at.topic == topic)

    return broker.call(counted)


def test_nobody_waits_any_more_when_a_long_poll_of_many_has_ended_or_its_client_has_gone(
    broker: Broker, client: RawClient, topic: str
) -> None:
    client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=10))
    eventually(lambda: watching(broker, topic) == 0)
    with RawClient(broker) as reader:
        reader.send(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), wait_ms=60_000))
        eventually(lambda: watching(broker, topic) == PARTITIONS)
    eventually(lambda: watching(broker, topic) == 0)


def test_a_session_of_many_tells_what_is_new(client: RawClient, topic: str) -> None:
    write(client, topic, *WRITTEN)
    first = client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), session=(0, INITIAL)))
    assert first.session_id
    assert len(read(first)) == PARTITIONS
    session = first.session_id
    moved = fetch_of(topic, range(PARTITIONS), offset=1, session=(session, 1))
    found = told(client.ask(ApiKey.FETCH, 12, moved))
    assert set(found) == set(range(PARTITIONS)) - set(WRITTEN), "the others end before that"
    assert {error for error, _, _ in found.values()} == {ErrorCode.OFFSET_OUT_OF_RANGE}
    write(client, topic, 9)
    back = fetch_of(topic, range(9, 10), session=(session, 2))
    assert set(told(client.ask(ApiKey.FETCH, 12, back))) >= {9}
    left = fetch_of(topic, range(0), session=(session, 3))
    left.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=list(range(10, PARTITIONS)))]
    assert set(told(client.ask(ApiKey.FETCH, 12, left))) <= set(range(10))
    stale = client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), session=(session, 2)))
    assert stale.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize("named", [0, PARTITIONS])
def test_a_session_of_many_that_forgets_all_of_them_ends(client: RawClient, topic: str, named: int) -> None:
    opened = client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS), session=(0, INITIAL)))
    last = fetch_of(topic, range(named), session=(opened.session_id, 1))
    last.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=list(range(PARTITIONS)))]
    answer = client.ask(ApiKey.FETCH, 12, last)
    assert (answer.session_id, answer.responses) == (0, [])
    again = client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(1), session=(opened.session_id, 2)))
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_many_partitions_are_written_by_one_request(client: RawClient, topic: str) -> None:
    asked = range(-1, PARTITIONS + 1)
    [answer] = client.ask(ApiKey.PRODUCE, 9, produce_of(topic, asked)).responses
    replies = {each.index: (each.error_code, each.base_offset) for each in answer.partition_responses}
    assert list(replies) == list(asked)
    assert {index for index, (error, _) in replies.items() if error} == {-1, PARTITIONS}
    assert {offset for error, offset in replies.values() if not error} == {0}
    assert all(
        records
        for _, _, records in told(client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS)))).values()
    )


def test_a_partition_that_is_named_twice_among_many_gets_the_last_records(
    client: RawClient, topic: str
) -> None:
    request = produce_of(topic, range(PARTITIONS))
    request.topic_data += produce_of(topic, range(5, 6), value=b"last").topic_data
    [answer] = client.ask(ApiKey.PRODUCE, 9, request).responses
    assert len(answer.partition_responses) == PARTITIONS
    assert b"last" in records_in(client.fetch(topic, 0, partition=5))


def test_many_are_refused_as_few_are(client: RawClient, topic: str) -> None:
    request = produce_of(topic, range(PARTITIONS), acks=7)
    [answer] = client.ask(ApiKey.PRODUCE, 9, request).responses
    assert {each.error_code for each in answer.partition_responses} == {ErrorCode.INVALID_REQUIRED_ACKS}


def test_many_without_a_reply_are_written_and_a_failure_closes_the_connection(
    broker: Broker, client: RawClient, topic: str
) -> None:
    client.send(ApiKey.PRODUCE, 9, produce_of(topic, range(PARTITIONS), acks=0))
    client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())  # Behind it.
    assert client.fetch(topic, 0, partition=PARTITIONS - 1).high_watermark == 1
    with RawClient(broker) as other:
        other.send(ApiKey.PRODUCE, 9, produce_of(topic, range(PARTITIONS + 1), acks=0))
        assert other.is_closed()


def test_what_is_sent_behind_many_is_written_behind_them(client: RawClient, topic: str) -> None:
    client.send(ApiKey.PRODUCE, 9, produce_of(topic, range(PARTITIONS)))
    client.send(ApiKey.PRODUCE, 9, produce_of(topic, range(PARTITIONS - 1, PARTITIONS)))
    client.receive(ApiKey.PRODUCE, 9)
    [answer] = client.receive(ApiKey.PRODUCE, 9).responses
    assert answer.partition_responses[0].base_offset == 1


def test_many_are_acknowledged_when_they_are_on_disk(broker: Broker, client: RawClient) -> None:
    name = f"synced-{next(_topics)}"
    broker.create_topic(name, partitions=140, config={"riverlog.acks.fsync": "true"})
    [answer] = client.ask(ApiKey.PRODUCE, 9, produce_of(name, range(140))).responses
    assert {(each.error_code, each.base_offset) for each in answer.partition_responses} == {(0, 0)}


@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.PRODUCE])
def test_others_are_answered_while_many_are_worked_on(
    broker: Broker, client: RawClient, topic: str, key: ApiKey
) -> None:
    request = (
        fetch_of(topic, range(PARTITIONS)) if key == ApiKey.FETCH else produce_of(topic, range(PARTITIONS))
    )
    version = 12 if key == ApiKey.FETCH else 9

    def answered_meanwhile() -> int:
        client.send(key, version, request)
        with RawClient(broker) as other:
            answered = 0
            while client.hears_nothing(rounds=1):
                other.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
                answered += 1
        client.receive(key, version)
        return answered

    eventually(lambda: answered_meanwhile() >= 3)


def test_many_without_a_reply_are_written_also_when_their_client_has_gone(
    broker: Broker, client: RawClient, topic: str
) -> None:
    """It takes what it has sent for written, as it is when there are few."""
    with RawClient(broker) as leaving:
        leaving.send(ApiKey.PRODUCE, 9, produce_of(topic, range(PARTITIONS), acks=0))

    def ends() -> set[int]:
        fetched = client.ask(ApiKey.FETCH, 12, fetch_of(topic, range(PARTITIONS)))
        return {high_watermark for _, high_watermark, _ in told(fetched).values()}

    eventually(lambda: ends() == {1}, "not all was written", timeout_s=10)
