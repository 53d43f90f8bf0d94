"""Who leads when brokers come and go, and what becomes of logs whose topic was deleted meanwhile."""

import os
from collections.abc import Callable
from functools import partial

from riverlog.controller.decisions.deletion import TopicToDelete
from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata import layout
from riverlog.metadata.image import ClusterImage, PartitionImage
from riverlog.metadata.payloads import PartitionNode, TopicNode, encode_partition, encode_topic
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.metadata_store import Set
from riverlog.replication.roles import Leader
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.records import fetch, produce


def partitions_of(image: ClusterImage, node_id: int, topic: str = "t") -> list[PartitionImage]:
    found = image.topics.get(topic)
    return [] if found is None else [each for each in found.partitions if each.replicas == (NodeId(node_id),)]


def leads(broker: ClusterNode, topic: str = "t") -> list[int]:
    """The partitions for which this broker takes writes."""
    image = broker.image.topics[topic]
    found = ((index, broker.replicas.find(topic, index)) for index in range(len(image.partitions)))
    return [index for index, each in found if isinstance(getattr(each, "role", None), Leader)]


async def make_topic(cluster: NodeCluster, partitions: int = 6, topic: str = "t") -> None:
    await cluster.controller.node.controller.create_topics([NewTopic(topic, partitions, 1)])
    await cluster.until_all_see(lambda image: topic in image.topics)


def test_the_partitions_of_a_topic_are_led_by_all_brokers() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        led = {broker.node_id: leads(broker) for broker in cluster.alive}
        assert sorted(index for indexes in led.values() for index in indexes) == list(range(6))
        assert {len(indexes) for indexes in led.values()} == {2}

    run(scenario)


def test_a_broker_that_comes_back_leads_its_partitions_under_the_next_epoch() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        victim = cluster.others[0]
        before = leads(victim)
        await victim.kill()
        await cluster.until_all_see(
            lambda image: {each.leader for each in partitions_of(image, victim.node_id)} == {None}
        )
        assert {each.isr for each in partitions_of(cluster.alive[0].image, victim.node_id)} == {
            (victim.node_id,)
        }
        await victim.start()
        await cluster.until_all_see(
            lambda image: (
                {(each.leader, each.leader_epoch) for each in partitions_of(image, victim.node_id)}
                == {(victim.node_id, 2)}
            )
        )
        await cluster.until(lambda: leads(victim) == before)

    run(scenario)


def test_the_controller_is_killed_and_its_partitions_come_back_with_it() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        victim = cluster.controller
        await victim.kill()
        await cluster.until_all_see(
            lambda image: {each.leader for each in partitions_of(image, victim.node_id)} == {None}
        )
        await victim.start()
        await cluster.until_all_see(
            lambda image: {each.leader for each in partitions_of(image, victim.node_id)} == {victim.node_id}
        )

    run(scenario)


def test_all_brokers_come_back_after_all_were_killed() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        for broker in cluster.alive:
            await broker.kill()
        for broker in cluster.brokers.values():
            await broker.start()
        await cluster.until(lambda: sum(len(leads(broker)) for broker in cluster.alive) == 6)

    run(scenario)


def test_a_topic_that_was_deleted_while_its_broker_was_away_is_known_as_deleted() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        await make_topic(cluster, topic="kept")
        victim = cluster.others[0]
        indexes = leads(victim)  # Asking makes their logs.
        await victim.kill()
        await cluster.controller.node.controller.delete_topics([TopicToDelete("t")])
        await victim.start()
        await cluster.until_all_see(lambda image: "t" not in image.topics)
        assert indexes
        names = os.listdir(victim.directory)
        assert not [name for name in names if name.startswith("t-") and not name.endswith("-delete")]
        assert not [name for name in names if name.endswith("-stray")]

    run(scenario)


def leads_anew(node_id: int, epoch: int) -> Callable[[ClusterImage], bool]:
    """All brokers and a controller are there, and this one leads its partitions under a later epoch."""
    return lambda image: (
        len(image.brokers) == 3
        and image.controller_id is not None
        and all(
            each.leader == node_id and each.leader_epoch > epoch for each in partitions_of(image, node_id)
        )
    )


def test_a_broker_whose_session_ended_registers_again_and_leads_under_the_next_epoch() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        for victim in (cluster.others[0], cluster.controller):
            epoch = max(each.leader_epoch for each in partitions_of(victim.image, victim.node_id))
            victim.session.expire()
            await cluster.until_all_see(leads_anew(victim.node_id, epoch))
            await cluster.until(partial(_leads_two, victim))

    run(scenario)


def _leads_two(broker: ClusterNode) -> bool:
    return len(leads(broker)) == 2


def test_what_was_acknowledged_is_read_when_its_broker_is_back() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, partitions=3)
        victim = cluster.others[0]
        [index] = leads(victim)
        for round_ in range(3):
            reply = await produce(victim, index)
            [written] = reply.responses[0].partition_responses
            assert (written.error_code, written.base_offset) == (ErrorCode.NONE, round_)
            epoch = victim.image.topics["t"].partitions[index].leader_epoch
            await victim.kill()
            await victim.start()
            await cluster.until_all_see(leads_anew(victim.node_id, epoch))
        fetched = await fetch(victim, index, 18)
        [data] = fetched.responses[0].partitions
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 3)

    run(scenario)


def test_a_broker_that_stops_has_handed_over_what_others_can_lead() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, partitions=1)
        first, second, _ = cluster.alive
        both = (first.node_id, second.node_id)
        topic = cluster.alive[0].image.topics["t"]
        state = PartitionNode(
            first.node_id, LeaderEpoch(7), both, 1, first.image.brokers[first.node_id].epoch
        )
        await first.session.multi(
            [
                Set(layout.topic("t"), encode_topic(TopicNode(topic.topic_id, (both,)))),
                Set(layout.partition_state("t", 0), encode_partition(state)),
            ]
        )
        await cluster.until_all_see(lambda image: image.topics["t"].partitions[0].isr == both)
        node = first.node
        cluster.ensemble.watch_delay_s = 0.2
        await first.stop()
        assert node.image.topics["t"].partitions[0].leader == second.node_id  # Seen before it closed.
        await cluster.until_all_see(
            lambda image: (
                image.topics["t"].partitions[0].leader == second.node_id
                and image.topics["t"].partitions[0].isr == (second.node_id,)
            )
        )

    run(scenario)
