"""What can go wrong with the metadata store: what its sessions and its answers do, and an older state."""

from collections.abc import Mapping, Sequence
from typing import Any

from riverlog.testing.simulation.machine.ensembles import knows_newer
from riverlog.testing.simulation.nodes import SimulatedNode, State
from riverlog.testing.simulation.scenes import Scene


def expired_session(scene: Scene, given: Mapping[str, Any]) -> None:
    """The ensemble gives the session up although its process is well; it hears of that soon."""
    session, shared = scene.node.session, scene.ensemble
    if session is not None and shared is not None:
        shared.expired += 1
        loop = scene.world.loop
        loop.at(loop.now_s, loop.world, lambda: shared.ensemble.end(session))


def deposed_controller(scene: Scene, given: Mapping[str, Any]) -> None:
    """Somebody takes the office away by hand, as operators of Kafka do; who had it goes on in its session."""
    assert scene.ensemble is not None
    loop = scene.world.loop
    loop.at(loop.now_s, loop.world, scene.ensemble.depose_controller)


def lost_answers(scene: Scene, given: Mapping[str, Any]) -> None:
    """Writes take effect and nobody is told."""
    scene.node.ensemble.lost_answers += given["count"]


def lost_requests(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.node.ensemble.lost_requests += given["count"]


def stale_reads(scene: Scene, given: Mapping[str, Any]) -> None:
    """Sessions that have not called `sync` read an older state."""
    scene.node.ensemble.fall_behind()
    scene.later(given["for_s"], scene.node.ensemble.catch_up)


def restored_store(scene: Scene, given: Mapping[str, Any]) -> None:
    """The ensemble begins again from an older state, until somebody finds the newest one and puts it back.

    Who has read something newer finds that out and goes on with what it knows. The others cannot know: as
    those who run a cluster are told, they are not left running, and nobody is started meanwhile."""
    shared = scene.ensemble
    if shared is None or shared.is_older:
        return
    last = shared.go_back(given["age_s"]).last_transaction
    _leave_those(
        scene,
        given,
        [each for each in scene.nodes if each.session is not None and each.session.seen_transaction > last],
    )
    scene.later(given["for_s"], shared.put_back)


def renumbered_store(scene: Scene, given: Mapping[str, Any]) -> None:
    """The same, with servers that number their transactions higher than there were, so that an older state
    can only be told by what it shows."""
    shared = scene.ensemble
    if shared is None or shared.is_older:
        return
    snapshot = shared.go_back(given["age_s"], renumbers=True)
    _leave_those(
        scene,
        given,
        [each for each in scene.nodes if each.node is not None and knows_newer(each.node.image, snapshot)],
    )

    def end() -> None:
        shared.found_older += sum(each.node.holds_image for each in scene.nodes if each.node is not None)
        shared.put_back()

    scene.later(given["for_s"], end)


def _leave_those(scene: Scene, given: Mapping[str, Any], knowing: Sequence[SimulatedNode]) -> None:
    for node in scene.nodes:
        if node.state is State.DOWN or (node.is_serving and node in knowing):
            continue
        node.kill()
        scene.bring_up(node, given["for_s"])


def slow_store(scene: Scene, given: Mapping[str, Any]) -> None:
    ensemble = scene.node.ensemble
    ensemble.extra_latency_s += given["delay_s"]

    def end() -> None:
        ensemble.extra_latency_s -= given["delay_s"]

    scene.later(given["for_s"], end)


def unwritable_store(scene: Scene, given: Mapping[str, Any]) -> None:
    ensemble = scene.node.ensemble
    ensemble.is_unwritable = True

    def end() -> None:
        ensemble.is_unwritable = False

    scene.later(given["for_s"], end)


def late_watches(scene: Scene, given: Mapping[str, Any]) -> None:
    ensemble = scene.node.ensemble
    ensemble.watch_delay_s = given["delay_s"]

    def end() -> None:
        ensemble.watch_delay_s = 0.0

    scene.later(given["for_s"], end)
