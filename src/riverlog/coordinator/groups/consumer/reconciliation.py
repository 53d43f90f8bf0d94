"""How a member gets from what it has to its target, one heartbeat at a time (KIP-848).

First it gives up what it shall not keep, in its old epoch; when it has confirmed that, it moves to the epoch
of the target and gets what is free; what others still have it gets when they have let it go. So a partition
never has two owners. Pure: a member in, a member out.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple, assert_never

from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer.member import NO_PARTITIONS, ConsumerMember, Epochs, MemberState
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId

Claimed = Mapping[TopicId, frozenset[int]]
"""What a member says it owns."""
_NO_EPOCHS: Mapping[int, int] = {}


class Goal(NamedTuple):
    epoch: int
    target: Assignment
    subscribed: Collection[TopicId]
    """Of a topic that the member does not subscribe to any more, nothing is left in its target."""
    owners: Mapping[tuple[TopicId, int], str]


def next_step(
    member: ConsumerMember, goal: Goal, claimed: Claimed | None, *, subscription_changed: bool
) -> ConsumerMember | ErrorCode:
    """`claimed` None: the member has not said what it owns, so it still owns what it had."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch != goal.epoch:
                return _approach(member, goal, claimed)
            return _without_unsubscribed(member, goal, claimed) if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if not _still_owns(claimed, member.revoking):
                return _approach(member, goal, claimed)
            return _without_unsubscribed(member, goal, claimed) if subscription_changed else member
        case MemberState.UNRELEASED_PARTITIONS:
            return _approach(member, goal, claimed)
        case MemberState.UNKNOWN:
            if claimed is None or any(claimed.values()):
                return ErrorCode.FENCED_MEMBER_EPOCH
            return _approach(replace(member, epoch=goal.epoch), goal, claimed)
        case _:
            assert_never(member.state)


def _approach(member: ConsumerMember, goal: Goal, claimed: Claimed | None) -> ConsumerMember:
    kept: dict[TopicId, dict[int, int]] = {}
    revoking: dict[TopicId, dict[int, int]] = {}
    for topic, epochs in member.assigned.items():
        target = goal.target.get(topic, ()) if topic in goal.subscribed else ()
        for index, epoch in epochs.items():
            (kept if index in target else revoking).setdefault(topic, {})[index] = epoch
    if revoking and _still_owns(claimed, revoking):
        return _waiting_for(member, kept, revoking)
    is_all = True
    for topic, target in goal.target.items():
        if topic not in goal.subscribed:
            continue
        for index in target:
            if index in kept.get(topic, _NO_EPOCHS):
                continue
            if goal.owners.get((topic, index), member.member_id) == member.member_id:
                kept.setdefault(topic, {})[index] = goal.epoch
            else:
                is_all = False
    return replace(
        member,
        state=MemberState.STABLE if is_all else MemberState.UNRELEASED_PARTITIONS,
        previous_epoch=member.epoch,
        epoch=goal.epoch,
        assigned=kept,
        revoking=NO_PARTITIONS,
    )


def _without_unsubscribed(member: ConsumerMember, goal: Goal, claimed: Claimed | None) -> ConsumerMember:
    """The member has just given topics up: it need not wait for a new target to lose their partitions."""
    lost = {topic: epochs for topic, epochs in member.assigned.items() if topic not in goal.subscribed}
    if not lost:
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic not in lost}
    revoking = {
        topic: {**member.revoking.get(topic, _NO_EPOCHS), **lost.get(topic, _NO_EPOCHS)}
        for topic in (*member.revoking, *lost)
    }
    if _still_owns(claimed, revoking):
        return _waiting_for(member, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _waiting_for(member: ConsumerMember, kept: Epochs, revoking: Epochs) -> ConsumerMember:
    """It has to say that it owns the partitions to be revoked no more."""
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=kept,
        revoking=revoking,
    )


def _still_owns(claimed: Claimed | None, revoking: Epochs) -> bool:
    if claimed is None:
        return True
    return any(not indexes.isdisjoint(revoking.get(topic, _NO_EPOCHS)) for topic, indexes in claimed.items())
