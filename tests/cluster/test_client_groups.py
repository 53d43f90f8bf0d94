"""Consumer groups of foreign clients whose coordinator is another broker than the one they know, and dies."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from confluent_kafka import Producer
from kafka import KafkaConsumer  # type: ignore[import-untyped]

from riverlog.model.internal_topics import OFFSETS_TOPIC
from tests.cluster.nodes import NodeCluster, in_thread, run
from tests.cluster.transactor import TOPIC, make_topics, name_at

_WAIT_S = 30.0
Read = Callable[[str, str, int], Awaitable[Counter[bytes]]]
"""So many records as a member of a group, known only this broker; then it commits and leaves."""


def _with_kafka_python(servers: str, group: str, count: int) -> Counter[bytes]:
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,
    )
    found: Counter[bytes] = Counter()
    deadline = time.monotonic() + _WAIT_S
    while found.total() < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=200).values():
            found.update(record.value for record in records)
    consumer.commit()
    consumer.close()
    return found


async def with_kafka_python(servers: str, group: str, count: int) -> Counter[bytes]:
    return await in_thread(_with_kafka_python, servers, group, count)


async def with_aiokafka(servers: str, group: str, count: int) -> Counter[bytes]:
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,
    )
    found: Counter[bytes] = Counter()
    await consumer.start()
    async with asyncio.timeout(_WAIT_S):
        while found.total() < count:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found.update(record.value for record in records)
        await consumer.commit()
    await consumer.stop()
    return found


def produce(servers: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for at, value in enumerate(values):
        producer.produce(TOPIC, value, partition=at % 3)
    assert producer.flush(_WAIT_S) == 0


@pytest.mark.parametrize("read", [with_kafka_python, with_aiokafka])
def test_a_group_goes_on_where_it_was_after_its_coordinator_died(read: Read) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topics(cluster)
        group = name_at(cluster, OFFSETS_TOPIC, 2)
        known = cluster[3].bootstrap_servers
        early, late = ([b"%s-%d" % (name, at) for at in range(30)] for name in (b"early", b"late"))
        await in_thread(produce, known, early)
        assert await read(known, group, 30) == Counter(early)
        await cluster[2].kill()
        await cluster.until_all_see(lambda image: 2 not in image.brokers)
        await cluster[2].start()
        await cluster.until_all_see(lambda image: len(image.brokers) == 3)
        await in_thread(produce, known, late)
        assert await read(known, group, 30) == Counter(late)

    run(scenario)
