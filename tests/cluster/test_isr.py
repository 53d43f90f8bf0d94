"""The ISR of a partition as brokers stop copying it and catch up again, on several nodes."""

import pytest

from riverlog.model.errors import ErrorCode
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.test_replicas import leader_of, log_of, make_topic, state_of, write


@pytest.fixture(autouse=True)
def _replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.node.node._REPLICAS_MAX", 5, raising=False)


def counted(broker: ClusterNode, name: str) -> float:
    return broker.node.metrics.counter(f"riverlog_isr_{name}_total").value


def test_a_follower_that_stops_copying_falls_out_and_acknowledgements_go_on() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a") == [ErrorCode.NONE]
        stalled = next(broker for broker in cluster.alive if broker is not leader)
        following = stalled.node._following
        assert following is not None
        following.stop()
        assert await write(leader, b"b") == [ErrorCode.NONE], "it waits until the ISR is one less"
        assert log_of(leader).high_watermark == 2
        await cluster.until_all_see(lambda _: stalled.node_id not in state_of(cluster).isr)
        assert len(state_of(cluster).isr) == 2
        assert state_of(cluster).leader_epoch == 0
        assert counted(leader, "shrinks") == 1

    run(scenario, replica_lag_time_max_ms="400")


def test_a_broker_that_comes_back_is_in_sync_again() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a") == [ErrorCode.NONE]
        other = next(broker for broker in cluster.alive if broker is not leader)
        await other.kill()
        await cluster.until_all_see(lambda _: other.node_id not in state_of(cluster).isr)
        assert await write(leader, b"b") == [ErrorCode.NONE]
        await other.start()
        await cluster.until_all_see(lambda _: len(state_of(cluster).isr) == 3, "it is not in sync again")
        assert log_of(other).log_end_offset == 2
        # It is counted when the write is answered, which may be after the image has it.
        await cluster.until(lambda: counted(leader, "expands") == 1, "it is not counted")
        assert state_of(cluster).leader == leader.node_id

    run(scenario)


def test_without_a_session_acks_all_goes_on_and_acks_1_does_not() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a", acks=1) == [ErrorCode.NONE]
        for broker in cluster.alive:
            broker.session.renew(-1e9)  # The last answer is long ago by the broker's own clock.
        assert await write(leader, b"b", acks=1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert await write(leader, b"c") == [ErrorCode.NONE]
        assert log_of(leader).high_watermark == 2

    run(scenario)


def test_acknowledgements_by_all_replicas_go_on_while_no_broker_has_a_session() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a") == [ErrorCode.NONE]
        for broker in cluster.alive:
            broker.session.lose_sight()
        # Each of them has been fetched by followers that are registered nowhere by now.
        assert await write(leader, *[b"b"] * 5) == [ErrorCode.NONE] * 5
        for broker in cluster.alive:
            broker.session.expire()
        await cluster.until_all_see(lambda image: len(image.brokers) == 3 and len(state_of(cluster).isr) == 3)
        assert await write(await leader_of(cluster), b"c") == [ErrorCode.NONE]

    run(scenario)
