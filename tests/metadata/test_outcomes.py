"""Writes whose answer is lost are carried out once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.outcomes import has_happened, write_multi
from riverlog.metadata.producer_ids import BLOCK_SIZE, ProducerIds
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import BadVersionError, Check, Create, Delete, Operation, Set
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore


def run(scenario: Callable[[SimulatedEnsemble, SimulatedStore], Awaitable[None]]) -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble()
        await scenario(ensemble, ensemble.connect())

    asyncio.run(main())


@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
@pytest.mark.parametrize(
    "operation", [Create("/b", b"x"), Create("/b", b"x", ephemeral=True), Set("/a", b"x", 0), Delete("/a", 0)]
)
def test_a_multi_without_an_answer_is_carried_out_once(lost: str, operation: Operation) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await store.create("/a")
        await store.create("/count")
        assert not await has_happened(store, operation)
        ensemble.fall_behind()
        setattr(ensemble, lost, 1)
        await write_multi(store, [Check("/count"), operation, Set("/count", b"")])
        assert await has_happened(store, operation)
        node = await store.get("/count")
        assert node is not None
        assert node.version == 1

    run(scenario)


def test_what_another_wrote_meanwhile_is_not_taken_for_ones_own() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await store.create("/a")
        await ensemble.connect().set("/a", b"theirs")
        ensemble.lost_requests = 1
        with pytest.raises(BadVersionError):
            await write_multi(store, [Set("/a", b"mine", 0)])

    run(scenario)


@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
def test_no_producer_id_is_given_twice_when_the_answer_for_a_block_is_lost(lost: str) -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        ids, other = ProducerIds(store, NodeId(1)), ProducerIds(ensemble.connect(), NodeId(2))
        setattr(ensemble, lost, 1)
        given = [await ids.next_producer_id(), await other.next_producer_id()]
        for _ in range(BLOCK_SIZE):
            setattr(ensemble, lost, 1)
            given.append(await ids.next_producer_id())
        setattr(ensemble, lost, 0)
        assert len(set(given)) == len(given)
        node = await store.get(layout.PRODUCER_ID_BLOCK)
        assert node is not None
        assert payloads.decode_producer_ids("", node.data)[1] >= max(given)

    run(scenario)
