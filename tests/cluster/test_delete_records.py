"""DeleteRecords on a partition with several replicas: answered when none of them has them."""

import asyncio

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.cluster.nodes import WAIT_S, ClusterNode, NodeCluster, run
from tests.cluster.test_replicas import TOPIC, leader_of, log_of, make_topic, until_equal, write


async def delete(broker: ClusterNode, offset: int, timeout_ms: int = 3_600_000) -> tuple[ErrorCode, int]:
    """What is answered, and the lowest log start that is told; long before the request's time is over."""
    topic = DeleteRecordsTopic(
        name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
    )
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
    response = await asyncio.wait_for(broker.ask(request, DeleteRecordsResponse), WAIT_S)
    [result] = response.topics[0].partitions
    return ErrorCode.of(result.error_code), result.low_watermark


def starts(cluster: NodeCluster) -> list[int]:
    return [log_of(broker).log_start_offset for broker in cluster.alive]


async def written(cluster: NodeCluster) -> ClusterNode:
    """The leader of a partition with ten records on all brokers."""
    await make_topic(cluster)
    leader = await leader_of(cluster)
    assert set(await write(leader, *(b"%d" % number for number in range(10)))) == {ErrorCode.NONE}
    await until_equal(cluster)
    return leader


def stall(broker: ClusterNode) -> None:
    following = broker.node._following
    assert following is not None
    following.stop()


def followers(cluster: NodeCluster, leader: ClusterNode) -> list[ClusterNode]:
    return [broker for broker in cluster.alive if broker is not leader]


def test_it_is_answered_when_the_records_are_gone_from_all_replicas() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        leader = await written(cluster)
        assert await delete(leader, 4) == (ErrorCode.NONE, 4)
        assert starts(cluster) == [4, 4, 4]
        assert await delete(leader, 2) == (ErrorCode.NONE, 4)
        assert await delete(leader, -1) == (ErrorCode.NONE, 10)
        assert starts(cluster) == [10, 10, 10]
        assert await delete(leader, 11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        for other in followers(cluster, leader):
            assert await delete(other, 10) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(scenario)


def test_it_times_out_where_a_replica_does_not_hear_of_it_and_not_where_that_is_gone() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        leader = await written(cluster)
        stalled = followers(cluster, leader)[0]
        stall(stalled)
        assert await delete(leader, 4, timeout_ms=100) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert log_of(leader).log_start_offset == 4, "they are gone here all the same"
        waiting = asyncio.ensure_future(delete(leader, 6))
        await cluster.until(lambda: log_of(leader).log_start_offset == 6)
        assert not waiting.done()
        await stalled.kill()
        assert await waiting == (ErrorCode.NONE, 6)
        assert starts(cluster) == [6, 6]

    run(scenario)


def test_a_leader_that_leads_no_more_says_so_to_those_who_wait() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        leader = await written(cluster)
        stall(followers(cluster, leader)[0])
        waiting = asyncio.ensure_future(delete(leader, 6))
        await cluster.until(lambda: log_of(leader).log_start_offset == 6)
        partition = leader.replicas.find(TOPIC, 0)
        assert isinstance(partition, Partition)
        epoch = LeaderEpoch(partition.leader_epoch + 1)
        partition.take_role(Follower(epoch, followers(cluster, leader)[0].node_id))
        assert await waiting == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(scenario)
