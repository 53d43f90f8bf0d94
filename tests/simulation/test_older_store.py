"""An ensemble that was restored from a backup, whose brokers go on with what they know."""

import pytest

from riverlog.testing.simulation.clients.admins import Admin, TopicPlan
from riverlog.testing.simulation.clients.process import Surroundings
from riverlog.testing.simulation.clients.producers import Producer, ProducerPlan
from riverlog.testing.simulation.machine.ensembles import knows_newer
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.world import World

_SETTINGS = {"min.insync.replicas": "2", "replica.lag.time.max.ms": "3000"}


@pytest.mark.parametrize("renumbers", [False, True])
def test_records_are_written_with_all_acks_while_an_older_state_is_shown(renumbers: bool) -> None:
    with World(5) as world:
        shared = world.add_ensemble(session_timeout_s=3.0)
        shared.keep_snapshots()
        nodes: list[SimulatedNode] = [
            world.add_node(f"n{number}", _SETTINGS, node_id=number, ensemble=shared) for number in range(3)
        ]
        for node in nodes:
            node.start()
        assert world.run_until(lambda: all(node.is_serving for node in nodes), within_s=5)
        world.run_for(1)
        backup_s = world.loop.now_s

        def admin(around: Surroundings) -> Admin:
            return Admin(around, [TopicPlan("t", 3, replication_factor=3)], pause_s=1000.0)

        def producer(around: Surroundings) -> Producer:
            return Producer(around, ProducerPlan("t", 3, acks=-1, in_flight_max=1, pause_s=0.05))

        made = world.add_client("admin", nodes, admin)
        assert world.run_until(lambda: made.is_ready, within_s=5)
        writer = world.add_client("writer", nodes, producer)
        world.run_for(3)
        snapshot = shared.go_back(world.loop.now_s - backup_s, renumbers=renumbers)
        assert all(node.node is not None and knows_newer(node.node.image, snapshot) for node in nodes)
        world.run_for(10)
        before = writer.completed
        world.run_for(10)
        assert writer.completed > before + 50
        shared.put_back()
        world.run_for(10)
        before = writer.completed
        world.run_for(10)
        assert writer.completed > before + 50
