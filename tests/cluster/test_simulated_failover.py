"""A coordinator that is killed, held or cut off from the store, in each state of a transaction; virtual time.

Another one takes over. What it finds is ended as it was to be ended, once in each partition, also when the
old one comes back in the middle of its work.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing.simulation.machine.ensembles import HOST
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.world import World
from tests.cluster.simulated import SESSION_S, ClusterWorld, Transactor, committed_in, markers_of

_NONE: Final = ErrorCode.NONE
_TIMEOUT_S: Final = 20.0
Fault = Callable[[ClusterWorld, SimulatedNode], None]


class Scripted(Transactor):
    """Does what the test says, one step at a time."""

    async def _run(self) -> None:
        self.connect()

    def do(self, cluster: ClusterWorld, work: Coroutine[Any, Any, Any]) -> Any:
        task = self.start(work)
        cluster.until(task.done, 120)
        return task.result()

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        return self._life.run(lambda: self._world.loop.create_task(work))

    def write(self, cluster: ClusterWorld, value: bytes) -> None:
        for partition in range(3):
            if self.version == 1:
                assert self.do(cluster, self._add(partition))
            assert self.do(cluster, self._produce(partition, value))


def kill(cluster: ClusterWorld, node: SimulatedNode) -> None:
    node.kill()
    cluster.world.run_for(2 * SESSION_S)
    node.start()


def hold(cluster: ClusterWorld, node: SimulatedNode) -> None:
    node.pause(3 * SESSION_S)
    cluster.world.run_for(3 * SESSION_S)


def cut_off_from_the_store(cluster: ClusterWorld, node: SimulatedNode) -> None:
    cluster.world.links.cut([node.name], [HOST])
    cluster.world.links.cut([HOST], [node.name])
    cluster.world.run_for(3 * SESSION_S)
    cluster.world.links.heal([node.name], [HOST])
    cluster.world.links.heal([HOST], [node.name])


FAULTS: Final = pytest.mark.parametrize("fault", [kill, hold, cut_off_from_the_store])
VERSIONS: Final = pytest.mark.parametrize("version", [1, 2])


def begun(world: World, version: int, *, of_orders: int = 3, **options: Any) -> tuple[ClusterWorld, Scripted]:
    cluster = ClusterWorld(world, 3, of_orders=of_orders)
    transactor = Scripted(world, cluster.nodes, "t", version=version, **options)
    transactor.do(cluster, transactor._init())
    return cluster, transactor


def replace_coordinator(cluster: ClusterWorld, transactor: Scripted, fault: Fault) -> None:
    """Another has been elected by the time the fault is over."""
    before = transactor._coordinator()
    assert before is not None
    fault(cluster, cluster.nodes[before - 1])
    assert transactor._coordinator() not in (None, before)


def ended(cluster: ClusterWorld) -> list[list[bool]]:
    """How the transactions in each partition have ended, once all have."""
    cluster.until(cluster.all_led, 120)
    cluster.until(cluster.nothing_is_open, 120)
    cluster.world.run_for(2 * SESSION_S)
    return [markers_of(cluster.partition(at).log) for at in range(3)]


@FAULTS
@VERSIONS
def test_before_its_first_transaction(version: int, fault: Fault) -> None:
    with World(1) as world:
        cluster, transactor = begun(world, version)
        replace_coordinator(cluster, transactor, fault)
        transactor.write(cluster, b"a")
        assert transactor.do(cluster, transactor._end(commit=True)) is _NONE
        assert ended(cluster) == [[True]] * 3


@FAULTS
@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_while_it_is_open(version: int, commit: bool, fault: Fault) -> None:
    with World(2) as world:
        cluster, transactor = begun(world, version)
        transactor.write(cluster, b"a")
        replace_coordinator(cluster, transactor, fault)
        transactor.write(cluster, b"b")
        assert transactor.do(cluster, transactor._end(commit=commit)) is _NONE
        assert ended(cluster) == [[commit]] * 3
        assert committed_in(cluster.partition(0).log) == ({b"a": 1, b"b": 1} if commit else {})


@FAULTS
@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_when_its_end_is_decided_and_not_everywhere(version: int, commit: bool, fault: Fault) -> None:
    with World(3) as world:
        cluster, transactor = begun(world, version, of_orders=1)
        transactor.write(cluster, b"a")
        coordinator = transactor._coordinator()
        far = cluster.nodes[next(at for at in range(3) if at + 1 != coordinator)]
        far.kill()
        world.run_for(2 * SESSION_S)  # It is out of every ISR.
        assert transactor.do(cluster, transactor._end(commit=commit)) is _NONE
        replace_coordinator(cluster, transactor, fault)
        far.start()
        assert ended(cluster) == [[commit]] * 3


@FAULTS
@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_when_it_has_ended(version: int, commit: bool, fault: Fault) -> None:
    with World(4) as world:
        cluster, transactor = begun(world, version)
        transactor.write(cluster, b"a")
        assert transactor.do(cluster, transactor._end(commit=commit)) is _NONE
        assert ended(cluster) == [[commit]] * 3
        replace_coordinator(cluster, transactor, fault)
        transactor.write(cluster, b"b")
        assert transactor.do(cluster, transactor._end(commit=True)) is _NONE
        assert ended(cluster) == [[commit, True]] * 3


@FAULTS
def test_when_nobody_ends_it(fault: Fault) -> None:
    with World(5) as world:
        cluster, transactor = begun(world, 2, timeout_ms=int(1000 * _TIMEOUT_S))
        transactor.write(cluster, b"a")
        replace_coordinator(cluster, transactor, fault)
        world.run_for(_TIMEOUT_S + 12)  # Looked for every ten seconds.
        assert ended(cluster) == [[False]] * 3


@FAULTS
def test_when_it_is_prepared_for_a_two_phase_commit(fault: Fault) -> None:
    with World(6) as world:
        cluster, transactor = begun(world, 2, is_two_phase=True)
        transactor.write(cluster, b"a")
        replace_coordinator(cluster, transactor, fault)
        world.run_for(2 * 60)
        assert not cluster.nothing_is_open(), "its owner decides, and nobody else"
        transactor.do(cluster, transactor._init(keep_prepared=True))
        assert transactor.do(cluster, transactor._end(commit=True)) is _NONE
        assert ended(cluster) == [[True]] * 3
