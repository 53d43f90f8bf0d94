"""Three brokers on one ensemble, whose controllers and sessions die: one rules, epochs rise, all comes back.

Administrators ask all three brokers for topics meanwhile. Brokers are killed, stopped for longer than their
session lasts and cut off from the ensemble, and answers of the ensemble are lost, at times drawn from the
seed. After every tenth of a second the states in the store are held against those before.
"""

import random
from functools import partial
from uuid import UUID

import pytest

from riverlog.metadata import layout, payloads
from riverlog.model.ids import LeaderEpoch
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.testing.simulation.clients.admins import Admin, TopicPlan
from riverlog.testing.simulation.clients.process import Surroundings
from riverlog.testing.simulation.machine.ensembles import HOST, SharedEnsemble
from riverlog.testing.simulation.nodes import SimulatedNode, State
from riverlog.testing.simulation.world import World

_NAMES = ("n1", "n2", "n3")
_NO_SESSION = -1
_CHAOS_S = 25
_HEALED_WITHIN_S = 30


class Cluster:
    def __init__(self, world: World) -> None:
        self.world = world
        self.shared: SharedEnsemble = world.add_ensemble(session_timeout_s=3.0)
        self.nodes: list[SimulatedNode] = [
            world.add_node(name, node_id=number, ensemble=self.shared)
            for number, name in enumerate(_NAMES, 1)
        ]
        self._seen: dict[tuple[UUID, str], payloads.PartitionNode] = {}
        self.terms: dict[int, str] = {}
        """Who served which."""

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        assert self.world.run_until(lambda: all(node.is_serving for node in self.nodes), within_s=10)

    def run_for(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.world.run_for(0.1)
            self.check()

    def check(self) -> None:
        """Epochs only rise, one leader for each, one controller for each term."""
        tree = self.shared.ensemble.tree(layout.TOPICS, _NO_SESSION)
        for path, written in tree.items():
            if not path.endswith("/state"):
                continue
            name = layout.topic(path.split("/")[3])
            topic = payloads.decode_topic(name, tree[name].data).topic_id
            state = payloads.decode_partition(path, written.data)
            before = self._seen.get((topic, path))
            if before is not None:
                assert state.leader_epoch >= before.leader_epoch, path
                assert state.controller_epoch >= before.controller_epoch, path
                if state.leader_epoch == before.leader_epoch:
                    assert (state.leader, state.leader_broker_epoch) == (
                        before.leader,
                        before.leader_broker_epoch,
                    ), path
                assert state.isr == before.isr, path
            self._seen[topic, path] = state
        for node in self.controllers:
            term = node.node.controller._office.term if node.node is not None else None
            assert term is None or self.terms.setdefault(term.epoch, node.name) == node.name

    @property
    def controllers(self) -> list[SimulatedNode]:
        alive = [node for node in self.nodes if node.is_serving]
        return [node for node in alive if node.node is not None and node.node.controller.is_active]

    def is_whole(self) -> bool:
        """Every partition is led, by the broker that has it, and all see the same."""
        if not all(node.is_serving for node in self.nodes):
            return False
        images = [node.node.image for node in self.nodes if node.node is not None]
        if len({image.controller_id for image in images}) != 1 or any(
            image.topics != images[0].topics or len(image.brokers) != 3 for image in images
        ):
            return False
        if len(self.controllers) != 1:
            return False
        return all(
            self._is_led(topic.name, index, each.leader, each.leader_epoch)
            for topic in images[0].topics.values()
            for index, each in enumerate(topic.partitions)
        )

    def _is_led(self, topic: str, index: int, leader: int | None, epoch: int) -> bool:
        if leader is None:
            return False
        node = self.nodes[leader - 1].node
        assert node is not None
        partition = node.replicas.find(topic, index)
        return isinstance(partition, Partition) and partition.role == Leader(LeaderEpoch(epoch))


def _admin(name: str, around: Surroundings) -> Admin:
    return Admin(around, [TopicPlan(f"of-{name}", 3), TopicPlan(f"scratch-{name}", 2, is_scratch=True)])


def _strike(cluster: Cluster, chance: random.Random) -> None:
    world = cluster.world
    node = chance.choice([*cluster.nodes, *cluster.controllers])
    what = chance.choice(["kill", "kill", "pause", "cut", "lost answers", "lost requests", "late watches"])
    match what:
        case "kill":
            if node.state is not State.DOWN:
                node.kill()
        case "pause":
            if node.is_serving:
                node.pause(chance.uniform(1, 5))
        case "cut":
            world.links.cut({node.name}, {HOST})
            world.loop.call_later(
                chance.uniform(1, 5), world.links.heal, {node.name}, {HOST}, context=world.loop.world.context
            )
        case "lost answers":
            cluster.shared.ensemble.lost_answers += 1
        case "lost requests":
            cluster.shared.ensemble.lost_requests += 1
        case "late watches":
            cluster.shared.ensemble.watch_delay_s = chance.choice([0.0, 0.2])


@pytest.mark.parametrize("seed", range(4))
def test_one_controller_rules_and_all_partitions_come_back(seed: int) -> None:
    chance = random.Random(seed)
    with World(seed) as world:
        cluster = Cluster(world)
        cluster.start()
        for node in cluster.nodes:
            world.add_client(f"admin {node.name}", node, partial(_admin, node.name))
        cluster.run_for(3)
        until_s = world.loop.now_s + _CHAOS_S
        while world.loop.now_s < until_s:
            _strike(cluster, chance)
            cluster.run_for(chance.uniform(0.2, 3))
            for node in cluster.nodes:
                if node.state is State.DOWN:
                    node.start()
        cluster.shared.ensemble.watch_delay_s = 0.0
        for node in cluster.nodes:
            world.remove_client(f"admin {node.name}")
        deadline_s = world.loop.now_s + _HEALED_WITHIN_S
        while not cluster.is_whole():
            assert world.loop.now_s < deadline_s, "the cluster did not come back"
            cluster.run_for(0.5)
            for node in cluster.nodes:
                if node.state is State.DOWN:
                    node.start()
        assert len(cluster.terms) > 1, "no controller was followed by another"


def test_a_controller_that_is_deposed_by_hand_is_followed_by_one_of_another_term() -> None:
    with World(1) as world:
        cluster = Cluster(world)
        cluster.start()
        cluster.run_for(1)
        [first] = cluster.terms
        loop = world.loop
        loop.at(loop.now_s, loop.world, cluster.shared.depose_controller)
        cluster.run_for(2)
        assert sorted(cluster.terms) == [first, first + 1]
        assert len(cluster.controllers) == 1
