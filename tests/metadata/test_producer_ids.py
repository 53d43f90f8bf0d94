"""Blocks of producer ids: taken in time, by one broker each, and an error when none is to be had."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata import layout, payloads
from riverlog.metadata.producer_ids import BLOCK_SIZE, NoProducerIdError, ProducerIds
from riverlog.model.ids import PRODUCER_IDS_PER_MS, NodeId
from riverlog.model.metadata_store import SessionState
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.metadata.cluster_parts import running
from tests.virtual_time import elapse, run_virtually
from tests.waiting import loop_turns


def run(scenario: Callable[[SimulatedEnsemble, SimulatedStore, ProducerIds], Awaitable[None]]) -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        store = ensemble.connect("broker 1")
        ids = ProducerIds(store, NodeId(1))
        await scenario(ensemble, store, ids)
        await ids.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtually(main)


async def last_taken(ensemble: SimulatedEnsemble) -> int:
    node = await ensemble.connect().get(layout.PRODUCER_ID_BLOCK)
    assert node is not None
    return payloads.decode_producer_ids("", node.data)[1]


async def take(ids: ProducerIds, count: int) -> list[int]:
    return [await ids.next_producer_id() for _ in range(count)]


def test_the_next_block_is_taken_when_a_tenth_of_the_present_one_is_left() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore, ids: ProducerIds) -> None:
        assert await take(ids, 899) == list(range(899))
        await elapse(1)
        assert await last_taken(ensemble) == BLOCK_SIZE - 1
        await take(ids, 1)
        await elapse(1)
        assert await last_taken(ensemble) == 2 * BLOCK_SIZE - 1
        assert await take(ids, 200) == list(range(900, 1100))
        assert await last_taken(ensemble) == 2 * BLOCK_SIZE - 1, "one block ahead, not more"

    run(scenario)


def test_a_store_that_is_away_is_not_noticed_while_ids_are_left_and_is_an_error_then() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore, ids: ProducerIds) -> None:
        await take(ids, 950)
        await elapse(1)
        store.suspend()
        await take(ids, BLOCK_SIZE + 50)
        asked = [asyncio.ensure_future(ids.next_producer_id()) for _ in range(3)]
        await elapse(5)
        for each in asked:
            with pytest.raises(NoProducerIdError):
                each.result()
        store.resume()
        given = await take(ids, 5)
        assert min(given) >= 2 * BLOCK_SIZE

    run(scenario)


def test_a_store_that_takes_no_writes_gives_no_ids() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore, ids: ProducerIds) -> None:
        ensemble.is_unwritable = True
        with pytest.raises(NoProducerIdError):
            await ids.next_producer_id()
        ensemble.is_unwritable = False
        ensemble.lost_replies = 1
        try:
            given = await take(ids, 1)
        except NoProducerIdError:
            given = await take(ids, 1)
        assert given == [BLOCK_SIZE], "the block whose answer was lost with the session is not used"

    run(scenario)


def test_a_block_that_another_broker_was_quicker_to_take_is_left_to_it() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore, ids: ProducerIds) -> None:
        others = [ProducerIds(ensemble.connect(f"broker {at}"), NodeId(at)) for at in range(2, 6)]
        given = await asyncio.gather(*(each.next_producer_id() for each in (ids, *others) for _ in range(30)))
        assert len(set(given)) == len(given)
        assert {at // BLOCK_SIZE for at in given} == set(range(5))
        for each in others:
            await each.close()

    run(scenario)


def test_no_block_is_taken_from_a_store_that_has_gone_back() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore, ids: ProducerIds) -> None:
        older = ensemble.snapshot()
        others = ProducerIds(ensemble.connect("broker 2"), NodeId(2))
        assert await take(others, 1) == [0]
        await store.sync()
        await store.get(layout.PRODUCER_ID_BLOCK)
        newest = ensemble.snapshot()
        ensemble.restore(older)
        with pytest.raises(NoProducerIdError, match="older"):
            await ids.next_producer_id()
        ensemble.restore(newest)
        assert await take(ids, 1) == [BLOCK_SIZE]
        await others.close()

    run(scenario)


@pytest.mark.parametrize("is_taking", [False, True])
def test_ids_begin_above_all_where_the_store_does_not_know_what_was_given(is_taking: bool) -> None:
    async def scenario() -> None:
        ensemble = SimulatedEnsemble()
        ids, other = ProducerIds(ensemble.connect(), NodeId(1)), ProducerIds(ensemble.connect(), NodeId(2))
        given = asyncio.create_task(ids.next_producer_id())
        if is_taking:
            await loop_turns()
            assert not given.done()
        else:
            assert await given == 0
        ids.begin_above_all(5)
        assert await ids.next_producer_id() in range(
            5 * PRODUCER_IDS_PER_MS, 5 * PRODUCER_IDS_PER_MS + BLOCK_SIZE
        )
        assert (await given >= 5 * PRODUCER_IDS_PER_MS) is is_taking
        assert await other.next_producer_id() >= 5 * PRODUCER_IDS_PER_MS + BLOCK_SIZE
        await ids.close()
        await other.close()

    asyncio.run(scenario())


def test_who_knows_that_all_ids_are_higher_has_the_store_know_it() -> None:
    async def scenario() -> None:
        ensemble = SimulatedEnsemble()
        ids, other = ProducerIds(ensemble.connect(), NodeId(1)), ProducerIds(ensemble.connect(), NodeId(2))
        ids.begin_above_all(5)
        await loop_turns()
        assert await other.next_producer_id() == 5 * PRODUCER_IDS_PER_MS + BLOCK_SIZE
        await ids.close()
        await other.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("at", ["while it is followed", "while a block is taken"])
def test_no_block_counts_before_the_session_that_came_meanwhile_is_followed(at: str) -> None:
    """Which may be with an older state again."""

    async def scenario() -> None:
        store = SimulatedEnsemble().connect()
        followed: list[bool] = []
        is_followed = asyncio.Event()

        async def follow() -> None:
            followed.append(True)
            is_followed.set()
            if len(followed) == 1 and at == "while it is followed":
                ids._on_session(SessionState.CONNECTED)

        ids = ProducerIds(store, NodeId(1), follow=follow)
        ids._on_session(SessionState.CONNECTED)
        asked = asyncio.create_task(ids.next_producer_id())
        if at == "while a block is taken":
            await is_followed.wait()
            ids._on_session(SessionState.CONNECTED)
        await asked
        assert len(followed) == 2
        await ids.close()

    asyncio.run(scenario())


def test_no_block_is_taken_from_a_store_that_shows_an_older_state_under_higher_numbers() -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        async with running(ensemble.connect("broker 1")) as parts:
            ids = ProducerIds(parts.store, NodeId(1), follow=parts.follower.refresh)
            others = ProducerIds(ensemble.connect("broker 2"), NodeId(2))
            older = ensemble.snapshot()
            assert await take(others, 1) == [0]
            await parts.controller.create_topics([NewTopic("t")])
            newest = ensemble.snapshot()
            ensemble.restore(older._replace(last_transaction=1 << 32))
            with pytest.raises(NoProducerIdError, match="not with its newest state"):
                await ids.next_producer_id()
            ensemble.restore(newest._replace(last_transaction=2 << 32))
            assert await take(ids, 1) == [BLOCK_SIZE]
            await ids.close()
            await others.close()

    run_virtually(main)
