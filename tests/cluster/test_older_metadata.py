"""The metadata was restored from an older backup for good, and every broker is started on it.

Leaders and ISRs are those of the past then; what was acknowledged since is in logs of which the metadata
knows nothing. None of it may be lost, whoever comes first.
"""

from functools import partial

import pytest

from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata.image import ClusterImage, PartitionImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.testing.simulated_tree import Snapshot
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.records import fetch, produce

OLDER = "riverlog_older_state_partitions"


def state(image: ClusterImage) -> PartitionImage | None:
    return image.partition("t", 0)


def is_led_by_other_than(image: ClusterImage, node_id: int, epoch: int) -> bool:
    partition = state(image)
    return (
        partition is not None
        and partition.leader not in (None, node_id)
        and partition.leader_epoch > epoch
        and partition.leader_broker_epoch == image.brokers[partition.leader].epoch
    )


def present(cluster: NodeCluster) -> PartitionImage:
    found = state(cluster.alive[0].image)
    assert found is not None
    return found


async def leader_of(cluster: NodeCluster) -> ClusterNode:
    """Once all brokers that are alive agree on it."""

    def is_led(image: ClusterImage) -> bool:
        return is_led_by_other_than(image, 0, -1)

    await cluster.until_all_see(is_led)
    leader = present(cluster).leader
    assert leader is not None
    await cluster.until(lambda: cluster[leader].replicas.find("t", 0))
    return cluster[leader]


async def write(cluster: NodeCluster, count: int) -> None:
    leader = await leader_of(cluster)
    for _ in range(count):
        produced = await produce(leader, 0)
        [answer] = produced.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE


async def committed(broker: ClusterNode) -> int | None:
    """How many records it serves; None where it does not lead."""
    fetched = await fetch(broker, 0, 18)
    [data] = fetched.responses[0].partitions
    return data.high_watermark if data.error_code == ErrorCode.NONE else None


async def until_committed(cluster: NodeCluster, count: int) -> None:
    async def is_committed() -> bool:
        return await committed(await leader_of(cluster)) == count

    for _ in range(1000):
        if await is_committed():
            return
        await cluster.until_all_see(lambda image: True)
    raise AssertionError(f"{await committed(await leader_of(cluster))} and not {count} records are committed")


async def producer_id(broker: ClusterNode) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    reply = await broker.ask(request, InitProducerIdResponse)
    assert reply.error_code == ErrorCode.NONE
    found: int = reply.producer_id
    return found


async def make_topic(cluster: NodeCluster, *replicas: int) -> None:
    wanted = NewTopic("t", assignments=[(0, [NodeId(each) for each in replicas])])
    await cluster.controller.node.controller.create_topics([wanted])
    await cluster.until_all_see(lambda image: state(image) is not None)


async def move(cluster: NodeCluster, times: int) -> None:
    """The leader dies and comes back, and another one leads meanwhile where there is one."""
    for _ in range(times):
        epoch, leader = present(cluster).leader_epoch, await leader_of(cluster)
        await leader.kill()
        if cluster.alive and len(present(cluster).replicas) > 1:
            await cluster.until_all_see(partial(is_led_by_other_than, node_id=leader.node_id, epoch=epoch))
        await leader.start()
        await leader_of(cluster)
        alive = {broker.node_id for broker in cluster.alive}
        await until_in_sync(cluster, len(alive.intersection(present(cluster).replicas)))


async def until_in_sync(cluster: NodeCluster, count: int) -> None:
    await cluster.until_all_see(lambda image: len(getattr(state(image), "isr", ())) == count)


async def restore(cluster: NodeCluster, backup: Snapshot) -> None:
    """All brokers are gone by then, as they have to be."""
    for broker in cluster.alive:
        await broker.kill()
    cluster.ensemble.restore(backup)


