"""Several nodes on one store: each starts, one is the controller, and another takes over when it goes."""

from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.cluster.nodes import NodeCluster, run


def test_three_nodes_are_one_cluster_with_one_controller() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        told = [
            await broker.ask(DescribeClusterRequest(), DescribeClusterResponse) for broker in cluster.alive
        ]
        assert len({each.cluster_id for each in told}) == 1
        assert {each.controller_id for each in told} == {cluster.controller.node_id}
        assert all([broker.broker_id for broker in each.brokers] == [1, 2, 3] for each in told)
        assert [broker.node.controller.is_active for broker in cluster.alive].count(True) == 1

    run(scenario)


def test_another_broker_becomes_the_controller_when_the_first_is_gone() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first = cluster.controller
        await first.kill()
        await cluster.until_all_see(lambda image: image.controller_id not in (None, first.node_id))
        await cluster.until(lambda: cluster.controller.node.controller.is_active)
        await first.start()
        await cluster.until_all_see(lambda image: len(image.brokers) == 3)
        assert cluster.controller is not first

    run(scenario)
