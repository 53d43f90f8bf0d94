"""What brokers count about replicas: each number moves when that happens which it stands for.

Those of truncations, unclean elections and restarts are seen to move where these are tested (`test_replicas`,
`test_restarts`, `tests/replication/following`).
"""

from riverlog.controller.decisions.topics import NewTopic
from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.cluster.test_replicas import leader_of, make_topic, state_of, write

GAUGES = (
    "under_replicated_partitions",
    "under_min_isr_partitions",
    "follower_lag_records_max",
    "controller_active",
    "offline_partitions",
    "lease_remaining_seconds",
    "store_lag_seconds",
)
COUNTERS = (
    "isr_shrinks_total",
    "isr_expands_total",
    "unclean_elections_total",
    "unclean_restarts_total",
    "truncated_records_total",
    "truncated_below_hw_total",
    "leader_epoch_changes_total",
    "replica_bad_batches_total",
    "replicated_bytes_total",
    "follower_read_bytes_total",
)


def shown(broker: ClusterNode, name: str, **labels: str) -> float:
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)
    return metrics.value(f"riverlog_{name}", **labels)


def total(cluster: NodeCluster, name: str) -> float:
    return sum(shown(broker, name) for broker in cluster.alive)


def test_a_cluster_that_is_well_shows_that() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a") == [ErrorCode.NONE]
        for name in ("under_replicated_partitions", "under_min_isr_partitions", "offline_partitions"):
            assert total(cluster, name) == 0
        assert shown(cluster.controller, "controller_active") == 1
        assert total(cluster, "controller_active") == 1
        await cluster.until(lambda: total(cluster, "store_lag_seconds") == 0)
        for broker in cluster.alive:
            assert shown(broker, "lease_remaining_seconds") > 0
        for name in (each for each in COUNTERS if each != "replicated_bytes_total"):
            assert total(cluster, name) == 0, name
        assert shown(leader, "replicated_bytes_total") > 0
        peer, followers = str(leader.node_id), [broker for broker in cluster.alive if broker is not leader]
        await cluster.until(
            lambda: not any(shown(each, "follower_lag_records", peer=peer) for each in followers)
        )
        assert not any(shown(each, "fetch_errors_total", peer=peer) for each in followers)

    run(scenario)


def test_replicas_that_are_missing_are_counted_by_the_leader_though_nobody_wrote() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader_id = state_of(cluster).leader
        assert leader_id is not None
        leader = cluster[leader_id]
        first, second = (broker for broker in cluster.alive if broker is not leader)
        await first.kill()
        await cluster.until(lambda: shown(leader, "under_replicated_partitions") == 1)
        assert shown(leader, "under_min_isr_partitions") == 0
        await second.kill()
        await cluster.until(lambda: shown(leader, "under_min_isr_partitions") == 1)
        for broker in (first, second):
            await broker.start()
        await cluster.until(lambda: total(cluster, "under_replicated_partitions") == 0)
        assert total(cluster, "under_min_isr_partitions") == 0
        assert total(cluster, "isr_expands_total") >= 2

    run(scenario, min_insync_replicas="2")


def test_leaders_that_change_and_cannot_be_asked_are_counted_by_followers() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        assert await write(leader, b"a") == [ErrorCode.NONE]
        await leader.kill()
        await cluster.until(
            lambda: all(shown(broker, "leader_epoch_changes_total") >= 1 for broker in cluster.alive)
        )
        peer = str(leader.node_id)
        assert sum(shown(broker, "fetch_errors_total", peer=peer) for broker in cluster.alive) >= 1

    run(scenario)


def test_partitions_without_a_leader_are_counted_by_the_controller() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await cluster.controller.node.controller.create_topics([NewTopic("t", 6, 1)])
        await cluster.until_all_see(lambda image: "t" in image.topics)
        await cluster.others[0].kill()
        await cluster.until(lambda: shown(cluster.controller, "offline_partitions") == 2)
        assert total(cluster, "offline_partitions") == 2, "nobody else counts them again"

    run(scenario)


def test_how_old_the_picture_of_the_cluster_is_and_how_long_a_leader_may_go_on() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        [broker, *_] = cluster.others
        await cluster.until(lambda: shown(broker, "store_lag_seconds") == 0)
        broker.session.suspend()
        await cluster.until(lambda: shown(broker, "store_lag_seconds") > 0.05)
        assert shown(broker, "lease_remaining_seconds") < float("inf")
        broker.session.resume()
        await cluster.until(lambda: shown(broker, "store_lag_seconds") == 0)

    run(scenario)


def test_how_many_records_a_follower_lacks_is_told_for_each_leader() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, partitions=2)
        leader = await leader_of(cluster)
        assert await write(leader, b"a", b"b") == [ErrorCode.NONE] * 2
        follower = next(broker for broker in cluster.alive if broker is not leader)
        following = follower.node._following
        assert following is not None
        fetcher = following.following._fetchers[leader.node_id]
        peer = str(leader.node_id)
        await cluster.until(lambda: shown(follower, "follower_lag_records", peer=peer) == 0)
        [followed] = (each for each in fetcher._session if each.index == 0)
        assert followed.position is not None
        # As if the leader had told of more than has come.
        followed.leader_watermark = followed.position.offset + 5
        assert shown(follower, "follower_lag_records", peer=peer) == 5

    run(scenario)


def test_all_of_them_are_there_from_the_start() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        for broker in cluster.alive:
            for name in (*GAUGES, *COUNTERS):
                assert shown(broker, name) >= 0, name

    run(scenario, brokers=1)
