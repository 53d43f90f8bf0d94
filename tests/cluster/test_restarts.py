"""Brokers that come back after their process, their machine or their disk has failed."""

import shutil
from collections.abc import Callable

from riverlog.controller.decisions.deletion import TopicToDelete
from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata import layout
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, PartitionImage
from riverlog.metadata.payloads import PartitionNode, TopicNode, encode_partition, encode_topic
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicPartition
from riverlog.model.metadata_store import Set
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.records import fetch, produce

UNCLEAN = "riverlog_unclean_restarts_total"


async def make_topic(cluster: NodeCluster, on: ClusterNode, **configs: str) -> None:
    """Topic `t` with one partition, which this broker leads."""
    settings: dict[str, str | None] = {name.replace("_", "."): value for name, value in configs.items()}
    wanted = NewTopic("t", assignments=[(0, [on.node_id])], configs=settings)
    await cluster.controller.node.controller.create_topics([wanted])
    await cluster.until_all_see(lambda image: state(image) is not None)


def state(image: ClusterImage) -> PartitionImage | None:
    return image.partition("t", 0)


def led_by(broker: ClusterNode, epoch: int) -> Callable[[ClusterImage], bool]:
    def is_led(image: ClusterImage) -> bool:
        partition = state(image)
        return (
            partition is not None
            and partition.leader == broker.node_id
            and partition.leader_broker_epoch == image.brokers[broker.node_id].epoch
            and partition.leader_epoch > epoch
        )

    return is_led


async def led_again(cluster: NodeCluster, victim: ClusterNode) -> PartitionImage:
    """The partition that it leads, once its machine has been started anew."""
    victim.boot_id = "second start"
    await victim.start()
    await cluster.until_all_see(led_by(victim, 0))
    partition = state(victim.image)
    assert partition is not None
    return partition


def unclean_restarts(broker: ClusterNode) -> float:
    return broker.node.metrics.value(UNCLEAN)  # type: ignore[attr-defined, no-any-return]


async def is_read(broker: ClusterNode) -> bool:
    fetched = await fetch(broker, 0, 18)
    [data] = fetched.responses[0].partitions
    return (data.error_code, data.high_watermark) == (ErrorCode.NONE, 1)


def test_a_broker_whose_process_was_killed_has_lost_nothing() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        victim = cluster.others[0]
        await make_topic(cluster, victim)
        await produce(victim, 0)
        await victim.kill()
        await victim.start()
        await cluster.until_all_see(led_by(victim, 0))
        assert await is_read(victim)
        partition = state(victim.image)
        assert partition is not None
        assert partition.unclean_epoch is None
        assert unclean_restarts(victim) == 0

    run(scenario)


def test_a_broker_that_was_shut_down_cleanly_has_lost_nothing_when_its_machine_is_started_anew() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        victim = cluster.others[0]
        await make_topic(cluster, victim)
        await victim.stop()
        partition = await led_again(cluster, victim)
        assert partition.unclean_epoch is None
        assert unclean_restarts(victim) == 0

    run(scenario)


def test_the_last_in_sync_leads_after_a_power_cut_and_it_is_counted() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        for victim in (cluster.others[0], cluster.controller):
            await make_topic(cluster, victim)
            await produce(victim, 0)
            await victim.kill()
            partition = await led_again(cluster, victim)
            assert (partition.isr, partition.unclean_epoch) == ((victim.node_id,), partition.leader_epoch)
            assert await is_read(victim)
            assert unclean_restarts(victim) == 1
            await cluster.controller.node.controller.delete_topics([TopicToDelete("t")])
            await cluster.until_all_see(lambda image: state(image) is None)

    run(scenario)


def test_a_power_cut_loses_nothing_of_a_topic_that_is_acknowledged_from_disk() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        victim = cluster.others[0]
        await make_topic(cluster, victim, riverlog_acks_fsync="true")
        await victim.kill()
        partition = await led_again(cluster, victim)
        assert partition.unclean_epoch is None
        assert unclean_restarts(victim) == 0

    run(scenario)


def test_nobody_leads_what_was_only_in_a_lost_directory_until_somebody_says_so() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        victim = cluster.others[0]
        await make_topic(cluster, victim)
        await produce(victim, 0)
        await victim.kill()
        shutil.rmtree(victim.directory)
        await victim.start()
        await cluster.until_all_see(lambda image: victim.node_id in image.brokers)
        controller = cluster.controller.node.controller
        name = TopicPartition("t", 0)
        preferred = await controller.elect_leaders(Election.PREFERRED, [name])
        assert preferred[name] is not None
        partition = state(victim.image)
        assert partition is not None
        assert (partition.leader, partition.isr, partition.last_known_elr) == (None, (), ())
        assert await controller.elect_leaders(Election.UNCLEAN, [name]) == {name: None}
        await cluster.until_all_see(led_by(victim, 0))
        assert cluster.controller.node.metrics.value("riverlog_unclean_elections_total") == 1  # type: ignore[attr-defined]

    run(scenario)


def test_who_may_lack_data_is_in_no_isr_or_elr_when_it_is_registered_again() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first, second = cluster.others
        await make_topic(cluster, first, min_insync_replicas="2")
        topic = first.image.topics["t"]
        both = (first.node_id, second.node_id)
        registration = first.image.brokers[first.node_id].epoch
        node = PartitionNode(first.node_id, LeaderEpoch(7), both, 1, registration)
        await first.session.multi(
            [
                Set(layout.topic("t"), encode_topic(TopicNode(topic.topic_id, (both,)))),
                Set(layout.partition_state("t", 0), encode_partition(node)),
            ]
        )
        await cluster.until_all_see(lambda image: image.topics["t"].partitions[0].isr == both)
        seen: list[tuple[NodeId, ...]] = []

        def note(delta: ImageDelta) -> None:
            partition, broker = state(delta.new), delta.new.brokers.get(second.node_id)
            if partition is not None and broker is not None and broker.epoch > before:
                seen.append((*partition.isr, *partition.elr))

        before = second.image.brokers[second.node_id].epoch
        first.node._follower.subscribe(note)
        await second.kill()
        await cluster.until_all_see(lambda image: image.topics["t"].partitions[0].elr == (second.node_id,))
        second.boot_id = "second start"
        await second.start()
        await cluster.until_all_see(lambda image: second.node_id in image.brokers)
        assert seen
        assert second.node_id not in seen[0]
        assert unclean_restarts(second) == 0

    run(scenario)
