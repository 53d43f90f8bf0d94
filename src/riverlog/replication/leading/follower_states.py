"""What a leader knows of its followers: how far each has come, under which registration, and since when it is
behind. Pure; the time comes with the fetches.

A leader learns it from the fetches of its followers under its own epoch: what they had fetched from another
leader says nothing, since they may have to take it back. Not here: who is in sync by this (`isr`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.replication.leading.in_sync import InSyncReplicas


class FollowerFetch(NamedTuple):
    """What a follower says of itself when it asks for more."""

    node_id: NodeId
    broker_epoch: BrokerEpoch
    """Of the registration that it fetches under (KIP-903)."""
    leader_epoch: LeaderEpoch | None
    """Under which it takes this broker for the leader; None where it does not say."""
    fetch_offset: int
    """Everything below is stored there."""
    log_start_offset: int


class FollowerState:
    """One follower under one leader epoch."""

    __slots__ = ("broker_epoch", "caught_up_s", "end_offset", "fetched_s", "leader_end", "log_start_offset")

    def __init__(self, now_s: float) -> None:
        self.end_offset = 0
        self.log_start_offset = 0
        self.broker_epoch: BrokerEpoch | None = None
        """None until it fetches."""
        self.caught_up_s = now_s
        """When it last had all that the leader had."""
        self.fetched_s: float | None = None
        self.leader_end = 0
        """Where the leader's log ended at its last fetch."""

    def note(self, fetch: FollowerFetch, now_s: float, log_end: int) -> None:
        if fetch.fetch_offset >= log_end:
            self.caught_up_s = now_s
        elif self.fetched_s is not None and fetch.fetch_offset >= self.leader_end:
            # It has all there was when it asked last, so that it was caught up then, however fast the leader
            # writes on.
            self.caught_up_s = max(self.caught_up_s, self.fetched_s)
        self.end_offset = fetch.fetch_offset
        self.log_start_offset = fetch.log_start_offset
        self.broker_epoch = fetch.broker_epoch
        self.fetched_s = now_s
        self.leader_end = log_end


class FollowerStates:
    """The followers that have fetched under the present leader epoch."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[NodeId, FollowerState] = {}

    def get(self, follower: NodeId) -> FollowerState | None:
        return self._states.get(follower)

    def note(self, fetch: FollowerFetch, now_s: float, log_end: int) -> bool:
        """It has everything below the offset it fetches from. That may be less than before: a follower that
        has lost its disk begins again. Whether its log starts elsewhere than it was known to."""
        state = self._states.get(fetch.node_id)
        if state is None:
            state = self._states[fetch.node_id] = FollowerState(now_s)
        start = state.log_start_offset
        state.note(fetch, now_s, log_end)
        return start != state.log_start_offset

    def note_caught_up(self, follower: NodeId, at_s: float) -> None:
        """It had everything at that time. A follower that copies many partitions names only those of which it
        got something, so that for an idle one the last fetch which named it may be long ago."""
        state = self._states.get(follower)
        if state is not None:
            state.caught_up_s = max(state.caught_up_s, at_s)

    def look(self, in_sync: InSyncReplicas, now_s: float, log_end: int) -> None:
        """Note who has all there is, though it does not ask at every turn; and from when on one that has not
        fetched yet is behind."""
        for each in in_sync.replicas:
            if not in_sync.is_follower(each):
                continue
            state = self._states.get(each)
            if state is None:
                self._states[each] = FollowerState(now_s)
            elif state.end_offset >= log_end:
                state.caught_up_s = now_s

    def least(self, followers: Iterable[NodeId]) -> int | None:
        """The end of the one furthest behind, where one that has not fetched has nothing; None for none."""
        states = self._states
        least: int | None = None
        for each in followers:
            state = states.get(each)
            end = 0 if state is None else state.end_offset
            if least is None or end < least:
                least = end
        return least

    def least_log_start(self, followers: Iterable[NodeId]) -> int | None:
        """How far the log start of all of these has come, as their fetches tell; None for none."""
        states = (self._states.get(each) for each in followers)
        return min((0 if each is None else each.log_start_offset for each in states), default=None)

    def retain(self, in_sync: InSyncReplicas) -> None:
        """Forget those that are no replicas any more."""
        for follower in [each for each in self._states if not in_sync.is_follower(each)]:
            del self._states[follower]

    def forget_all(self) -> None:
        """A new epoch begins."""
        self._states.clear()
