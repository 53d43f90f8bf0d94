"""A fetch of one partition has a short way through the broker; it must answer what the long way does."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from uuid import UUID

import pytest

from riverlog.broker.dispatch import routes
from riverlog.broker.fetch import handler
from riverlog.model.errors import ErrorCode
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.fetch_response import encode_single_fetch
from riverlog.wire.codec import decode
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.raw_client import RawClient, fetches_waiting
from tests.broker.transaction_client import TransactionClient
from tests.waiting import eventually

VERSIONS = (11, 15, 16, 17, 18)
TOPIC = "orders"


@dataclass
class Ways:
    short: RawClient
    long: RawClient
    short_broker: Broker
    long_broker: Broker
    taken: list[int] = field(default_factory=list)
    """The versions of the requests that went the short way."""


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ways]:
    """One broker that may take the short way, and one that never does; with the same records."""
    taken: list[int] = []
    encode = encode_single_fetch

    def counting(version: int, *rest: object) -> object:
        taken.append(version)
        return encode(version, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(handler, "encode_single_fetch", counting)
    with Broker() as short:
        monkeypatch.setattr(routes, "decode_fetch", by_tables)
        with Broker() as long:
            for broker in (short, long):
                _fill(broker)
            with RawClient(short) as one, RawClient(long) as other:
                yield Ways(one, other, short, long, taken)


def by_tables(data: memoryview, version: int, start: int) -> FetchRequest:
    return decode(FetchRequest, version, data, start)[0]


def _fill(broker: Broker) -> None:
    """Batches small and large, then an aborted transaction, then one that is open."""
    broker.create_topic(TOPIC)
    with TransactionClient(broker, "writer") as writer:
        for number in range(3):
            writer.produce(TOPIC, build_batch([(1_700_000_000_000 + number, None, b"v" * 100, ())] * 10))
        writer.produce(TOPIC, build_batch([(1_700_000_000_000, None, b"v" * 50_000, ())] * 2))
        me = writer.identity()
        assert writer.add(me, TOPIC) == writer.write(me, TOPIC, 0, b"aborted") == ErrorCode.NONE
        again = writer.end(me, commit=False)
        assert not isinstance(again, ErrorCode)
        assert writer.add(again, TOPIC) == writer.write(again, TOPIC, 0, b"open") == ErrorCode.NONE


def ask(client: RawClient, version: int, request: FetchRequest) -> FetchResponse:
    """The reply with the topic id taken out, which differs from broker to broker."""
    reply: FetchResponse = client.ask(ApiKey.FETCH, version, request)
    for topic in reply.responses:
        topic.topic_id = None
    return reply


def request_for(client: RawClient, version: int, offset: int, **options: int) -> FetchRequest:
    of_partition = {"partition_max_bytes": 1 << 20, "current_leader_epoch": -1, "last_fetched_epoch": -1}
    of_partition |= {name: options.pop(name) for name in list(options) if name in of_partition}
    partition = FetchPartition(partition=options.pop("partition", 0), fetch_offset=offset, **of_partition)  # type: ignore[arg-type]
    topic = FetchTopic(topic=TOPIC, partitions=[partition])
    if version >= 13:
        topic = FetchTopic(topic_id=topic_id(client), partitions=[partition])
    settings = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20} | options
    return FetchRequest(topics=[topic], **settings)  # type: ignore[arg-type]


def topic_id(client: RawClient) -> UUID:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    found: UUID = client.ask(ApiKey.METADATA, 12, wanted).topics[0].topic_id
    return found


def both(ways: Ways, version: int, offset: int, **options: int) -> tuple[FetchResponse, FetchResponse]:
    first, second = (
        ask(client, version, request_for(client, version, offset, **options))
        for client in (ways.short, ways.long)
    )
    return first, second


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_answer_the_same(ways: Ways, version: int) -> None:
    cases: list[dict[str, int]] = [
        {},
        {"partition_max_bytes": 1},
        {"partition_max_bytes": 2_500},
        {"max_bytes": 2_500},
        {"max_bytes": -1},
        {"min_bytes": 1 << 20},
        {"current_leader_epoch": 0},
        {"current_leader_epoch": 9},
        {"last_fetched_epoch": 0},
        {"partition": 3},
    ]
    for offset, case, isolation in product((-1, 0, 5, 30, 32, 34, 35, 99), cases, (0, 1, 2)):
        if version < 12 and "last_fetched_epoch" in case:
            continue
        first, second = both(ways, version, offset, isolation_level=isolation, **case)
        assert first == second, (offset, case, isolation)
    assert len(ways.taken) > 25


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_lead_a_session_the_same(ways: Ways, version: int) -> None:
    replies: list[list[FetchResponse]] = []
    for client in (ways.short, ways.long):
        opened = ask(client, version, request_for(client, version, 0, session_epoch=0))
        number, told = opened.session_id, [opened]
        assert number
        for epoch, offset in enumerate((10, 20, 20, 0, 34, 35), start=1):
            request = request_for(client, version, offset, session_id=number, session_epoch=epoch)
            told.append(ask(client, version, request))
        again = request_for(client, version, 0, session_id=number, session_epoch=3)
        told.append(ask(client, version, again))
        for reply in told:
            reply.session_id = int(reply.session_id == number)
        replies.append(told)
    assert replies[0] == replies[1]
    assert len(ways.taken) >= 4


def _end_the_open_transaction(broker: Broker, *, commit: bool) -> None:
    with TransactionClient(broker, "writer") as writer:
        writer.produce(TOPIC, build_batch([(1_700_000_000_000, None, b"more", ())]))
        again = writer.identity()  # Aborts what another has left open.
        if commit:
            assert writer.add(again, TOPIC) == writer.write(again, TOPIC, 0, b"done") == ErrorCode.NONE
            assert not isinstance(writer.end(again, commit=True), ErrorCode)


def _produce(broker: Broker) -> None:
    with TransactionClient(broker, "other") as other:
        other.produce(TOPIC, build_batch([(1_700_000_000_000, None, b"more", ())]))


def _delete(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.delete_topic(TOPIC)


EVENTS: dict[str, Callable[[Broker], None]] = {
    "nothing": lambda _: None,
    "records": _produce,
    "an abort": lambda broker: _end_the_open_transaction(broker, commit=False),
    "a commit": lambda broker: _end_the_open_transaction(broker, commit=True),
    "deletion": _delete,
}


@pytest.mark.parametrize("event", list(EVENTS))
@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("version", [11, 17])
def test_both_ways_wait_the_same(ways: Ways, version: int, isolation: int, event: str) -> None:
    replies = []
    for client, broker in ((ways.short, ways.short_broker), (ways.long, ways.long_broker)):
        end = ask(client, version, request_for(client, version, 0)).responses[0].partitions[0]
        offset = end.last_stable_offset if isolation else end.high_watermark
        wait_ms = 300 if event == "nothing" else 20_000
        request = request_for(client, version, offset, isolation_level=isolation, max_wait_ms=wait_ms)
        client.send(ApiKey.FETCH, version, request)
        eventually(lambda broker=broker: fetches_waiting(broker) == 1)  # type: ignore[misc]
        EVENTS[event](broker)
        if event == "records" and isolation:
            # Still behind the open transaction: nothing to read yet.
            assert fetches_waiting(broker) == 1
            _end_the_open_transaction(broker, commit=False)
        reply: FetchResponse = client.receive(ApiKey.FETCH, version)
        for topic in reply.responses:
            topic.topic_id = None
            for partition in topic.partitions:  # A marker has the time in it.
                assert isinstance(partition.records, bytes)
                partition.records = bytes(len(partition.records))
        replies.append(reply)
    assert replies[0] == replies[1]
    # The first request, and the one that waited unless an aborted transaction or more is to be told.
    assert len(ways.taken) == (1 if isolation or event in ("nothing", "deletion") else 2)


def test_a_session_of_two_partitions_takes_the_long_way(ways: Ways) -> None:
    ways.short.create_topic("other")
    request = request_for(ways.short, 11, 0, session_epoch=0)
    request.topics.append(FetchTopic(topic="other", partitions=[FetchPartition(partition_max_bytes=100)]))
    opened = ask(ways.short, 11, request)
    assert len(opened.responses) == 2
    resumed = request_for(ways.short, 11, 10, session_id=opened.session_id, session_epoch=1)
    assert len(ask(ways.short, 11, resumed).responses) == 1
    assert not ways.taken
