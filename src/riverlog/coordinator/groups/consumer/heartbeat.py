"""A heartbeat: the member joins or changes, the group gets a new epoch and target, the member takes a step.

Pure functions on a `GroupChange`, in this order: find the member, take over what it says, raise the
group's epoch if its subscriptions or topics have changed, compute a new target if that is due, and bring the
member nearer to its target.
"""

from dataclasses import replace
from typing import NamedTuple

from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.member import (
    LEFT_FOR_A_WHILE,
    NO_PARTITIONS,
    ConsumerMember,
    MemberState,
)
from riverlog.coordinator.groups.consumer.reconciliation import Claimed, Goal, next_step
from riverlog.coordinator.groups.consumer.requests import JOIN, Heartbeat, HeartbeatRefusal
from riverlog.coordinator.groups.consumer.target import write_target
from riverlog.coordinator.groups.consumer.topics import metadata_hash, sizes_of
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.re2.matcher import compiled
from riverlog.re2.parser import InvalidRegex


def find_member(change: GroupChange, beat: Heartbeat) -> ConsumerMember | HeartbeatRefusal:
    """The member that the heartbeat speaks for; who joins and is not there yet is new."""
    if beat.instance_id is not None:
        return _find_static(change, beat, beat.instance_id)
    member = change.group.members.get(beat.member_id)
    if beat.epoch == JOIN:
        return member or ConsumerMember(beat.member_id)
    if member is None:
        return unknown_member(beat.group_id, beat.member_id)
    return _refuse_epoch(member, beat) or member


def unknown_member(group_id: str, member_id: str) -> HeartbeatRefusal:
    return HeartbeatRefusal(
        ErrorCode.UNKNOWN_MEMBER_ID, f"The group {group_id} has no member {member_id}. Join it again."
    )


def refuse_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> HeartbeatRefusal | None:
    """Why a client may not speak for an instance."""
    owner = group.instances.get(instance_id)
    if owner is None:
        return HeartbeatRefusal(
            ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no instance {instance_id}. Join it again."
        )
    if owner != member_id:
        return HeartbeatRefusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"The instance {instance_id} is another member by now. Only one client may use an instance id.",
        )
    return None


def _find_static(change: GroupChange, beat: Heartbeat, instance_id: str) -> ConsumerMember | HeartbeatRefusal:
    group = change.group
    if beat.epoch != JOIN:
        refusal = refuse_instance(group, instance_id, beat.member_id)
        member = group.members.get(beat.member_id)
        if refusal is not None or member is None:
            return refusal or unknown_member(beat.group_id, beat.member_id)
        return _refuse_epoch(member, beat) or member
    if instance_id not in group.instances:
        return group.members.get(beat.member_id) or ConsumerMember(beat.member_id)
    away = group.members[group.instances[instance_id]]
    if not away.is_away:
        return HeartbeatRefusal(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"The instance {instance_id} is still in the group. It must leave first, or time out.",
        )
    return put_in_place_of(change, away, beat.member_id)


def put_in_place_of(change: GroupChange, away: ConsumerMember, member_id: str) -> ConsumerMember:
    """The instance comes back under a new member id and finds everything as it was."""
    group_id, target = change.group.group_id, change.group.target_of(away.member_id)
    back = replace(away, member_id=member_id, epoch=JOIN, previous_epoch=JOIN, state=MemberState.STABLE)
    change.write(*records.member_tombstones(group_id, away.member_id))
    change.write_subscription(back)
    change.write(records.target(group_id, member_id, target))
    change.write_assignment(back)
    return back


def _refuse_epoch(member: ConsumerMember, beat: Heartbeat) -> HeartbeatRefusal | None:
    """The epoch before is forgiven to a member that may have missed a reply and claims nothing else."""
    if beat.epoch == member.epoch:
        return None
    if (
        beat.epoch < member.epoch
        and beat.epoch == member.previous_epoch
        and beat.owned is not None
        and member.owns_only(beat.owned)
    ):
        return None
    return HeartbeatRefusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member is in epoch {member.epoch}, not in {beat.epoch}. Give up all partitions and join again.",
    )


