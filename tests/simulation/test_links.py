"""The network of the simulated world, as processes see it."""

import pytest

from riverlog.model.network import Address, Socket
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.world import World


def _connected(world: World) -> tuple[Socket, Socket]:
    """The two ends of a connection from the host `here` to the host `there`."""
    here, there = Life("here"), Life("there")
    made: list[Socket | OSError] = []
    accepted: list[Socket] = []
    caller, listener = world.wires.join(here, "here"), world.wires.join(there, "there")
    there.run(lambda: listener.listen(Address("there", 1), accepted.append))
    here.run(lambda: caller.connect(Address("there", 1), made.append))
    assert world.run_until(lambda: bool(made and accepted), within_s=5)
    [end] = made
    assert not isinstance(end, OSError)
    return end, accepted[0]


def test_a_full_connection_takes_nothing_and_has_room_again_afterwards() -> None:
    with World(1) as world:
        world.links.quality.cut_chance = 0.0
        here, there = _connected(world)
        told: list[str] = []
        assert here.send(b"before") == 6
        world.links.fill(["here"], "there")
        world.links.fill(["here"], "there")
        with pytest.raises(BlockingIOError):
            here.send(b"meanwhile")
        here.on_writable(lambda: told.append("writable"))
        assert there.send(b"back") == 4
        world.links.empty(["here"], "there")
        world.run_for(1)
        assert told == []
        buffer = bytearray(20)
        assert there.recv_into(memoryview(buffer)) == 6  # What was on its way has arrived.

        def on_writable() -> None:
            told.append("writable")
            here.on_writable(None)

        here.on_writable(on_writable)
        world.links.empty(["here"], "there")
        world.run_for(1)
        assert told == ["writable"]
        assert here.send(b"afterwards") == 10
