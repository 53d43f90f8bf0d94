"""The ensemble of a simulated cluster as its nodes reach it: a host, `HOST`, with a clock of its own.

A session lives by what the ensemble hears of its process. One that is cut off (`Links.cut` between the node
and `HOST`) is suspended when it notices; one of which nothing was heard for the session time-out, because it
is cut off, stopped or dead, is ended by the ensemble, and its process learns of that when it is heard again.
A node that has the store to itself (`riverlog serve` without a cluster) has no such host.
"""

import math
from collections.abc import Callable
from typing import Final

from riverlog.metadata import layout
from riverlog.metadata.image import ClusterImage
from riverlog.model.metadata_store import Delete
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from riverlog.testing.simulated_tree import Snapshot
from riverlog.testing.simulation.machine.links import Links
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.machine.loop import VirtualLoop

HOST: Final = "store"
_HEARTBEAT_S: Final = 0.1
"""How often each session is heard of."""
_SNAPSHOT_S: Final = 0.5
"""How often a snapshot is kept, where one is asked for later."""
_ANEW: Final = 1 << 32
"""How much higher the transactions of servers that start anew are numbered."""
_BY_HAND: Final = 0
"""A session that is no process's."""


class _Heard:
    """What the ensemble knows of one session's process."""

    __slots__ = ("host", "is_suspended", "last_s", "life", "session")

    def __init__(self, session: SimulatedStore, life: Life, host: str, now_s: float) -> None:
        self.session, self.life, self.host = session, life, host
        self.last_s = now_s
        self.is_suspended = False


class SharedEnsemble:
    def __init__(
        self, loop: VirtualLoop, links: Links, latency_s: Callable[[], float], session_timeout_s: float = 6.0
    ) -> None:
        self.ensemble = SimulatedEnsemble(
            latency_s=latency_s, session_timeout_s=session_timeout_s, gives_up=False
        )
        self.session_timeout_s = session_timeout_s
        self.expired = 0
        """Sessions that the ensemble has given up."""
        self.found_older = 0
        """How often a broker went on with its image while an older state was shown under higher numbers."""
        self._loop, self._links = loop, links
        self._heard: list[_Heard] = []
        self._snapshots: list[tuple[float, Snapshot]] = []
        self._newest: Snapshot | None = None
        """While it shows an older state: what it has held before that."""
        self._renumbers = False
        self._look()

    def connect(self, host: str, life: Life) -> SimulatedStore:
        """A session of the process; those of its earlier lives go on until their time is over."""
        session = self.ensemble.connect(owner=host)
        session.renew(self._loop.now_s * life.clock_rate)
        self._heard.append(_Heard(session, life, host, self._loop.now_s))
        return session

    def has_heard_of(self, session: SimulatedStore | None) -> bool:
        """Whether its process can be sure that the session lasts, whatever its clock says; with some room for
        clocks that drift."""
        last_s = max((each.last_s for each in self._heard if each.session is session), default=-math.inf)
        return self._loop.now_s - last_s <= self.session_timeout_s * 1.02 + 2 * _HEARTBEAT_S

    def depose_controller(self) -> None:
        """Whoever runs it takes the office away by hand, if it can be written."""
        if self.ensemble.get(layout.CONTROLLER) is not None and not self.ensemble.is_unwritable:
            self.ensemble.commit([Delete(layout.CONTROLLER)], _BY_HAND)

    @property
    def is_older(self) -> bool:
        return self._newest is not None

    def keep_snapshots(self) -> None:
        """From now on, for `go_back`."""
        now_s = self._loop.now_s
        self._snapshots.append((now_s, self.ensemble.snapshot()))
        self._loop.at(now_s + _SNAPSHOT_S, self._loop.world, self.keep_snapshots)

    def go_back(self, age_s: float, *, renumbers: bool = False) -> Snapshot:
        """Begin again from a snapshot that is so old, which is returned. All sessions end, and hear of that
        when they are heard of. `renumbers`: transactions have higher numbers from now on than there were, as
        with servers that start anew from a backup."""
        until_s = self._loop.now_s - age_s
        older = [snapshot for at_s, snapshot in self._snapshots if at_s <= until_s]
        snapshot = older[-1] if older else self._snapshots[0][1]
        self._renumbers = renumbers
        self._newest = self._begin_again(snapshot)
        return snapshot

    def put_back(self) -> None:
        """Whoever runs it has found the newest state, and puts it in again."""
        newest, self._newest = self._newest, None
        if newest is not None:
            self._begin_again(newest)

    def _begin_again(self, snapshot: Snapshot) -> Snapshot:
        """What it held before."""
        delay_s, self.ensemble.watch_delay_s = self.ensemble.watch_delay_s, 0.0
        for heard in self._heard:
            self.ensemble.end(heard.session)  # Who ends next is not told later, when it has ended, too.
        self.ensemble.watch_delay_s = delay_s
        before = self.ensemble.snapshot()
        if self._renumbers:
            snapshot = snapshot._replace(last_transaction=before.last_transaction + _ANEW)
        self.ensemble.restore(snapshot)
        return before

    def _look(self) -> None:
        now_s = self._loop.now_s
        for heard in list(self._heard):
            if not self.ensemble.has(heard.session):
                self._forget(heard, now_s)
            elif not self._is_heard(heard.life, heard.host, now_s):
                self._miss(heard, now_s)
            else:
                heard.last_s = now_s
                heard.session.renew(now_s * heard.life.clock_rate)
                if heard.is_suspended:
                    heard.is_suspended = False
                    heard.life.run(heard.session.resume)
        self._loop.at(now_s + _HEARTBEAT_S, self._loop.world, self._look)

    def _is_heard(self, life: Life, host: str, now_s: float) -> bool:
        return life.is_alive and life.held_until_s <= now_s and not self._is_cut(host)

    def _is_cut(self, host: str) -> bool:
        return self._links.is_cut(host, HOST) or self._links.is_cut(HOST, host)

    def _miss(self, heard: _Heard, now_s: float) -> None:
        if self._is_cut(heard.host) and heard.life.is_alive and not heard.is_suspended:
            heard.is_suspended = True
            heard.life.run(heard.session.suspend)
        if now_s - heard.last_s > self.session_timeout_s:
            self.expired += 1
            self.ensemble.end(heard.session)

    def _forget(self, heard: _Heard, now_s: float) -> None:
        """It has ended; a process that is heard of again is told so, and begins a new one."""
        if not heard.life.is_alive or heard.session.is_closed:
            self._heard.remove(heard)
        elif self._is_heard(heard.life, heard.host, now_s):
            heard.last_s, heard.is_suspended = now_s, False
            heard.life.run(heard.session.expire)


def knows_newer(image: ClusterImage, snapshot: Snapshot) -> bool:
    """Whether the image shows that the snapshot is older: by the state of a partition, or by a topic."""
    return any(
        layout.topic(name) not in snapshot.nodes
        or any(
            _version(snapshot, layout.partition_state(name, index)) < partition.partition_epoch
            for index, partition in enumerate(topic.partitions)
        )
        for name, topic in image.topics.items()
    )


def _version(snapshot: Snapshot, path: str) -> int:
    """-1 where there is no such node."""
    node = snapshot.nodes.get(path)
    return -1 if node is None else node.version
