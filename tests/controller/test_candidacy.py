"""One controller at a time: claims as values, and the office when sessions end and answers are lost."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.controller.controller import Controller
from riverlog.controller.decisions.candidacy import Term, decide_claim
from riverlog.controller.decisions.refusals import NOT_CONTROLLER
from riverlog.controller.decisions.topics import NewTopic, TopicPlan, TopicRules
from riverlog.metadata import cluster, layout, payloads
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Create, Delete, Set, Versioned
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.metadata.cluster_parts import CLUSTER_ID
from tests.waiting import until

ONE, TWO = NodeId(1), NodeId(2)


def held_by(node_id: NodeId, *, mine: bool = False) -> Versioned:
    return Versioned(payloads.encode_controller(node_id, 5), 0, is_mine=mine)


def test_the_first_claim_makes_the_epoch_and_later_ones_raise_it() -> None:
    first = decide_claim(None, None, ONE, 5)
    assert first is not None
    assert first.term == Term(1, 0)
    assert first.operations == (Create(layout.CONTROLLER_EPOCH, b"1"), first.proof)
    later = decide_claim(None, Versioned(b"8", 3), ONE, 5)
    assert later is not None
    assert later.term == Term(9, 4)
    assert later.operations[0] == Set(layout.CONTROLLER_EPOCH, b"9", 3)


def test_nobody_claims_what_another_broker_has() -> None:
    assert decide_claim(held_by(TWO), Versioned(b"8", 3), ONE, 5) is None


@pytest.mark.parametrize("mine", [True, False])
def test_what_an_earlier_life_of_this_broker_left_is_replaced_at_once(mine: bool) -> None:
    claim = decide_claim(held_by(ONE, mine=mine), Versioned(b"8", 3), ONE, 5)
    assert claim is not None
    assert Delete(layout.CONTROLLER, 0) in claim.operations


class Candidate:
    """A broker that is nothing but a candidate for the controller."""

    def __init__(self, ensemble: SimulatedEnsemble, node_id: int) -> None:
        self.node_id = NodeId(node_id)
        self.store: SimulatedStore = ensemble.connect(owner=f"broker {node_id}")
        self.follower = MetadataFollower(self.store)
        self.controller = Controller(
            self.store,
            self.follower,
            self.node_id,
            rules=TopicRules,
            new_id=uuid4,
            random=random.Random(node_id),
            wall_ms=lambda: node_id,
        )

    async def start(self) -> None:
        await cluster.prepare(self.store, remembered=None, fresh_id=CLUSTER_ID)
        await self.store.create(
            layout.broker(self.node_id),
            payloads.encode_broker(payloads.BrokerNode({}, {}, None), 0),
            ephemeral=True,
        )
        await self.follower.start()
        await self.controller.start()

    async def close(self) -> None:
        await self.controller.close()
        await self.follower.close()
        await self.store.close()


@asynccontextmanager
async def candidates(ensemble: SimulatedEnsemble, count: int) -> AsyncIterator[list[Candidate]]:
    found = [Candidate(ensemble, number) for number in range(1, count + 1)]
    try:
        for candidate in found:
            await candidate.start()
        yield found
    finally:
        for candidate in found:
            await candidate.close()


def active(found: list[Candidate]) -> list[Candidate]:
    return [each for each in found if each.controller.is_active]


def test_one_is_elected_and_the_next_when_it_goes() -> None:
    async def scenario() -> None:
        async with candidates(SimulatedEnsemble(), 3) as found:
            assert active(found) == found[:1]
            await found[0].close()
            await until(lambda: len(active(found[1:])) == 1, "nobody followed")
            epoch = await found[1].store.get(layout.CONTROLLER_EPOCH)
            assert epoch is not None
            assert epoch.data == b"2"

    asyncio.run(scenario())


@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
def test_who_does_not_know_whether_it_won_looks(lost: str) -> None:
    async def scenario() -> None:
        ensemble = SimulatedEnsemble()
        async with candidates(ensemble, 1):
            pass
        setattr(ensemble, lost, 1)
        late = Candidate(ensemble, 2)
        await late.follower.start()
        await late.controller.start()
        assert late.controller.is_active
        await late.close()

    asyncio.run(scenario())


def test_a_controller_without_its_session_refuses_and_a_later_one_is_elected() -> None:
    async def scenario() -> None:
        async with candidates(SimulatedEnsemble(), 2) as found:
            [first, _] = found
            first.store.expire()
            assert not first.controller.is_active
            assert await first.controller.create_topics([NewTopic("t")]) == [NOT_CONTROLLER]
            await until(lambda: active(found), "nobody followed")
            [plan] = await active(found)[0].controller.create_topics([NewTopic("t")])
            assert isinstance(plan, TopicPlan)
            epoch = await first.store.get(layout.CONTROLLER_EPOCH)
            assert epoch is not None
            assert epoch.data == b"2"

    asyncio.run(scenario())


@settings(max_examples=40)
@given(st.integers(0, 2**31))
def test_at_most_one_controller_writes_whatever_happens_to_sessions(seed: int) -> None:
    """Sessions end and answers are lost at random; each topic is made by the controller of its epoch."""

    async def scenario() -> None:
        chance = random.Random(seed)
        ensemble = SimulatedEnsemble(latency_s=lambda: chance.random() * 0.0005)
        async with candidates(ensemble, 3) as found:
            epochs: dict[int, NodeId] = {}
            for number in range(12):
                match chance.randrange(5):
                    case 0:
                        chance.choice(found).store.expire()
                    case 1:
                        ensemble.lost_answers = 1
                    case 2:
                        ensemble.lost_requests = 1
                asked = [each.controller.create_topics([NewTopic(f"t{number}")]) for each in found]
                made = [
                    each.node_id
                    for each, [outcome] in zip(found, await asyncio.gather(*asked), strict=True)
                    if isinstance(outcome, TopicPlan)
                ]
                assert len(made) <= 1
                await until(lambda: len(active(found)) == 1, "no controller")
                node = ensemble.get(layout.CONTROLLER_EPOCH)
                assert node is not None
                assert epochs.setdefault(int(node.data), active(found)[0].node_id) == active(found)[0].node_id

    asyncio.run(scenario())


def test_an_office_that_falls_vacant_while_a_broker_stands_for_it_is_not_left_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reads that somebody holds it who has gone when its image is asked: no change is left to hear of."""

    async def scenario() -> None:
        ensemble = SimulatedEnsemble()
        other = ensemble.connect(owner="broker 3")
        await other.create(layout.CONTROLLER, payloads.encode_controller(NodeId(3), 0), ephemeral=True)
        async with candidates(ensemble, 1) as [only]:
            assert not only.controller.is_active
            get, held = only.store.get, 0

            async def get_in_between(path: str) -> Versioned | None:
                nonlocal held
                if path != layout.CONTROLLER or held:
                    return await get(path)
                held += 1
                await other.create(
                    layout.CONTROLLER, payloads.encode_controller(NodeId(3), 0), ephemeral=True
                )
                found = await get(path)
                await other.delete(layout.CONTROLLER)
                return found

            monkeypatch.setattr(only.store, "get", get_in_between)
            await other.delete(layout.CONTROLLER)
            await until(lambda: only.controller.is_active, "nobody stands")
            assert held == 1

    asyncio.run(scenario())
