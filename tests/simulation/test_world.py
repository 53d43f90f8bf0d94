"""Brokers in the simulated world: they serve, they die, they come back with what they promised."""

import pytest

from riverlog.testing.simulation.clients.admins import Admin, TopicPlan
from riverlog.testing.simulation.clients.consumers import Consumer, ConsumerPlan
from riverlog.testing.simulation.clients.producers import Producer, ProducerPlan
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.violations import Violation
from riverlog.testing.simulation.world import World


def _served(world: World, name: str = "n1") -> SimulatedNode:
    node = world.add_node(name)
    node.start()
    assert world.run_until(lambda: node.is_serving, within_s=5)
    admin = world.add_client(f"admin of {name}", node, lambda around: Admin(around, [TopicPlan("t", 2)]))
    assert world.run_until(lambda: admin.is_ready, within_s=5)
    return node


def _producer(world: World, node: SimulatedNode) -> Producer:
    plan = ProducerPlan("t", 2)
    return world.add_client(f"producer of {node.name}", node, lambda around: Producer(around, plan))


def test_a_producer_is_acknowledged_across_a_kill_and_nothing_acknowledged_is_lost() -> None:
    with World(1) as world:
        node = _served(world)
        producer = _producer(world, node)
        consumer = world.add_client("c", node, lambda around: Consumer(around, ConsumerPlan("t", 2)))
        world.run_for(3)
        before = producer.completed
        assert before > 20
        node.kill()
        world.run_for(1)
        node.start()
        assert world.run_until(lambda: node.is_serving, within_s=5)
        world.run_for(3)
        assert producer.completed > before + 20
        assert world.counts["consume fetched"] > 20
        assert consumer.completed > 20


def test_a_log_that_lost_an_acknowledged_batch_is_noticed_at_the_next_start() -> None:
    with World(2) as world:
        node = _served(world)
        _producer(world, node)
        world.run_for(2)
        node.kill()
        content = node.disk.peek("/data/t-0/00000000000000000000.log")
        del content[-80:]
        node.start()
        with pytest.raises(Violation, match="I1"):
            world.run_until(lambda: node.is_serving, within_s=5)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def run(seed: int) -> tuple[str, int]:
        with World(seed) as world:
            node = _served(world)
            _producer(world, node)
            world.run_for(2)
            node.power_cut(seed)
            world.observers["n1"].note_power_cut()
            node.start()
            world.run_for(2)
            return world.trace.hash, world.loop.steps

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_several_brokers_run_beside_each_other_and_one_dies_alone() -> None:
    with World(3) as world:
        nodes = [_served(world, name) for name in ("n1", "n2", "n3")]
        producers = [_producer(world, node) for node in nodes]
        world.run_for(1)
        nodes[0].kill()
        before = [each.completed for each in producers]
        world.run_for(2)
        gained = [each.completed - was for each, was in zip(producers, before, strict=True)]
        assert gained[0] == 0
        assert min(gained[1:]) > 10


def test_a_stopped_process_answers_nothing_until_it_is_continued() -> None:
    with World(4) as world:
        node = _served(world)
        producer = _producer(world, node)
        world.run_for(1)
        node.pause(2.0)
        before = producer.completed
        world.run_for(1.9)
        assert producer.completed <= before + producer.plan.in_flight_max
        world.run_for(2)
        assert producer.completed > before + 20
