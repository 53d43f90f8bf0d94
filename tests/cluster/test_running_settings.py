"""Settings that act on replicas while the brokers run: how many must be in sync, and who leads again."""

from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.test_replicas import TOPIC, leader_of, make_topic, state_of, write

_OF_TOPIC = 2


async def ask_for_in_sync(broker: ClusterNode, count: int) -> None:
    setting = AlterableConfig(name="min.insync.replicas", value=str(count))
    resource = AlterConfigsResource(resource_type=_OF_TOPIC, resource_name=TOPIC, configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    reply = await broker.ask(request, IncrementalAlterConfigsResponse)
    assert [each.error_code for each in reply.responses] == [ErrorCode.NONE]


async def until_asked_for(leader: ClusterNode, cluster: NodeCluster, count: int) -> None:
    await cluster.until(
        lambda: leader.image.topic_config(TOPIC).get("min.insync.replicas") == str(count), "not heard of"
    )


def test_how_many_must_be_in_sync_changes_while_the_leader_leads() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        epoch = state_of(cluster).leader_epoch
        other = next(each for each in cluster.alive if each is not leader)
        away = next(each for each in cluster.alive if each not in (leader, other))
        await away.kill()
        await cluster.until_all_see(lambda _: len(state_of(cluster).isr) == 2)
        assert await write(leader, b"a") == [ErrorCode.NONE]

        await ask_for_in_sync(other, 3)
        await until_asked_for(leader, cluster, 3)
        assert await write(leader, b"b") == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert await write(leader, b"b", acks=1) == [ErrorCode.NONE]

        await ask_for_in_sync(other, 2)
        await until_asked_for(leader, cluster, 2)
        assert await write(leader, b"c") == [ErrorCode.NONE]

        await ask_for_in_sync(other, 3)
        await until_asked_for(leader, cluster, 3)
        await away.start()
        await cluster.until_all_see(lambda _: len(state_of(cluster).isr) == 3)
        assert await write(leader, b"d") == [ErrorCode.NONE]
        assert state_of(cluster).leader_epoch == epoch

    run(scenario)


def test_a_preferred_leader_that_is_back_leads_again_without_being_asked() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        first = await leader_of(cluster)
        assert state_of(cluster).replicas[0] == first.node_id
        await first.kill()
        await cluster.until_all_see(
            lambda image: image.topics[TOPIC].partitions[0].leader not in (None, first.node_id)
        )
        assert await write(await leader_of(cluster), b"a") == [ErrorCode.NONE]
        await first.start()
        await cluster.until_all_see(
            lambda image: image.topics[TOPIC].partitions[0].leader == first.node_id, "it does not lead again"
        )
        assert await write(await leader_of(cluster), b"b") == [ErrorCode.NONE]

    run(scenario, leader_imbalance_check_interval_seconds="1")
