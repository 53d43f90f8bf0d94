"""Work in threads of a simulated process, and what becomes of it when they are shut down."""

import asyncio

import pytest

from riverlog.testing.simulation.machine.executors import VirtualThreads
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.world import World


def test_threads_that_are_shut_down_end_what_they_are_at_and_take_nothing_more() -> None:
    done: list[int] = []
    with World(1) as world:
        loop, life = world.loop, Life("p")

        def begin() -> list["asyncio.Future[None]"]:
            return [loop.run_in_executor(threads, done.append, each) for each in range(3)]

        threads = VirtualThreads("reads", 2)
        works = life.run(begin)
        life.run(lambda: threads.shutdown(cancel_futures=True))
        assert done == [0, 1]
        assert loop.timers_of(life) == []
        with pytest.raises(RuntimeError, match="after shutdown"):
            life.run(begin)
        world.run_for(1)
        assert done == [0, 1]
        assert [each.cancelled() for each in works] == [False, False, True]
        assert all(each.done() for each in works)


def test_work_whose_turn_has_come_is_done_once() -> None:
    done: list[int] = []
    with World(1) as world:
        life, threads = Life("p"), VirtualThreads("reads", 2)
        life.run(lambda: world.loop.run_in_executor(threads, done.append, 7))
        world.run_for(1)
        life.run(lambda: threads.shutdown(cancel_futures=True))
        world.run_for(1)
    assert done == [7]
