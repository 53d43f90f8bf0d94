"""Transactions over three simulated brokers that are killed, stopped, held, or cut off from others."""

import random

import pytest

from riverlog.testing.simulation.machine.ensembles import HOST
from riverlog.testing.simulation.world import World
from tests.cluster.simulated import SESSION_S, ClusterWorld, Transactor, committed_in


def _hurt(cluster: ClusterWorld, chance: random.Random) -> None:
    """One fault, and its end."""
    world, node = cluster.world, chance.choice(cluster.nodes)
    fault = chance.choice(["kill", "stop", "pause", "long pause", "cut", "cut from the store"])
    if fault == "kill":
        node.kill()
        world.run_for(chance.random() * 2 * SESSION_S)
        node.start()
    elif fault == "stop":
        node.stop()
        cluster.until(lambda: not node.life.is_alive, 30)
        node.start()
    elif fault == "cut":
        others = [each.name for each in cluster.nodes if each is not node]
        world.links.cut([node.name], others)
        world.run_for(chance.random() * 6)
        world.links.heal([node.name], others)
    elif fault == "cut from the store":
        world.links.cut([node.name], [HOST])
        world.run_for(chance.random() * 3 * SESSION_S)
        world.links.heal([node.name], [HOST])
    else:
        node.pause(chance.random() * (0.5 if fault == "pause" else 2 * SESSION_S))
    world.run_for(chance.random() * 2)
    cluster.until(lambda: all(each.is_serving for each in cluster.nodes), 60)


@pytest.mark.parametrize(("seed", "replicas"), [(0, 1), (1, 3)])
def test_a_transaction_is_all_or_nothing_over_brokers_that_fail(seed: int, replicas: int) -> None:
    with World(seed) as world:
        cluster = ClusterWorld(world, replicas)
        chance = world.chance("faults")
        transactors = [Transactor(world, cluster.nodes, f"t{at}", version=1 + at % 2) for at in range(3)]
        for _ in range(6):
            _hurt(cluster, chance)
        cluster.until(cluster.all_led, 60)
        world.run_for(3)
        for each in transactors:
            each.is_stopping = True
        cluster.until(lambda: all(each.is_done for each in transactors), 120)
        cluster.until(cluster.nothing_is_open, 120)
        first, *others = (committed_in(cluster.partition(at).log) for at in range(3))
        assert all(each == first for each in others), "all or nothing"
        known = set().union(*(each.committed for each in transactors))
        maybe = set().union(*(each.maybe for each in transactors))
        assert len(known) > 10
        assert known <= first.keys() <= known | maybe
        assert set(first.values()) == {1}
