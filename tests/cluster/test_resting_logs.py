"""Logs with replicas that nobody uses are closed, on the leader and on the followers, and nobody notices."""

from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.records import fetch
from tests.cluster.test_delete_records import delete
from tests.cluster.test_replicas import TOPIC, bytes_of, leader_of, make_topic, until_equal, write
from tests.waiting import until, until_told

PARTITIONS = 6
FEW: dict[str, Any] = {
    "riverlog_open_logs_max": "1",
    "replica_lag_time_max_ms": "2000",
    "log_retention_ms": "-1",
}


def opened(broker: ClusterNode) -> set[int]:
    logs = [log for each in broker.node._directories.online for log in each.opened()]
    return {log.topic_partition.partition for log in logs if log.topic_partition.topic == TOPIC}


async def look(cluster: NodeCluster) -> None:
    for broker in cluster.alive:
        await broker.node._idle_logs.close_some()


async def until_closed(cluster: NodeCluster) -> None:
    """But for one on each broker, as many as may be open."""

    async def is_done() -> bool:
        await look(cluster)
        return all(len(opened(broker)) <= 1 for broker in cluster.alive)

    await until_told(is_done, f"too many logs are open on brokers {[each.node_id for each in cluster.alive]}")


async def followers_have_asked(cluster: NodeCluster) -> None:
    """Each of them each leader, several times since."""

    def answered(broker: ClusterNode) -> float:
        assert isinstance(broker.node.metrics, InMemoryMetrics)
        return broker.node.metrics.value("riverlog_requests_total", api="Fetch")

    before = {broker.node_id: answered(broker) for broker in cluster.alive}
    wanted = 4 * (len(cluster.alive) - 1)
    await until(lambda: all(answered(each) >= before[each.node_id] + wanted for each in cluster.alive))


async def written(cluster: NodeCluster) -> ClusterNode:
    """The leader of partition 0; all partitions have a record."""
    await make_topic(cluster, PARTITIONS)
    for index in range(PARTITIONS):
        assert await write(await leader_of(cluster, index), b"v", index=index) == [ErrorCode.NONE]
    return await leader_of(cluster)


async def ends(cluster: NodeCluster, *, of_copies: bool = False) -> dict[int, list[int]]:
    """As the brokers tell them, each of what it leads, or of its own copy."""
    told: dict[int, list[int]] = {}
    for broker in cluster.alive:
        wanted = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(PARTITIONS)]
        topics = [ListOffsetsTopic(name=TOPIC, partitions=wanted)]
        request = ListOffsetsRequest(replica_id=-2 if of_copies else -1, topics=topics)
        response = await broker.ask(request, ListOffsetsResponse, 7)
        for each in response.topics[0].partitions:
            if not each.error_code:
                told.setdefault(each.partition_index, []).append(each.offset)
    return told


def epochs(cluster: NodeCluster) -> list[tuple[int, ...]]:
    partitions = cluster.alive[0].image.topics[TOPIC].partitions
    return [(each.leader_epoch, *sorted(each.isr)) for each in partitions]


def test_they_are_closed_on_all_brokers_and_questions_open_none() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        before = epochs(cluster)
        await until_closed(cluster)
        left = [opened(broker) for broker in cluster.alive]
        assert await ends(cluster) == {index: [1] for index in range(PARTITIONS)}
        assert await ends(cluster, of_copies=True) == {index: [1] * 3 for index in range(PARTITIONS)}
        await followers_have_asked(cluster)
        assert [opened(broker) for broker in cluster.alive] == left
        assert epochs(cluster) == before

    run(scenario, **FEW)


def test_they_are_written_again_and_all_replicas_get_it() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        for round_ in range(3):
            await until_closed(cluster)
            for index in range(PARTITIONS):
                assert await write(await led(cluster, index), b"w", index=index) == [ErrorCode.NONE]
            assert await ends(cluster) == {index: [2 + round_] for index in range(PARTITIONS)}
        for index in range(PARTITIONS):
            await until_equal(cluster, index)

    run(scenario, **FEW)


def leaders(cluster: NodeCluster) -> list[int | None]:
    return [each.leader for each in cluster.alive[0].image.topics[TOPIC].partitions]


