"""What brokers answer about each other: leaders, addresses, the controller, who leads instead (KIP-951)."""

from riverlog.controller.decisions.topics import NewTopic
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from riverlog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.cluster.nodes import LISTENER, ClusterNode, NodeCluster, run
from tests.cluster.records import fetch, produce

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def make_topic(cluster: NodeCluster) -> None:
    await cluster.controller.node.controller.create_topics([NewTopic("t", 3, 1)])
    await cluster.until_all_see(lambda image: "t" in image.topics)


def led_by(broker: ClusterNode) -> int:
    partitions = broker.image.topics["t"].partitions
    return next(index for index, each in enumerate(partitions) if each.leader == broker.node_id)


async def metadata(broker: ClusterNode) -> MetadataResponse:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    return await broker.ask(request, MetadataResponse)


def test_every_broker_names_all_brokers_their_addresses_and_the_leaders() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        for broker in cluster.alive:
            told = await metadata(broker)
            addresses = {each.node_id: f"{each.host}:{each.port}" for each in told.brokers}
            assert addresses == {each.node_id: each.bootstrap_servers for each in cluster.alive}
            assert told.controller_id == cluster.controller.node_id
            [topic] = told.topics
            assert sorted(each.leader_id for each in topic.partitions) == [1, 2, 3]
            assert {each.error_code for each in topic.partitions} == {ErrorCode.NONE}

    run(scenario)


def test_a_partition_whose_broker_is_away_has_no_leader_for_clients() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        away = cluster.others[0]
        index = led_by(away)
        await away.kill()
        await cluster.until_all_see(lambda image: image.topics["t"].partitions[index].leader is None)
        for broker in cluster.alive:
            told = await metadata(broker)
            assert away.node_id not in {each.node_id for each in told.brokers}
            partition = told.topics[0].partitions[index]
            assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (partition.leader_id, partition.leader_epoch) == (-1, 1)
            assert (partition.isr_nodes, partition.offline_replicas) == ([away.node_id], [away.node_id])
            described = await broker.ask(
                DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]),
                DescribeTopicPartitionsResponse,
            )
            assert described.topics[0].partitions[index].leader_id == -1
            refused = await produce(broker, index)
            [reply] = refused.responses[0].partition_responses
            assert (reply.error_code, reply.current_leader.leader_id) == (NOT_LEADER, -1)
            assert refused.node_endpoints == []

    run(scenario)


def test_brokers_that_are_away_are_shown_to_those_who_ask_for_fenced_ones() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        [first, *_] = cluster.others
        await cluster.add(7, broker_rack="far")
        await cluster.until_all_see(lambda image: len(image.brokers) == 4)
        host, port = cluster[7].node.advertised[LISTENER]
        await cluster[7].kill()
        await cluster.until_all_see(lambda image: len(image.brokers) == 3)

        async def brokers(**asked: bool) -> list[DescribeClusterBroker]:
            told = await first.ask(
                DescribeClusterRequest(endpoint_type=1, **asked), DescribeClusterResponse, 2
            )
            return told.brokers

        assert [(each.broker_id, each.is_fenced) for each in await brokers()] == [
            (1, False),
            (2, False),
            (3, False),
        ]
        *alive, fenced = await brokers(include_fenced_brokers=True)
        assert [each.is_fenced for each in alive] == [False] * 3
        assert (fenced.broker_id, fenced.is_fenced) == (7, True)
        assert (fenced.host, fenced.port, fenced.rack) == (host, port, "far")
        unregistered = await first.ask(UnregisterBrokerRequest(broker_id=7), UnregisterBrokerResponse)
        assert unregistered.error_code == ErrorCode.NONE
        await cluster.until_all_see(lambda image: len(image.registered) == 3)
        assert len(await brokers(include_fenced_brokers=True)) == 3

    run(scenario)


def test_who_is_not_the_leader_tells_who_is_since_the_versions_that_have_room_for_it() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader, other = cluster.alive[:2]
        index = led_by(leader)
        address = leader.node.advertised[LISTENER]
        for version in (9, 10, 12, 13):
            told = await produce(other, index, version)
            [reply] = told.responses[0].partition_responses
            assert reply.error_code == NOT_LEADER
            found = [(each.node_id, each.host, each.port) for each in told.node_endpoints]
            if version >= 10:
                assert (reply.current_leader.leader_id, reply.current_leader.leader_epoch) == (
                    leader.node_id,
                    0,
                )
                assert found == [(leader.node_id, *address)]
            else:
                assert found == []
        for version in (12, 15, 16, 18):
            fetched = await fetch(other, index, version)
            [data] = fetched.responses[0].partitions
            assert data.error_code == NOT_LEADER
            found = [(each.node_id, each.host, each.port) for each in fetched.node_endpoints]
            assert found == ([(leader.node_id, *address)] if version >= 16 else [])
        assert (await produce(leader, index)).responses[0].partition_responses[0].error_code == 0
        assert (await fetch(leader, index, 18)).responses[0].partitions[0].records

    run(scenario)


def test_positions_are_told_by_the_leader_alone() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader, other = cluster.alive[:2]
        index = led_by(leader)
        offsets = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)]
                )
            ],
        )
        epochs = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    topic="t", partitions=[OffsetForLeaderPartition(partition=index, leader_epoch=0)]
                )
            ],
        )
        for broker, error in ((leader, ErrorCode.NONE), (other, NOT_LEADER)):
            told = await broker.ask(offsets, ListOffsetsResponse)
            assert told.topics[0].partitions[0].error_code == error
            ends = await broker.ask(epochs, OffsetForLeaderEpochResponse)
            assert ends.topics[0].partitions[0].error_code == error

    run(scenario)