def refuse_regex(member: ConsumerMember, beat: Heartbeat) -> HeartbeatRefusal | None:
    if not beat.regex or beat.regex == member.regex:
        return None
    try:
        compiled(beat.regex)
    except InvalidRegex as error:
        return HeartbeatRefusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"The expression {beat.regex!r} cannot be used: {error}."
        )
    return None


def update_member(change: GroupChange, member: ConsumerMember, beat: Heartbeat) -> ConsumerMember:
    """The member with what the heartbeat says, written if that is news."""
    updated = replace(
        member,
        instance_id=beat.instance_id or member.instance_id,
        rack_id=beat.rack_id or member.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        topics=member.topics if beat.topics is None else tuple(sorted(set(beat.topics))),
        regex=member.regex if beat.regex is None else beat.regex,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms is None else beat.rebalance_timeout_ms
        ),
        assignor=beat.assignor or member.assignor,
        classic=None,
    )
    is_new = member.member_id not in change.group.members
    if is_new or not updated.has_same_subscription(member):
        change.write_subscription(updated)
        change.forget_regex(member.regex)
    return updated


class Surroundings(NamedTuple):
    """What a group cannot know by itself."""

    image: ClusterImage
    default_assignor: str
    assignment_interval_ms: int
    now_ms: int
    is_checked: bool
    """The topics are those of the group's hash."""


def settle(
    change: GroupChange,
    before: ConsumerMember,
    member: ConsumerMember,
    claimed: Claimed | None,
    around: Surroundings,
) -> ConsumerMember | HeartbeatRefusal:
    """Everything that follows from what a member has said: epoch, target, and its own next step."""
    has_changed = member.topics != before.topics or member.regex != before.regex
    # A new expression counts when it is resolved; until then it would only be a detour.
    is_news = member.topics != before.topics or (has_changed and is_resolved(change.group, member))
    if is_news or not around.is_checked:
        _raise_epoch(change, around.image, subscription_changed=is_news)
    if is_target_due(change.group, interval_ms=around.assignment_interval_ms, now_ms=around.now_ms):
        write_target(change, around.image, around.default_assignor, around.now_ms)
    return _step(change, member, around.image, claimed, subscription_changed=has_changed)


def is_resolved(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return not member.regex or member.regex in group.regexes


def is_target_due(group: ConsumerGroup, *, interval_ms: int, now_ms: int) -> bool:
    """Not more often than the interval allows, so that many members who join at once move once."""
    return group.epoch > group.target_epoch and not 0 <= now_ms - group.targeted_ms < interval_ms


def _raise_epoch(change: GroupChange, image: ClusterImage, *, subscription_changed: bool) -> None:
    """A new epoch of the group, if members want other topics, or the topics are not what they were."""
    found = metadata_hash(change.group.subscribed_topics(), image)
    if subscription_changed or found != change.group.metadata_hash:
        change.bump_epoch(found)


def _step(
    change: GroupChange,
    member: ConsumerMember,
    image: ClusterImage,
    claimed: Claimed | None,
    *,
    subscription_changed: bool,
) -> ConsumerMember | HeartbeatRefusal:
    """One step towards the target, written if the member is somewhere else afterwards."""
    group = change.group
    goal = Goal(
        group.target_epoch,
        group.target_of(member.member_id),
        sizes_of(group.topics_of(member), image).keys(),
        group.owners,
    )
    moved = next_step(member, goal, claimed, subscription_changed=subscription_changed)
    if isinstance(moved, ErrorCode):
        return HeartbeatRefusal(
            moved, "The member's state is not known here. Give up all partitions and join again."
        )
    if not moved.has_same_assignment(member):
        change.write_assignment(moved)
    return moved


def away(member: ConsumerMember) -> ConsumerMember:
    """A static member that leaves for a while: it keeps its partitions, and has given up what it was to."""
    return replace(
        member,
        epoch=LEFT_FOR_A_WHILE,
        assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
        revoking=NO_PARTITIONS,
    )
