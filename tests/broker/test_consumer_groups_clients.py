"""confluent-kafka with `group.protocol=consumer`: sharing, committing, rebalancing, restarts and kills."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.testing import Broker

SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 3_000,
}
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


def consumer(broker: Broker, group: str, **more: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 200,
            **more,
        }
    )


def fill(broker: Broker, topic: str, first: int, count: int, partitions: int) -> list[str]:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    values = [f"{number}" for number in range(first, first + count)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(TIMEOUT_S) == 0
    return values


def read(consumers: list[Consumer], until: Callable[[list[str]], bool]) -> list[str]:
    """Poll all of them until it is enough."""
    values: list[str] = []
    deadline = time.monotonic() + TIMEOUT_S
    while not until(values):
        assert time.monotonic() < deadline, f"only {len(values)} values"
        for each in consumers:
            message = each.poll(0.02)
            if message is not None and message.error() is None:
                values.append((message.value() or b"").decode())
    return values


def shares(*consumers: Consumer) -> list[list[int]]:
    return [sorted(each.partition for each in consumer.assignment()) for consumer in consumers]


def test_two_consumers_share_a_topic_and_one_takes_over_what_the_other_leaves(broker: Broker) -> None:
    broker.create_topic("shared", 4)
    first, second = consumer(broker, "sharing"), consumer(broker, "sharing")
    first.subscribe(["shared"])
    values = fill(broker, "shared", 0, 40, 4)
    assert sorted(read([first], lambda got: len(got) >= 40)) == sorted(values)
    first.commit(asynchronous=False)
    second.subscribe(["shared"])
    read([first, second], lambda _: [len(each) for each in shares(first, second)] == [2, 2])
    assert sorted(chain(*shares(first, second))) == [0, 1, 2, 3]
    more = fill(broker, "shared", 40, 40, 4)
    assert sorted(read([first, second], lambda got: len(got) >= 40)) == sorted(more)
    second.commit(asynchronous=False)
    first.commit(asynchronous=False)
    first.close()
    last = fill(broker, "shared", 80, 40, 4)
    assert sorted(read([second], lambda got: len(got) >= 40)) == sorted(last)
    assert shares(second) == [[0, 1, 2, 3]]
    second.close()


def test_a_consumer_goes_on_where_it_was_after_a_kill_of_the_broker() -> None:
    with Broker(config=SETTINGS) as broker:
        broker.create_topic("orders", 2)
        reader = consumer(broker, "g")
        reader.subscribe(["orders"])
        fill(broker, "orders", 0, 10, 2)
        read([reader], lambda got: len(got) >= 10)
        reader.commit(asynchronous=False)
        broker.kill()
        broker.restart()
        values = fill(broker, "orders", 10, 10, 2)
        assert sorted(read([reader], lambda got: len(got) >= 10)) == sorted(values)
        reader.commit(asynchronous=False)
        found = reader.committed([TopicPartition("orders", index) for index in (0, 1)], TIMEOUT_S)
        assert [each.offset for each in found] == [10, 10]
        reader.close()


def test_an_expression_finds_topics_that_come_later(broker: Broker) -> None:
    broker.create_topic("metric-a", 1)
    reader = consumer(broker, "expression")
    reader.subscribe(["^metric-.*"])
    fill(broker, "metric-a", 0, 3, 1)
    read([reader], lambda got: len(got) >= 3)
    broker.create_topic("metric-b", 2)
    fill(broker, "metric-b", 3, 4, 2)
    read([reader], lambda got: len(got) >= 4)
    assert sorted({each.topic for each in reader.assignment()}) == ["metric-a", "metric-b"]
    reader.close()


def test_a_static_consumer_that_restarts_finds_its_partitions_where_they_were(broker: Broker) -> None:
    broker.create_topic("static", 4)
    stays = consumer(broker, "static", **{"group.instance.id": "stays"})
    goes = consumer(broker, "static", **{"group.instance.id": "goes"})
    for each in (stays, goes):
        each.subscribe(["static"])
    read([stays, goes], lambda _: [len(each) for each in shares(stays, goes)] == [2, 2])
    before = shares(stays, goes)
    goes.close()
    back = consumer(broker, "static", **{"group.instance.id": "goes"})
    back.subscribe(["static"])
    read([stays, back], lambda _: shares(stays, back) == before)
    stays.close()
    back.close()


POLL_FOR_EVER = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "vanishing", "group.protocol": "consumer"})
consumer.subscribe(["vanishing"])
while True:
    consumer.poll(1)
"""


def test_a_consumer_that_is_killed_loses_its_partitions_when_its_session_ends(broker: Broker) -> None:
    broker.create_topic("vanishing", 2)
    stays = consumer(broker, "vanishing")
    stays.subscribe(["vanishing"])
    read([stays], lambda _: shares(stays) == [[0, 1]])
    with subprocess.Popen([sys.executable, "-c", POLL_FOR_EVER, broker.bootstrap_servers]) as vanishes:
        try:
            read([stays], lambda _: len(shares(stays)[0]) == 1)
        finally:
            vanishes.kill()
    read([stays], lambda _: shares(stays) == [[0, 1]])
    stays.close()
