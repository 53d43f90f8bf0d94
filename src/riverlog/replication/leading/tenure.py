"""Whether this node leads a partition still, by what it knows without asking the metadata store (I17).

Either its session lasts and nobody is elected while it does, or nobody else could be, or all in sync have
confirmed it (`confirmation`). Not here: the role, which is what the metadata said last.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from riverlog.model.ids import NodeId
from riverlog.replication.leading.led_replicas import LedReplicas
from riverlog.replication.leading.standing import Standing


class Asker(NamedTuple):
    """A follower and its last fetch, of whichever of its partitions."""

    node_id: NodeId
    at_s: float
    answered_before: int
    """The number of the fetch before, which had been answered when it sent this one."""


class Tenure:
    __slots__ = ("_askers", "_led", "_may_elect_any", "_standing", "hurry")

    def __init__(
        self,
        led: LedReplicas,
        standing: Standing,
        askers: Callable[[], Iterator[Asker]],
        hurry: Callable[[], None],
        may_elect_any: Callable[[], bool],
    ) -> None:
        """`askers` are those who copy from this leader; `hurry` has them ask again; `may_elect_any` says
        whether a replica that is not in sync may be elected."""
        self._led = led
        self._standing = standing
        self._askers = askers
        self.hurry = hurry
        self._may_elect_any = may_elect_any

    def is_sure(self) -> bool:
        """Whether nobody else can lead by now: the session is alive, or nobody could be elected."""
        lease = self._standing.lease
        return lease is None or lease.is_held() or not self._is_replaceable()

    def _is_replaceable(self) -> bool:
        """Whether somebody else can be elected while this node is taken for dead."""
        in_sync = self._led.in_sync
        if in_sync.is_sole:
            return False
        is_only_one = in_sync.isr == (in_sync.leader,) and not in_sync.has_eligible
        return not is_only_one or self._may_elect_any()

    def when_confirmed(self, *, at_once: bool = True) -> "asyncio.Future[bool] | None":
        """None when nobody else can lead, so that what this node knows of the partition can be told; else a
        wait until all in sync have confirmed that nobody did when this was asked. False: another may.

        While its session lasts, a leader is replaced by a controller that moves leaders, and hears of that a
        moment later than its successor. Where that is too late it is not `at_once` that nobody else leads."""
        in_sync = self._led.in_sync
        if at_once and self.is_sure():
            return None
        has_others = any(True for _ in in_sync.followers)
        if not has_others and self.is_sure():
            return None
        # An eligible leader replica need not ask for anything, so that no word of others is enough.
        if has_others and not in_sync.has_eligible:
            return self._standing.confirmations.wait(self)
        unconfirmed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        unconfirmed.set_result(False)
        return unconfirmed

    def has_changed(self) -> None:
        """It has another leader or ISR: others would have to confirm it."""
        self._standing.confirmations.give_up(self)

    def silent_since(self, question: int) -> Collection[NodeId]:
        """Who would have to confirm that this node leads and has not, since so many fetches had come."""
        in_sync = self._led.in_sync
        others = set(in_sync.followers)
        if not others or in_sync.has_eligible:
            return (in_sync.leader,)  # Which never asks itself.
        return others - {each.node_id for each in self._askers() if each.answered_before > question}

    def heard_since(self, since_s: float) -> set[NodeId]:
        """The followers that have asked this leader for records since then."""
        return {each.node_id for each in self._askers() if each.at_s > since_s}
