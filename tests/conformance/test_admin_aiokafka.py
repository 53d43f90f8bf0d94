"""The admin calls of aiokafka, which speaks older versions of them.

Apache Kafka applies a change a moment after it has answered.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conformance.clients.aio import (
    AioKafka,
    AIOKafkaAdminClient,
    ConfigResource,
    ConfigResourceType,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
    TopicPartition,
)
from tests.conformance.clients.interface import Message
from tests.waiting import until_told

UNKNOWN_TOPIC, TOPIC_EXISTS = 3, 36
WithAdmin = Callable[[Callable[[Any], Awaitable[None]]], None]


@pytest.fixture
def with_admin(bootstrap: str) -> WithAdmin:
    async def run(work: Callable[[Any], Awaitable[None]]) -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            await work(client)
        finally:
            await client.close()

    return lambda work: asyncio.run(run(work))


async def config(admin: Any, topic: str, key: str) -> tuple[str, int]:
    asked = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: None})
    [answer] = await admin.describe_configs([asked])
    [(error, _, _, _, entries)] = answer.resources
    assert error == 0
    [(_, value, _, source, _, _)] = entries
    return value, source


def test_topics_are_created_described_and_deleted(with_admin: WithAdmin) -> None:
    name = f"conformance-{uuid.uuid4().hex[:12]}"

    async def work(admin: Any) -> None:
        wanted = [NewTopic(name, 2, 1, topic_configs={"retention.ms": "5000"})]
        assert (await admin.create_topics(wanted)).topic_errors == [(name, 0, None)]
        assert (await admin.create_topics(wanted)).topic_errors[0][1] == TOPIC_EXISTS

        async def is_listed() -> bool:
            return name in await admin.list_topics()

        await until_told(is_listed)
        [described] = await admin.describe_topics([name])
        assert sorted(partition["partition"] for partition in described["partitions"]) == [0, 1]
        assert (await admin.delete_topics([name])).topic_error_codes == [(name, 0)]
        assert (await admin.delete_topics([name])).topic_error_codes == [(name, UNKNOWN_TOPIC)]

    with_admin(work)


def test_configs_are_altered_and_described(with_admin: WithAdmin, topic: str) -> None:
    async def work(admin: Any) -> None:
        assert await config(admin, topic, "delete.retention.ms") == ("86400000", 5)
        change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"delete.retention.ms": "77"})
        [answer] = await admin.alter_configs([change])
        assert answer.resources[0][0] == 0

        async def is_altered() -> bool:
            return await config(admin, topic, "delete.retention.ms") == ("77", 1)

        await until_told(is_altered)

    with_admin(work)


def test_partitions_are_added(with_admin: WithAdmin, topic: str) -> None:
    async def work(admin: Any) -> None:
        await admin.create_partitions({topic: NewPartitions(3)})

        async def has_three() -> bool:
            [described] = await admin.describe_topics([topic])
            return len(described["partitions"]) == 3

        await until_told(has_three)

    with_admin(work)


def test_records_are_deleted(with_admin: WithAdmin, topic: str, bootstrap: str) -> None:
    client = AioKafka(bootstrap)
    client.produce(topic, [Message(b"x")] * 5)

    async def work(admin: Any) -> None:
        place = TopicPartition(topic, 0)
        assert await admin.delete_records({place: RecordsToDelete(before_offset=2)}) == {place: 2}

    with_admin(work)
    assert client.watermarks(topic) == (2, 5)


def test_the_cluster_describes_itself(with_admin: WithAdmin, bootstrap: str) -> None:
    async def work(admin: Any) -> None:
        cluster = await admin.describe_cluster()
        [broker] = cluster["brokers"]
        assert f"{broker['host']}:{broker['port']}" == bootstrap
        assert cluster["controller_id"] == broker["node_id"]
        assert cluster["cluster_id"]

    with_admin(work)
