"""The kept connections to other brokers: with brokers on loopback that misbehave, and in the simulator."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from riverlog.broker.net.network import AsyncNetwork
from riverlog.client.core.events import Outcome
from riverlog.client.core.retrying import Backoff
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.peer_connection import UnansweredError
from riverlog.client.peers import LIMITS, PeerLimits, Peers
from riverlog.model.ids import NodeId
from riverlog.model.network import Address, Network
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.world import World
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.metadata import MetadataRequest
from tests.client.scripted_broker import CLUSTER, Answer, cluster, scripted, versions

ONE = NodeId(1)
AT_ONCE = Backoff(first_s=0, longest_s=0)


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(bounded())


def peers_at(
    address_of: Callable[[NodeId], Address | None],
    limits: PeerLimits = LIMITS,
    network: Network | None = None,
) -> Peers:
    return Peers(network or AsyncNetwork(), address_of, client_id="peer", chance=lambda: 0.5, limits=limits)


async def ask(peers: Peers, timeout_s: float | None = None) -> str:
    reply = await peers.ask(ONE, CLUSTER, DescribeClusterRequest(), timeout_s=timeout_s)
    return str(reply.cluster_id)


def silent(heard: asyncio.Semaphore) -> Answer:
    return lambda _: heard.release()


async def refused(question: "asyncio.Future[Any]") -> UnansweredError:
    with pytest.raises(UnansweredError) as caught:
        await question
    return caught.value


def test_all_requests_go_over_one_connection_which_is_kept() -> None:
    async def main() -> None:
        async with scripted(versions, *[cluster] * 30) as (address, connections):
            peers = peers_at(lambda _: address)
            assert await asyncio.gather(*(ask(peers) for _ in range(20))) == ["here"] * 20
            for _ in range(10):
                assert await ask(peers) == "here"
            assert len(connections) == 1
            peers.close()

    run(main())


def test_only_so_many_are_in_flight_and_so_many_wait_then_one_is_refused() -> None:
    async def main() -> None:
        heard = asyncio.Semaphore(0)
        async with scripted(versions, *[silent(heard)] * 9) as (address, _):
            peers = peers_at(lambda _: address, PeerLimits(in_flight_max=2, waiting_max=3))
            first = [peers.ask(ONE, CLUSTER, DescribeClusterRequest()) for _ in range(2)]
            await heard.acquire()
            await heard.acquire()
            queued = [peers.ask(ONE, CLUSTER, DescribeClusterRequest()) for _ in range(3)]
            too_many = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            assert "too many" in str(await refused(too_many))
            queued[0].cancel()
            one_more = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            assert not one_more.done(), "who has given up holds no place"
            peers.close()
            assert [(await refused(each)).outcome for each in first] == [Outcome.UNKNOWN] * 2
            for each in (*queued[1:], one_more):
                assert (await refused(each)).outcome is Outcome.NOT_SENT
            assert heard.locked()

    run(main())


def test_nobody_waits_for_a_broker_that_has_gone_though_its_connection_stands() -> None:
    async def main() -> None:
        heard = asyncio.Semaphore(0)
        async with scripted(versions, *[silent(heard)] * 2, versions, cluster) as (address, connections):
            peers = peers_at(lambda _: address, PeerLimits(in_flight_max=1, backoff=AT_ONCE))
            sent = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            queued = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            await heard.acquire()
            peers.give_up(ONE)
            assert (await refused(sent)).outcome is Outcome.UNKNOWN
            assert (await refused(queued)).outcome is Outcome.NOT_SENT
            peers.give_up(NodeId(2))  # Nobody has asked it.
            peers.close()
            assert len(connections) == 1

    run(main())


def test_who_waits_is_sent_when_a_reply_makes_room() -> None:
    async def main() -> None:
        async with scripted(versions, *[cluster] * 50) as (address, connections):
            peers = peers_at(lambda _: address, PeerLimits(in_flight_max=1))
            assert await asyncio.gather(*(ask(peers) for _ in range(50))) == ["here"] * 50
            assert len(connections) == 1
            peers.close()

    run(main())


def test_a_hang_up_leaves_the_outcome_open_and_the_next_request_connects_again() -> None:
    async def main() -> None:
        async with scripted(versions, cluster, lambda _: b"") as (address, connections):
            peers = peers_at(lambda _: address, replace(LIMITS, backoff=AT_ONCE))
            for number in range(1, 4):
                assert await ask(peers) == "here"
                error = await refused(peers.ask(ONE, CLUSTER, DescribeClusterRequest()))
                assert error.outcome is Outcome.UNKNOWN
                assert len(connections) == number
            peers.close()

    run(main())


def test_a_broker_that_nobody_knows_or_reaches_has_done_nothing() -> None:
    async def main() -> None:
        async with scripted() as (nowhere, _):
            pass
        at: Address | None = None
        peers = peers_at(lambda _: at, replace(LIMITS, backoff=AT_ONCE))
        error = await refused(peers.ask(ONE, CLUSTER, DescribeClusterRequest()))
        assert (error.outcome, "broker 1 is not known" in str(error)) == (Outcome.NOT_SENT, True)
        at = nowhere
        error = await refused(peers.ask(ONE, CLUSTER, DescribeClusterRequest()))
        assert (error.outcome, "cannot be reached" in str(error)) == (Outcome.NOT_SENT, True)
        async with scripted(versions, cluster) as (here, _):
            at = here
            assert await ask(peers) == "here"
            peers.close()

    run(main())


def test_a_broker_that_is_known_at_another_address_is_asked_there_although_the_old_one_is_silent() -> None:
    async def main() -> None:
        async with (
            scripted(versions, cluster, lambda _: None) as (old, _),
            scripted(versions, partial(cluster, cluster_id="there")) as (new, _),
        ):
            at: Address | None = old
            peers = peers_at(lambda _: at)
            assert await ask(peers) == "here"
            unheard = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            at = None
            assert not unheard.done(), "a broker that left the image may answer still"
            at = new
            assert await ask(peers) == "there"
            assert (await refused(unheard)).outcome is Outcome.UNKNOWN
            peers.close()

    run(main())


def test_a_request_without_an_answer_in_time_is_told_so_wherever_it_waits() -> None:
    async def main() -> None:
        async with scripted() as (address, _):
            peers = peers_at(lambda _: address)
            opening = peers.ask(ONE, CLUSTER, DescribeClusterRequest(), timeout_s=0.02)
            assert (await refused(opening)).outcome is Outcome.NOT_SENT
            peers.close()
        heard = asyncio.Semaphore(0)
        async with scripted(versions, silent(heard)) as (address, _):
            peers = peers_at(lambda _: address, PeerLimits(in_flight_max=1))
            later = peers.ask(ONE, CLUSTER, DescribeClusterRequest(), timeout_s=20)
            await heard.acquire()
            sooner = peers.ask(ONE, CLUSTER, DescribeClusterRequest(), timeout_s=0.02)
            assert (await refused(sooner)).outcome is Outcome.NOT_SENT
            assert not later.done()
            peers.close()
            assert (await refused(later)).outcome is Outcome.UNKNOWN

    run(main())


def test_what_the_broker_does_not_serve_is_told_to_who_asked_alone() -> None:
    async def main() -> None:
        async with scripted(versions, cluster) as (address, _):
            peers = peers_at(lambda _: address)
            with pytest.raises(UnsupportedApiError):
                await peers.ask(ONE, ApiKey.METADATA, MetadataRequest(topics=None))
            assert await ask(peers) == "here"
            peers.close()

    run(main())


def test_after_closing_nothing_is_sent_and_closing_again_is_no_error() -> None:
    async def main() -> None:
        async with scripted(versions, cluster) as (address, connections):
            peers = peers_at(lambda _: address)
            early = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            peers.close()
            peers.close()
            assert (await refused(early)).outcome is Outcome.NOT_SENT
            late = peers.ask(ONE, CLUSTER, DescribeClusterRequest())
            assert (await refused(late)).outcome is Outcome.NOT_SENT
            assert not connections

    run(main())


# In the simulated world.


class Asker:
    """A process beside the brokers that asks one of them without a pause."""

    def __init__(self, world: World, node: SimulatedNode, limits: PeerLimits = LIMITS) -> None:
        self.answered = 0
        self.outcomes: list[Outcome] = []
        self.attempts_s: list[float] = []
        self._world = world
        self._node = node
        self._life = Life("asker")
        self.network = world.wires.join(self._life, "asker")
        self._life.run(lambda: world.loop.create_task(self._run(limits)))

    async def _run(self, limits: PeerLimits) -> None:
        self.peers = peers_at(self._address, limits, self.network)
        while True:
            try:
                await self.peers.ask(ONE, CLUSTER, DescribeClusterRequest(), timeout_s=2)
                self.answered += 1
            except UnansweredError as error:
                self.outcomes.append(error.outcome)

    def _address(self, _: NodeId) -> Address:
        self.attempts_s.append(self._world.loop.now_s)
        return Address(self._node.name, 9092)

    def end(self) -> None:
        self.peers.close()
        assert not self._world.wires.sockets_of(self._life)
        self._life.end()


def started(world: World) -> SimulatedNode:
    node = world.add_node("n1", node_id=1)
    node.start()
    assert world.run_until(lambda: node.is_serving, within_s=5)
    return node


def test_a_broker_that_dies_and_comes_back_is_asked_again_and_not_too_often_meanwhile() -> None:
    with World(11) as world:
        node = started(world)
        asker = Asker(world, node)
        assert world.run_until(lambda: asker.answered > 50, within_s=5)
        node.kill()
        asker.attempts_s.clear()
        world.run_for(10)
        assert len(asker.attempts_s) < 40, "pauses grow to a second"
        assert len(asker.attempts_s) > 8
        assert set(asker.outcomes[1:]) == {Outcome.NOT_SENT}
        before = asker.answered
        node.start()
        assert world.run_until(lambda: asker.answered > before + 50, within_s=10)
        asker.end()


def test_a_machine_that_vanishes_in_silence_is_left_after_the_time_out() -> None:
    with World(12) as world:
        node = started(world)
        asker = Asker(world, node)
        assert world.run_until(lambda: asker.answered > 50, within_s=5)
        node.power_cut(12)
        world.observers["n1"].note_power_cut()
        world.run_for(3)
        assert asker.outcomes[0] is Outcome.UNKNOWN
        before = asker.answered
        node.start()
        assert world.run_until(lambda: asker.answered > before + 50, within_s=30)
        asker.end()
