"""Replicas in the simulator: what a seed draws, and what the checks of replicas notice."""

import json

import pytest

from riverlog.testing.simulation.case_files import from_json
from riverlog.testing.simulation.cases import draw
from riverlog.testing.simulation.clients.admins import Admin, TopicPlan
from riverlog.testing.simulation.clients.process import Surroundings
from riverlog.testing.simulation.clients.producers import Producer, ProducerPlan
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.runs import run_case
from riverlog.testing.simulation.schedules import ScheduleError
from riverlog.testing.simulation.world import World
from tests.simulation.seeds import operations_of


def test_no_promise_is_broken_by_replicas() -> None:
    assert operations_of(0, 5, "replicas") >= 300 * 6


def test_a_majority_goes_on_without_nodes_that_are_lost_for_ever() -> None:
    assert operations_of(0, 2, "core") >= 300 * 3


def test_no_promise_is_broken_while_leaders_move_all_the_time() -> None:
    assert operations_of(0, 3, "failovers") >= 150 * 4


def test_fetches_that_are_answered_with_where_the_logs_part_are_counted() -> None:
    counts = [run_case(draw(seed, "failovers")).counts for seed in range(2)]
    assert sum(each["diverging fetches"] for each in counts) >= 2


def test_a_lost_node_needs_others() -> None:
    case = json.loads(draw(1).to_json())
    case["faults"] = [{"at_s": 1, "fault": "lost_node", "how": "killed", "way": "both"}]
    with pytest.raises(ScheduleError, match="lost_node needs several nodes"):
        from_json(json.dumps(case))


def test_a_core_is_a_majority_that_has_everything() -> None:
    for seed in range(20):
        case = draw(seed, "core")
        lost = {each["node"] for each in case.faults if each["fault"] == "lost_node"}
        assert 0 < len(lost) <= (case.nodes - 1) // 2
        assert set(case.replication.values()) == {case.nodes}


def test_what_is_on_disk_is_told_at_once_while_other_partitions_are_idle() -> None:
    """Not when the fetch of the others is answered, which waits for records as long as it may."""
    settings = {
        "riverlog.acks.fsync": "true",
        "replica.fetch.wait.max.ms": "5000",
        "min.insync.replicas": "2",
    }
    with World(3) as world:
        ensemble = world.add_ensemble()
        nodes: list[SimulatedNode] = [
            world.add_node(f"n{number}", settings, node_id=number, ensemble=ensemble) for number in range(2)
        ]
        for node in nodes:
            node.start()
        assert world.run_until(lambda: all(node.is_serving for node in nodes), within_s=5)

        def admin(around: Surroundings) -> Admin:
            return Admin(around, [TopicPlan("t", 4, replication_factor=2)], pause_s=1000.0)

        def producer(around: Surroundings) -> Producer:
            return Producer(around, ProducerPlan("t", 1, in_flight_max=1, pause_s=0.01))

        made = world.add_client("admin", nodes, admin)
        assert world.run_until(lambda: made.is_ready, within_s=5)
        writer = world.add_client("writer", nodes, producer)
        world.run_for(10)
        assert writer.completed > 100
