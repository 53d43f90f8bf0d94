"""Who is in sync with a leader: which followers fall out of the ISR, and which may come in. Pure.

A follower falls out when for `replica.lag.time.max.ms` it has not fetched up to where the leader's log ended
at its fetch before, or, where that is asked for, when it is more records behind than
`riverlog.replica.lag.max.messages`. It may come in when it has all that is committed and all from before the
leader's epoch, unless it would fall out again at once: one that cannot keep up does not come and go with
every fetch. Not here: writing it down (`isr_keeper`), and what is committed by it (`watermark`).
"""

from collections.abc import Callable
from typing import NamedTuple

from riverlog.model.ids import BrokerEpoch, NodeId
from riverlog.replication.leading.follower_states import FollowerState, FollowerStates
from riverlog.replication.leading.in_sync import InSyncReplicas


class IsrRules(NamedTuple):
    lag_max_s: float
    lag_messages_max: int | None = None
    """None: only time counts."""

    def exceeds_messages(self, behind: int) -> bool:
        return self.lag_messages_max is not None and behind > self.lag_messages_max


class LogBounds(NamedTuple):
    """Of the leader's log."""

    epoch_start: int
    """Where the leader's epoch begins."""
    high_watermark: int
    log_end: int


class IsrChange(NamedTuple):
    isr: tuple[NodeId, ...]
    """In the order of the replicas."""
    joining: tuple[tuple[NodeId, BrokerEpoch], ...]
    """Who comes in, with the broker epoch that its fetches carry."""
    leaving: tuple[NodeId, ...]


def is_lagging(state: FollowerState, bounds: LogBounds, now_s: float, rules: IsrRules) -> bool:
    behind = bounds.log_end - state.end_offset
    if behind <= 0:
        return False
    return now_s - state.caught_up_s > rules.lag_max_s or rules.exceeds_messages(behind)


def may_come_in(state: FollowerState, bounds: LogBounds, rules: IsrRules) -> bool:
    """Whether what it has is enough; `Standing.may_join` says whether it may be counted on."""
    return (
        state.broker_epoch is not None
        and state.end_offset >= bounds.high_watermark
        and state.end_offset >= bounds.epoch_start
        and not rules.exceeds_messages(bounds.log_end - state.end_offset)
    )


def decide_isr(
    in_sync: InSyncReplicas,
    followers: FollowerStates,
    may_join: Callable[[NodeId, BrokerEpoch], bool],
    bounds: LogBounds,
    now_s: float,
    rules: IsrRules,
) -> IsrChange | None:
    """The ISR as it should be; None when that is what it is. The leader is always in it. `may_join`: whether
    a replica that has enough, under this broker epoch, may be counted on."""
    leaving: list[NodeId] = []
    joining: list[tuple[NodeId, BrokerEpoch]] = []
    for each in in_sync.replicas:
        state = followers.get(each)
        if each == in_sync.leader or state is None:
            continue
        if each in in_sync.isr:
            if is_lagging(state, bounds, now_s, rules):
                leaving.append(each)
        elif may_come_in(state, bounds, rules) and not is_lagging(state, bounds, now_s, rules):
            epoch = state.broker_epoch
            if epoch is not None and may_join(each, epoch):
                joining.append((each, epoch))
    if not leaving and not joining:
        return None
    stay = {*in_sync.isr, *(node_id for node_id, _ in joining)}.difference(leaving)
    isr = tuple(each for each in in_sync.replicas if each in stay)
    return IsrChange(isr, tuple(joining), tuple(leaving))
