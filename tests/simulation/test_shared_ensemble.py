"""Sessions with the ensemble that simulated nodes share: they end by the ensemble's clock."""

from typing import Final

from riverlog.model.metadata_store import SessionLostError, SessionState, WentBackError
from riverlog.testing.simulated_store import SimulatedStore
from riverlog.testing.simulation.machine.ensembles import HOST, SharedEnsemble
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.world import World

_TIMEOUT_S: Final = 6.0
_PATH: Final = "/present"


def _session(world: World) -> tuple[SharedEnsemble, Life, SimulatedStore]:
    """Of a process `n1` which has an ephemeral node."""
    shared, life = world.add_ensemble(_TIMEOUT_S), Life("n1")
    session = life.run(lambda: shared.connect("n1", life))
    life.run(lambda: world.loop.create_task(session.create(_PATH, ephemeral=True)))
    world.run_for(1)
    assert shared.ensemble.get(_PATH) is not None
    return shared, life, session


def _state(session: SimulatedStore) -> SessionState:
    return session.session_state


def test_a_session_of_a_process_that_has_ended_goes_on_until_its_time_is_over() -> None:
    with World(1) as world:
        shared, life, _ = _session(world)
        life.end()
        world.run_for(_TIMEOUT_S - 0.2)
        assert shared.ensemble.get(_PATH) is not None
        world.run_for(0.5)
        assert shared.ensemble.get(_PATH) is None
        assert shared.expired == 1


def test_a_session_that_is_cut_off_is_suspended_and_goes_on_when_it_is_back_in_time() -> None:
    with World(2) as world:
        shared, _, session = _session(world)
        world.links.cut([HOST], ["n1"])
        world.run_for(_TIMEOUT_S - 0.2)
        assert _state(session) is SessionState.SUSPENDED
        world.links.heal([HOST], ["n1"])
        world.run_for(_TIMEOUT_S)
        assert _state(session) is SessionState.CONNECTED
        assert shared.expired == 0


def test_a_session_that_was_cut_off_too_long_is_told_when_it_is_heard_again() -> None:
    with World(3) as world:
        shared, _, session = _session(world)
        world.links.cut(["n1"], [HOST])
        world.run_for(_TIMEOUT_S + 2)
        assert shared.ensemble.get(_PATH) is None
        assert session.session_state is SessionState.SUSPENDED
        states: list[SessionState] = []
        session.watch_session(states.append)
        world.links.heal(["n1"], [HOST])
        world.run_for(0.5)
        assert states[0] is SessionState.LOST


def test_a_process_that_was_stopped_too_long_writes_nothing_with_its_old_session() -> None:
    with World(4) as world:
        shared, life, session = _session(world)
        world.loop.hold(life, world.loop.now_s + _TIMEOUT_S + 1, threads=True)
        life.run(lambda: world.loop.create_task(session.create("/late", ephemeral=True)))
        world.run_for(_TIMEOUT_S + 0.5)
        assert shared.expired == 1
        world.run_for(2)
        assert shared.ensemble.get("/late") is None


def test_the_lease_of_a_process_that_was_stopped_for_too_long_is_over_when_it_wakes() -> None:
    with World(4) as world:
        _, life, session = _session(world)
        assert session.lease_until_s > world.loop.now_s + _TIMEOUT_S - 0.2
        world.loop.hold(life, world.loop.now_s + _TIMEOUT_S + 1, threads=True)
        world.run_for(_TIMEOUT_S + 1 - 0.2)
        assert session.lease_until_s < world.loop.now_s


def test_whoever_looks_on_hears_of_writes_that_were_made_lost_and_too_late() -> None:
    with World(5) as world:
        shared, life, session = _session(world)
        heard: list[str] = []
        shared.ensemble.on_changed = lambda paths: heard.extend(paths)
        shared.ensemble.on_unanswered = lambda operations: heard.append("unanswered")
        shared.ensemble.on_refused = lambda operations: heard.append("refused")
        shared.ensemble.lost_answers = 1
        life.run(lambda: world.loop.create_task(session.set(_PATH, b"1", expected_version=0)))
        world.run_for(1)
        life.run(lambda: world.loop.create_task(session.set(_PATH, b"2", expected_version=0)))
        world.run_for(1)
        assert heard == [_PATH, "unanswered", "refused"]


def test_a_session_that_has_read_something_newer_finds_out_that_the_ensemble_has_gone_back() -> None:
    with World(4) as world:
        shared, life, session = _session(world)
        shared.keep_snapshots()
        world.run_for(1)

        async def write() -> None:
            await session.sync()
            await session.create("/later")
            await session.get("/later")

        life.run(lambda: world.loop.create_task(write()))
        world.run_for(1)
        last = shared.go_back(1.5).last_transaction
        assert session.seen_transaction > last
        assert shared.ensemble.get("/later") is None
        assert shared.ensemble.get(_PATH) is None, "sessions have ended"
        found: list[str] = []

        async def look() -> None:
            for _ in range(2):
                try:
                    await session.sync()
                except WentBackError:
                    found.append("older")
                except SessionLostError:
                    found.append("lost")

        world.run_for(1)
        life.run(lambda: world.loop.create_task(look()))
        world.run_for(1)
        assert found == ["older", "older"]
        shared.put_back()
        world.run_for(1)
        found.clear()
        life.run(lambda: world.loop.create_task(look()))
        world.run_for(1)
        assert found == []
        assert shared.ensemble.get("/later") is not None


def test_an_ensemble_that_has_not_gone_back_has_nothing_to_put_back() -> None:
    with World(5) as world:
        shared, _, _ = _session(world)
        shared.put_back()
        assert shared.ensemble.get(_PATH) is not None


def test_an_ensemble_goes_back_while_its_sessions_hear_of_changes_late() -> None:
    """Found by seeds of replicas: a session was told later, by the loop, which does not run meanwhile."""
    with World(4) as world:
        shared, life, session = _session(world)
        shared.keep_snapshots()
        other = shared.connect("other", life)
        life.run(lambda: world.loop.create_task(session.create("/mine", ephemeral=True)))
        world.run_for(1)
        assert shared.ensemble.get("/mine") is not None
        shared.ensemble.watch_delay_s = 0.5
        shared.go_back(1.5)
        assert shared.ensemble.watch_delay_s == 0.5
        assert not shared.ensemble.has(other)
        world.run_for(1)
        assert shared.ensemble.get("/mine") is None
