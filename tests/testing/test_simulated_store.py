"""What can go wrong with the simulated store, beside what the conformance suite says."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from riverlog.model.metadata_store import (
    Create,
    OutcomeUnknownError,
    SessionLostError,
    SessionState,
    UnreachableError,
    WentBackError,
)
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.waiting import loop_turns


def run(scenario: Callable[[SimulatedEnsemble, SimulatedStore], Awaitable[None]]) -> None:
    async def main() -> None:
        ensemble = SimulatedEnsemble(session_timeout_s=0.01)
        await scenario(ensemble, ensemble.connect())

    asyncio.run(main())


def test_a_write_whose_answer_is_lost_was_carried_out_and_the_session_goes_on() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        ensemble.lost_answers = 1
        with pytest.raises(OutcomeUnknownError):
            await store.create("/a", ephemeral=True)
        node = await store.get("/a")
        assert node is not None
        assert node.is_mine

    run(scenario)


def test_a_write_that_is_lost_on_its_way_looks_the_same_and_was_not() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        ensemble.lost_requests = 1
        with pytest.raises(OutcomeUnknownError):
            await store.multi([Create("/a")])
        assert await store.get("/a") is None

    run(scenario)


def test_an_expired_session_is_followed_by_a_new_one_without_its_nodes() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        states: list[SessionState] = []
        store.watch_session(states.append)
        await store.create("/a", ephemeral=True)
        under_way = asyncio.create_task(store.get("/a"))
        await loop_turns()
        store.expire()
        with pytest.raises(SessionLostError):
            await under_way
        await loop_turns()
        assert states == [SessionState.LOST, SessionState.CONNECTED]
        assert await store.get("/a") is None

    run(scenario)


def test_a_session_that_is_cut_off_for_too_long_is_given_up_before_it_hears_of_it() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        states: list[SessionState] = []
        other, gone = ensemble.connect(), asyncio.Event()
        await store.create("/a", ephemeral=True)
        other.watch("/a", lambda event: gone.set())
        store.watch_session(states.append)
        store.suspend()
        lease = store.lease_until_s
        with pytest.raises(UnreachableError):
            await store.get("/a")
        await asyncio.wait_for(gone.wait(), 10)
        assert await other.get("/a") is None
        assert asyncio.get_running_loop().time() >= lease
        assert states == [SessionState.SUSPENDED]
        store.resume()
        await loop_turns()
        assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
        assert store.lease_until_s > asyncio.get_running_loop().time()

    run(scenario)


def test_the_nodes_of_a_process_that_ended_go_after_the_time_out() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        other, gone = ensemble.connect(), asyncio.Event()
        await store.create("/a", ephemeral=True)
        other.watch("/a", lambda event: gone.set())
        store.abandon()
        assert await other.get("/a") is not None
        await asyncio.wait_for(gone.wait(), 10)
        assert await other.get("/a") is None

    run(scenario)


def test_reads_show_an_older_state_until_a_sync_and_again_in_the_next_session() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        ensemble.fall_behind()
        await store.create("/a/b")
        assert await store.get("/a") is None
        assert await store.tree("/a") == {}
        assert await store.children("/") == []
        await store.sync()
        assert await store.children("/a") == ["b"]
        store.expire()
        await loop_turns()
        assert await store.get("/a") is None

    run(scenario)


def test_a_restored_ensemble_has_the_versions_and_transactions_of_its_snapshot() -> None:
    async def scenario(ensemble: SimulatedEnsemble, store: SimulatedStore) -> None:
        await store.create("/a")
        await store.sync()
        before, snapshot = await store.get("/a"), ensemble.snapshot()
        await store.set("/a", b"x")
        await store.create("/b")
        ensemble.restore(snapshot)
        await loop_turns()
        with pytest.raises(WentBackError):
            await store.sync()
        assert await store.get("/a") == before
        assert await store.get("/b") is None

    run(scenario)