async def led(cluster: NodeCluster, index: int) -> ClusterNode:
    """Who leads by the metadata; asking it for the partition would open that."""
    leader = cluster.alive[0].image.topics[TOPIC].partitions[index].leader
    assert leader is not None
    return cluster[leader]


def test_another_leads_when_the_leader_of_a_closed_log_dies_and_comes_back() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        await until_closed(cluster)
        leader = await led(cluster, 0)
        await leader.kill()
        await cluster.until_all_see(
            lambda image: image.topics[TOPIC].partitions[0].leader not in (None, leader.node_id)
        )
        assert await ends(cluster) == {index: [1] for index in range(PARTITIONS)}
        await until_closed(cluster)
        for index in range(PARTITIONS):
            assert await write(await led(cluster, index), b"w", index=index) == [ErrorCode.NONE]
        await until_closed(cluster)
        await leader.start()
        await cluster.until_all_see(
            lambda image: all(len(each.isr) == 3 for each in image.topics[TOPIC].partitions)
        )
        await until_closed(cluster)
        assert await ends(cluster, of_copies=True) == {index: [2] * 3 for index in range(PARTITIONS)}
        for index in range(PARTITIONS):
            assert len({bytes_of(broker, index) for broker in cluster.alive}) == 1

    run(scenario, **FEW)


def test_a_broker_that_starts_again_opens_nothing_that_is_as_it_was() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        await until_closed(cluster)
        for broker in cluster.alive:
            await broker.stop()
            await broker.start()
            await cluster.until_all_see(
                lambda image: all(len(each.isr) == 3 for each in image.topics[TOPIC].partitions)
            )
        assert await ends(cluster, of_copies=True) == {index: [1] * 3 for index in range(PARTITIONS)}
        # What a broker leads it opens for a follower that comes back, to take it into the ISR; no copies.
        copied = set(range(PARTITIONS)) - {index for index, at in enumerate(leaders(cluster)) if at == 3}
        assert not opened(cluster[3]) & copied
        await until_closed(cluster)
        for index in range(PARTITIONS):
            assert await write(await led(cluster, index), b"w", index=index) == [ErrorCode.NONE]

    run(scenario, **FEW)


def test_records_that_are_deleted_from_a_closed_log_go_from_its_copies() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        await until_closed(cluster)
        leader = await led(cluster, 0)
        assert await delete(leader, 1) == (ErrorCode.NONE, 1)
        await until_closed(cluster)
        response = await fetch(leader, 0, 12)
        assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert response.responses[0].partitions[0].log_start_offset == -1

    run(scenario, **FEW)


@pytest.mark.parametrize("disk", ["true", "false"])
def test_one_whose_follower_is_behind_stays_open_until_that_has_left(disk: str) -> None:
    async def scenario(cluster: NodeCluster) -> None:
        leader = await written(cluster)
        behind = next(each for each in cluster.alive if each is not leader)
        assert behind.node._following is not None
        behind.node._following.stop()
        for index in range(PARTITIONS):
            await write(await led(cluster, index), b"w", index=index, acks=1)
        others = [each for each in cluster.alive if each is not behind]
        led_here = {
            index
            for index in range(PARTITIONS)
            if cluster.alive[0].image.topics[TOPIC].partitions[index].leader == leader.node_id
        }
        for _ in range(3):
            await leader.node._idle_logs.close_some()
        assert led_here <= opened(leader)
        await behind.kill()
        await cluster.until_all_see(
            lambda image: all(len(each.isr) == 2 for each in image.topics[TOPIC].partitions)
        )
        await until_closed(cluster)
        assert await ends(cluster) == {index: [2] for index in range(PARTITIONS)}
        await behind.start()
        await cluster.until_all_see(
            lambda image: all(len(each.isr) == 3 for each in image.topics[TOPIC].partitions)
        )
        assert len(others) == 2
        for index in range(PARTITIONS):
            await until_equal(cluster, index)

    run(scenario, riverlog_acks_fsync=disk, **FEW)


def test_the_number_of_closed_logs_is_counted() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await written(cluster)
        await until_closed(cluster)
        for broker in cluster.alive:
            metrics = broker.node.metrics
            assert isinstance(metrics, InMemoryMetrics)
            assert metrics.value("riverlog_idle_logs_closed_total") >= PARTITIONS - 1
            assert metrics.value("riverlog_open_logs") == len(opened(broker))

    run(scenario, **FEW)
