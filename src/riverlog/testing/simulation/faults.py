"""What can go wrong, by name. A fault is a value in a schedule: a name, a time, and what it needs to know.

Each is applied to a run and undoes itself after its time; at the end of the chaos all are undone at once.
Not here: whether a schedule can be carried out (`schedules`).
"""

import errno
import math
from collections.abc import Mapping
from typing import Any, Final

from riverlog.testing.simulation import store_faults
from riverlog.testing.simulation.machine.ensembles import HOST
from riverlog.testing.simulation.nodes import State
from riverlog.testing.simulation.scenes import Apply, Scene

_SKEW_MAX_MS: Final = 3_600_000


def _kill(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.node.kill()
    scene.bring_up(scene.node, given["for_s"])


def _power_cut(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.note_loss(scene.node)
    scene.node.power_cut(given["chance"])
    scene.bring_up(scene.node, given["for_s"])


def _kill_all(scene: Scene, given: Mapping[str, Any]) -> None:
    """At once, and they come back one after the other."""
    for number, node in enumerate(scene.nodes):
        if node.state is not State.DOWN:
            node.kill()
        scene.bring_up(node, given["for_s"] * (1 + number) / len(scene.nodes))


def _power_cut_of_all(scene: Scene, given: Mapping[str, Any]) -> None:
    for number, node in enumerate(scene.nodes):
        if node.state is not State.DOWN:
            scene.note_loss(node)
            node.power_cut(given["chance"] + number)
        scene.bring_up(node, given["for_s"] * (1 + number) / len(scene.nodes))


def _lost_disk(scene: Scene, given: Mapping[str, Any]) -> None:
    """One of its directories, or all, is empty when it comes back."""
    node = scene.node
    if node.state is State.DOWN:
        return
    roots = node.log_directories
    node.lose_disk(roots if given["chance"] % 2 else [roots[given["chance"] // 2 % len(roots)]])
    scene.note_loss(node, of_a_disk=True)
    scene.bring_up(node, given["for_s"])


def _lost_node(scene: Scene, given: Mapping[str, Any]) -> None:
    """It never comes back: `how` it is lost. One that is cut off goes on by itself, and hears clients."""
    node, how = scene.node, given["how"]
    if how == "cut":
        _cut_off(scene, {**given, "lasts": True}, [each.name for each in scene.nodes if each is not node])
        _cut_off(scene, {"way": "both", "lasts": True}, [HOST])
    elif node.state is State.DOWN:
        return
    elif how == "stopped":
        scene.world.loop.hold(node.life, math.inf, threads=True)
    elif how == "dead disk":
        node.disk.is_dead = True
    else:
        node.kill()


def _restart(scene: Scene, given: Mapping[str, Any]) -> None:
    if scene.node.state is State.SERVING:
        scene.node.stop()
        scene.bring_up(scene.node, given["for_s"])


def _pause(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.node.pause(given["for_s"])


def _stall(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.node.stall(given["for_s"])


def _cut(scene: Scene, given: Mapping[str, Any]) -> None:
    """`way`: to the broker, from it, or both."""
    clients = [each for each in given["hosts"] if each in scene.world.clients]
    _cut_off(scene, given, clients)


def _cut_off(scene: Scene, given: Mapping[str, Any], hosts: list[str]) -> None:
    links, broker = scene.world.links, [scene.node.name]
    if given["way"] in ("to", "both"):
        links.cut(hosts, broker)
        if not given.get("lasts"):
            scene.later(given["for_s"], lambda: links.heal(hosts, broker))
    if given["way"] in ("from", "both"):
        links.cut(broker, hosts)
        if not given.get("lasts"):
            scene.later(given["for_s"], lambda: links.heal(broker, hosts))


def _cut_nodes(scene: Scene, given: Mapping[str, Any]) -> None:
    """The node and the other ones, as far as they are not the same."""
    _cut_off(scene, given, [name for name in scene.world.nodes if name != scene.node.name])


def _full_buffers(scene: Scene, given: Mapping[str, Any]) -> None:
    """What other nodes have for the node stays queued with them, since it takes nothing off their buffers."""
    links, name = scene.world.links, scene.node.name
    others = [each for each in scene.world.nodes if each != name]
    links.fill(others, name)
    scene.later(given["for_s"], lambda: links.empty(others, name))


def _cut_store(scene: Scene, given: Mapping[str, Any]) -> None:
    _cut_off(scene, given, [HOST])


def _isolated(scene: Scene, given: Mapping[str, Any]) -> None:
    """Cut off from the other nodes and from the store, but not from clients, until its session is over and a
    while longer: what it leads is led by another meanwhile, and what it has taken since must go again."""
    assert scene.ensemble is not None
    lasting = {**given, "way": "both", "for_s": given["for_s"] + scene.ensemble.session_timeout_s}
    _cut_off(scene, lasting, [HOST, *(name for name in scene.world.nodes if name != scene.node.name)])


def _reset(scene: Scene, given: Mapping[str, Any]) -> None:
    _break(scene, given, tell_peer=True)


def _half_open(scene: Scene, given: Mapping[str, Any]) -> None:
    _break(scene, given, tell_peer=False)


def _break(scene: Scene, given: Mapping[str, Any], *, tell_peer: bool) -> None:
    world = scene.world
    for name in given["hosts"]:
        if name in world.clients:
            for socket in world.wires.sockets_of(world.life_of(name)):
                world.wires.break_connection(socket, tell_peer=tell_peer)


def _slow_link(scene: Scene, given: Mapping[str, Any]) -> None:
    links = scene.world.links
    for name in given["hosts"]:
        links.slow_down(name)
        scene.later(given["for_s"], lambda name=name: links.speed_up(name))  # type: ignore[misc]


def _stopped_client(scene: Scene, given: Mapping[str, Any]) -> None:
    """It reads nothing meanwhile, so that what is sent to it piles up."""
    world = scene.world
    for name in given["hosts"]:
        if name in world.clients:
            until_s = math.inf if given.get("lasts") else world.loop.now_s + given["for_s"]
            world.loop.hold(world.life_of(name), until_s, threads=True)


def _killed_client(scene: Scene, given: Mapping[str, Any]) -> None:
    for name in given["hosts"]:
        if name in scene.world.clients:
            scene.restart_client(name)


def _failing_disk(operation: str) -> Apply:
    def apply(scene: Scene, given: Mapping[str, Any]) -> None:
        """One operation fails; whoever watches over the broker replaces the disk and starts it again."""
        node = scene.node
        node.disk.fail(operation, errno.EIO, after=given["after"])  # type: ignore[arg-type]

        def end() -> None:
            node.disk.mend()
            if node.state is not State.DOWN:
                node.kill()
            scene.bring_up(node, 0.5)

        scene.later(given["for_s"], end)

    return apply


def _dead_directory(scene: Scene, given: Mapping[str, Any]) -> None:
    """One of several fails for ever; what is in it is lost to clients, and nothing else is."""
    scene.node.disk.die(given["directory"])


def _full_disk(scene: Scene, given: Mapping[str, Any]) -> None:
    disk = scene.node.disk
    disk.capacity_bytes = disk.used_bytes() + given["room_bytes"]

    def end() -> None:
        disk.capacity_bytes = None

    scene.later(given["for_s"], end)


def _slow_disk(scene: Scene, given: Mapping[str, Any]) -> None:
    life = scene.node.life
    life.thread_delay_s = given["delay_s"]

    def end() -> None:
        life.thread_delay_s = 0.0

    scene.later(given["for_s"], end)


def _short_writes(scene: Scene, given: Mapping[str, Any]) -> None:
    disk = scene.node.disk
    disk.short_writes = scene.world.chance(f"short writes {given['chance']}")

    def end() -> None:
        disk.short_writes = None

    scene.later(given["for_s"], end)


def _cold(scene: Scene, given: Mapping[str, Any]) -> None:
    scene.node.disk.drop_caches()


def _clock_jump(scene: Scene, given: Mapping[str, Any]) -> None:
    """Not further than a broker allows records to be ahead of its clock, so that it may take them."""
    skew_ms = scene.node.clock.skew_ms + given["ms"]
    scene.node.clock.skew_ms = min(max(skew_ms, -_SKEW_MAX_MS), _SKEW_MAX_MS)


def _clock_drift(scene: Scene, given: Mapping[str, Any]) -> None:
    """From the next start on."""
    scene.node.clock_rate = given["rate"]


FAULTS: Final[Mapping[str, tuple[Apply, tuple[str, ...]]]] = {
    "kill": (_kill, ("for_s",)),
    "power_cut": (_power_cut, ("for_s", "chance")),
    "restart": (_restart, ("for_s",)),
    "pause": (_pause, ("for_s",)),
    "stall": (_stall, ("for_s",)),
    "cut": (_cut, ("for_s", "hosts", "way")),
    "reset": (_reset, ("hosts",)),
    "half_open": (_half_open, ("hosts",)),
    "slow_link": (_slow_link, ("for_s", "hosts")),
    "stopped_client": (_stopped_client, ("for_s", "hosts")),
    "killed_client": (_killed_client, ("hosts",)),
    "eio_read": (_failing_disk("read"), ("for_s", "after")),
    "eio_write": (_failing_disk("write"), ("for_s", "after")),
    "eio_sync": (_failing_disk("sync"), ("for_s", "after")),
    "full_disk": (_full_disk, ("for_s", "room_bytes")),
    "slow_disk": (_slow_disk, ("for_s", "delay_s")),
    "short_writes": (_short_writes, ("for_s", "chance")),
    "cold": (_cold, ()),
    "clock_jump": (_clock_jump, ("ms",)),
    "clock_drift": (_clock_drift, ("rate",)),
    "slow_store": (store_faults.slow_store, ("for_s", "delay_s")),
    "unwritable_store": (store_faults.unwritable_store, ("for_s",)),
    "late_watches": (store_faults.late_watches, ("for_s", "delay_s")),
    "cut_nodes": (_cut_nodes, ("for_s", "way")),
    "full_buffers": (_full_buffers, ("for_s",)),
    "cut_store": (_cut_store, ("for_s", "way")),
    "expired_session": (store_faults.expired_session, ()),
    "deposed_controller": (store_faults.deposed_controller, ()),
    "lost_answers": (store_faults.lost_answers, ("count",)),
    "lost_requests": (store_faults.lost_requests, ("count",)),
    "stale_reads": (store_faults.stale_reads, ("for_s",)),
    "kill_all": (_kill_all, ("for_s",)),
    "power_cut_of_all": (_power_cut_of_all, ("for_s", "chance")),
    "isolated": (_isolated, ("for_s",)),
    "lost_disk": (_lost_disk, ("for_s", "chance")),
    "lost_node": (_lost_node, ("how", "way")),
    "restored_store": (store_faults.restored_store, ("for_s", "age_s")),
    "renumbered_store": (store_faults.renumbered_store, ("for_s", "age_s")),
    "dead_directory": (_dead_directory, ("directory",)),
}
"""What each does, and what it has to be told. `node` says of which node it is, or else it is the first;
`lasts` that a cut or a stopped client stays for ever."""

OF_A_CLUSTER: Final = (
    "cut_nodes",
    "cut_store",
    "expired_session",
    "lost_answers",
    "lost_requests",
    "stale_reads",
)

OF_REPLICAS: Final = ("kill_all", "power_cut_of_all", "lost_disk", "isolated")
"""Of a cluster in which others have what one loses."""

OF_AN_ENSEMBLE: Final = ("restored_store", "renumbered_store")
"""Of a cluster of which no node is lost for ever."""

OF_SEVERAL_DIRECTORIES: Final = ("dead_directory",)
"""Of a node that is to go on with the others."""

FOR_EVER: Final = ("lost_node",)
"""What is left is to go on without it."""

OF_CASES: Final = ("deposed_controller", "full_buffers")
"""Of a cluster. No profile draws them: a case says when."""
OF_SEVERAL_NODES: Final = (*OF_A_CLUSTER, *OF_REPLICAS, *OF_AN_ENSEMBLE, *FOR_EVER, *OF_CASES)
WAYS_TO_LOSE_A_NODE: Final = ("killed", "stopped", "cut", "dead disk")
WAYS: Final = ("to", "from", "both")
"""Of what is cut."""


def apply(scene: Scene, fault: Mapping[str, Any]) -> None:
    FAULTS[fault["fault"]][0](scene, fault)
