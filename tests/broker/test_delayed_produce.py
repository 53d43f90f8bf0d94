"""Produce to a partition with followers, over real sockets: replies wait for the high watermark."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from riverlog.metadata import layout, payloads
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.model.metadata_store import Set
from riverlog.node.node import Node
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.partition import Partition
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.raw_client import RawClient, fetch_request, one_record, produce_request
from tests.waiting import eventually

OTHERS = (NodeId(8), NodeId(9))


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("other")
        broker.call(register_others)
        yield broker


async def register_others(node: Node) -> None:
    for other in OTHERS:
        data = payloads.encode_broker(payloads.BrokerNode({}, {}, None, epoch=BrokerEpoch(0)), 0)
        await node._follower._store.create(layout.broker(other), data)
    await node._follower.refresh([layout.BROKER_IDS])


def assign(
    broker: Broker,
    topic: str = "orders",
    *,
    epoch: int = 0,
    isr: tuple[NodeId, ...] = OTHERS,
    leader: NodeId | None = None,
) -> None:
    """Give a partition two more replicas, as a controller of several brokers would."""

    async def write(node: Node) -> None:
        me = node.config.node_id
        topic_id = node._follower.image.topics[topic].topic_id
        assigned = payloads.TopicNode(topic_id, ((me, *OTHERS),))
        state = payloads.PartitionNode(leader or me, LeaderEpoch(epoch), (me, *isr), 1)
        await node._follower._store.multi(
            [
                Set(layout.topic(topic), payloads.encode_topic(assigned)),
                Set(layout.partition_state(topic, 0), payloads.encode_partition(state)),
            ]
        )
        await node._follower.refresh([layout.topic(topic)])

    broker.call(write)


def on_partition(broker: Broker, work: Callable[[Partition], object], topic: str = "orders") -> object:
    async def find(node: Node) -> object:
        routes = node.serving.connections._answering._inner._routes  # type: ignore[attr-defined]
        partition = routes[ApiKey.PRODUCE].handler._replicas.find(topic, 0)
        assert isinstance(partition, Partition)
        return work(partition)

    return broker.call(find)


def waiting_on(broker: Broker) -> object:
    """How many producers wait for the partition."""
    return on_partition(broker, lambda partition: len(partition._waits.producers))


def fetched(broker: Broker, end_offset: int) -> None:
    """Both followers have everything below an offset."""

    def note(partition: Partition) -> list[ErrorCode | None]:
        fetches = [FollowerFetch(each, BrokerEpoch(0), LeaderEpoch(0), end_offset, 0) for each in OTHERS]
        return [partition.on_replica_fetch(each, now_s=0.0) for each in fetches]

    assert on_partition(broker, note) == [None, None]


def end_of(broker: Broker) -> object:
    return on_partition(broker, lambda partition: partition.log.log_end_offset)


def reply_of(response: ProduceResponse) -> PartitionProduceResponse:
    return response.responses[0].partition_responses[0]


def test_acks_all_waits_for_the_followers_and_acks_1_does_not(broker: Broker) -> None:
    assign(broker)
    with RawClient(broker) as waiting, RawClient(broker) as other:
        waiting.send(ApiKey.PRODUCE, 9, produce_request("orders", None, timeout_ms=30_000))
        eventually(lambda: end_of(broker) == 1)
        alone = other.produce("orders", acks=1)
        assert (alone.error_code, alone.base_offset) == (ErrorCode.NONE, 1)
        assert other.fetch("orders", 0).high_watermark == 0
        fetched(broker, 1)
        reply = reply_of(waiting.receive(ApiKey.PRODUCE, 9))
        assert (reply.error_code, reply.base_offset) == (ErrorCode.NONE, 0)
        assert other.fetch("orders", 0).high_watermark == 1


def test_a_wait_takes_no_task(broker: Broker) -> None:
    assign(broker)

    async def count(node: Node) -> int:
        return len(asyncio.all_tasks())

    before = broker.call(count)
    with RawClient(broker) as client:
        for _ in range(20):
            client.send(ApiKey.PRODUCE, 9, produce_request("orders", None, timeout_ms=30_000))
        eventually(lambda: end_of(broker) == 20)
        assert broker.call(count) == before
        fetched(broker, 20)
        found = [reply_of(client.receive(ApiKey.PRODUCE, 9)).base_offset for _ in range(20)]
        assert found == list(range(20))


def test_a_time_that_is_up_and_a_leadership_that_is_lost_are_told(broker: Broker) -> None:
    assign(broker)
    with RawClient(broker) as client:
        late = client.produce("orders", timeout_ms=100)
        assert (late.error_code, late.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert waiting_on(broker) == 0
        client.send(ApiKey.PRODUCE, 9, produce_request("orders", None, timeout_ms=30_000))
        eventually(lambda: end_of(broker) == 2)
        assign(broker, isr=OTHERS[:1])
        assert waiting_on(broker) == 1, "it goes on waiting"
        assign(broker, epoch=1, leader=OTHERS[0])
        lost = reply_of(client.receive(ApiKey.PRODUCE, 9))
        assert (lost.error_code, lost.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1), "possibly written"
        refused = client.produce("orders")
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "not written"


def test_a_client_that_leaves_is_waited_for_no_longer(broker: Broker) -> None:
    assign(broker)
    with RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 9, produce_request("orders", None, timeout_ms=30_000))
        eventually(lambda: waiting_on(broker) == 1)
    eventually(lambda: waiting_on(broker) == 0)


def test_of_several_partitions_each_is_answered_for_itself(broker: Broker) -> None:
    assign(broker)
    assign(broker, "other")
    one, two = (produce_request(topic, None).topic_data[0] for topic in ("orders", "other"))
    assert isinstance(one, TopicProduceData)
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[one, two])
    with RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 9, request)
        eventually(lambda: end_of(broker) == 1)
        fetched(broker, 1)
        response = client.receive(ApiKey.PRODUCE, 9)
    codes = {each.name: each.partition_responses[0].error_code for each in response.responses}
    assert codes == {"orders": ErrorCode.NONE, "other": ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize("version", [9, 12])
def test_requests_that_repeat_one_another_wait_as_well(broker: Broker, version: int) -> None:
    with RawClient(broker) as client:
        for number in range(5):
            reply = reply_of(client.ask(ApiKey.PRODUCE, version, produce_request("orders", None)))
            assert reply.base_offset == number, "remembered by now"
        assign(broker)
        for _ in range(3):
            client.send(ApiKey.PRODUCE, version, produce_request("orders", None, timeout_ms=30_000))
        eventually(lambda: end_of(broker) == 8)
        assert on_partition(broker, lambda partition: partition.log.high_watermark) == 5
        fetched(broker, 8)
        assert [reply_of(client.receive(ApiKey.PRODUCE, version)).base_offset for _ in range(3)] == [5, 6, 7]


def test_consumers_hear_of_records_when_they_are_committed(broker: Broker) -> None:
    assign(broker)
    size_bytes = 2 * len(one_record())
    with RawClient(broker) as reader, RawClient(broker) as writer:
        reader.send(ApiKey.FETCH, 12, fetch_request("orders", 0, max_wait_ms=60_000, min_bytes=size_bytes))
        eventually(lambda: on_partition(broker, lambda partition: len(partition._waits.readers)) == 1)
        for _ in range(2):
            assert writer.produce("orders", acks=1).error_code == ErrorCode.NONE
        fetched(broker, 1)
        fetched(broker, 2)
        found = reader.receive(ApiKey.FETCH, 12).responses[0].partitions[0]
        assert (found.high_watermark, len(found.records)) == (2, size_bytes)