async def with_a_past(cluster: NodeCluster, moves: int = 3) -> Snapshot:
    """A backup in which broker 1 leads and all are in sync; since then it has missed all but a record."""
    await make_topic(cluster, 1, 2, 3)
    await write(cluster, 1)
    backup = cluster.ensemble.snapshot()
    await cluster[1].kill()
    await cluster.until_all_see(lambda image: is_led_by_other_than(image, 1, 0))
    await move(cluster, moves)
    await write(cluster, 3)
    await until_in_sync(cluster, 2)
    return backup


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("moves", [0, 3])
def test_nothing_is_lost_whoever_is_started_first(moves: int, order: tuple[int, ...]) -> None:
    """Without a move since, the leader that the old state has elected has the epoch of the true one."""

    async def scenario(cluster: NodeCluster) -> None:
        backup = await with_a_past(cluster, moves)
        epoch = present(cluster).leader_epoch
        given = max([await producer_id(cluster[2]) for _ in range(2)])
        await restore(cluster, backup)
        for number in order:
            await cluster[number].start()
        await cluster.until_all_see(lambda image: is_led_by_other_than(image, 1, epoch))
        await until_in_sync(cluster, 3)
        await until_committed(cluster, 4)
        assert present(cluster).unclean_epoch is None
        assert present(cluster).log_epoch is None
        await cluster.until(lambda: all(older(broker) == 0 for broker in cluster.alive))
        for broker in cluster.alive:
            assert await producer_id(broker) > given, "an id is given twice"
        await write(cluster, 1)
        await until_committed(cluster, 5)

    run(scenario, auto_leader_rebalance_enable="false")


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("is_restored_first", [False, True])
def test_who_was_stopped_cleanly_has_lost_nothing_although_the_metadata_does_not_know_of_it(
    is_restored_first: bool, order: tuple[int, ...]
) -> None:
    """Machines have been started anew since the backup, and it knows the registrations before that."""

    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, 1, 2, 3)
        await write(cluster, 1)
        backup = cluster.ensemble.snapshot()
        for number in (2, 3, 1):
            await cluster[number].stop()
            cluster[number].boot_id = "second start"
            await cluster[number].start()
            await until_in_sync(cluster, 3)
            await leader_of(cluster)
        for number in (1, 3):
            await cluster[number].stop()
        await write(cluster, 3)
        if is_restored_first:
            cluster.ensemble.restore(backup)
            registrar = cluster[2].node._registrar
            await cluster.until(lambda: registrar is not None and registrar.broker_epoch is None)
        await cluster[2].stop()
        await restore(cluster, backup)
        for number in order:
            await cluster[number].start()
        await until_in_sync(cluster, 3)
        await until_committed(cluster, 4)
        assert present(cluster).unclean_epoch is None

    run(scenario, auto_leader_rebalance_enable="false")


def older(broker: ClusterNode) -> float:
    return broker.node.metrics.value(OLDER)  # type: ignore[attr-defined, no-any-return]


def test_a_sole_replica_leads_on_above_the_epochs_of_its_log() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, 2)
        backup = cluster.ensemble.snapshot()
        await move(cluster, 4)
        await write(cluster, 2)
        epoch, given = present(cluster).leader_epoch, await producer_id(cluster[1])
        await restore(cluster, backup)
        for broker in cluster.brokers.values():
            await broker.start()
        await cluster.until(lambda: not isinstance(cluster[2].replicas.find("t", 0), ErrorCode))
        await cluster.until_all_see(lambda image: is_led_by_other_than(image, 0, epoch))
        for broker in cluster.alive:
            assert await producer_id(broker) > given, "an id is given twice"
        await until_committed(cluster, 2)
        await write(cluster, 1)
        await until_committed(cluster, 3)

    run(scenario, auto_leader_rebalance_enable="false")


def test_nobody_leads_while_a_replica_is_away_although_another_was_started_again() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        backup = await with_a_past(cluster)
        await restore(cluster, backup)
        for number in (1, 2):
            await cluster[number].start()
        await cluster.until_all_see(lambda image: getattr(state(image), "log_epoch", None) is not None)
        await cluster[2].kill()
        await cluster[2].start()
        await cluster[1].kill()
        await cluster[1].start()
        await cluster.until(lambda: all(older(broker) == 1 for broker in cluster.alive))
        await cluster.until_all_see(lambda image: sum(bool(b.log_ends) for b in image.brokers.values()) == 2)
        found = present(cluster)
        assert (found.leader, found.log_epoch is None) == (None, False)
        for broker in cluster.alive:
            assert await committed(broker) is None
        await cluster[3].start()
        await until_in_sync(cluster, 3)
        await until_committed(cluster, 4)

    run(scenario, auto_leader_rebalance_enable="false")


def test_without_a_replica_that_is_gone_for_good_the_others_go_on_when_they_are_told_to() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        backup = await with_a_past(cluster)
        await restore(cluster, backup)
        for number in (1, 2):
            await cluster[number].start()
        await cluster.until_all_see(lambda image: sum(bool(b.log_ends) for b in image.brokers.values()) == 2)
        controller = cluster.controller.node.controller
        elected = await controller.elect_leaders(Election.UNCLEAN, [TopicPartition("t", 0)])
        assert list(elected.values()) == [None]
        await until_in_sync(cluster, 2)
        await until_committed(cluster, 4)
        assert present(cluster).leader == NodeId(2)
        assert present(cluster).unclean_epoch == present(cluster).leader_epoch
        await write(cluster, 2)
        await cluster[3].start()  # It was not gone, and follows.
        await until_in_sync(cluster, 3)
        await until_committed(cluster, 6)
        assert present(cluster).leader == NodeId(2)

    run(scenario, auto_leader_rebalance_enable="false")
