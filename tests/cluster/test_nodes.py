"""Several nodes on one store: each starts, one is the controller, and another takes over when it goes."""

from riverlog.metadata import layout
from riverlog.model.metadata_store import WatchEvent
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.cluster.nodes import NodeCluster, run

_NO_SESSION = -1


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


def test_a_controller_that_is_stopped_makes_room_before_its_session_ends() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        first, ensemble = cluster.controller, cluster.ensemble
        was_registered: list[bool] = []

        def on_change(event: WatchEvent) -> None:
            was_registered.append(ensemble.get(layout.broker(first.node_id), _NO_SESSION) is not None)

        onlooker = ensemble.connect()
        onlooker.watch(layout.CONTROLLER, on_change)
        await first.stop()
        assert was_registered[0]
        await cluster.until_all_see(lambda image: image.controller_id not in (None, first.node_id))
        await onlooker.close()

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
