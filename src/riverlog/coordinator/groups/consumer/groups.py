"""All groups of the consumer protocol (KIP-848) in a shard, and what is decided about them.

The shard's kind of group for the consumer protocol: replays its records, keeps the timers of its members
(sessions, and how long they may take to give partitions up) and follows the topics. Soft state is only which
groups have been checked against the current topics. Not here: how a heartbeat is worked out
(`consumer_heartbeat`), regular expressions (`consumer_regexes`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from riverlog.coordinator.formats.formats import GroupRecord
from riverlog.coordinator.groups.classic.groups import ClassicGroups
from riverlog.coordinator.groups.consumer import heartbeat as heartbeats
from riverlog.coordinator.groups.consumer.description import Description, describe
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.member import ConsumerMember, MemberState
from riverlog.coordinator.groups.consumer.membership import ConsumerMembership
from riverlog.coordinator.groups.consumer.migration import (
    called_back,
    go_down,
    go_up,
    may_go_down,
    may_go_up,
)
from riverlog.coordinator.groups.consumer.patterns import write_matches
from riverlog.coordinator.groups.consumer.reconciliation import Claimed
from riverlog.coordinator.groups.consumer.requests import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Beaten,
    Heartbeat,
    HeartbeatRefusal,
    HeartbeatReply,
)
from riverlog.coordinator.groups.consumer.rules import GroupRules, rules_for
from riverlog.coordinator.groups.consumer.timers import (
    RegexTimer,
    RejoinTimer,
    RevocationTimer,
    SessionTimer,
    SyncTimer,
    no_timers,
    regex_timer,
    timers_after,
    timers_of,
)
from riverlog.coordinator.groups.consumer.topics import metadata_hash
from riverlog.coordinator.groups.kinds import Group
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CancelTimer,
    Effects,
    FollowUp,
    Reply,
    SetTimer,
    TimerKey,
    Token,
)
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.wire.schema import Message


class GroupsShard(Protocol):
    """The shard, as far as this kind of group needs it."""

    config: GroupConfig
    image: ClusterImage
    classic: ClassicGroups


@dataclass(frozen=True, slots=True)
class WentDown:
    """A group was to become classic."""

    group_id: str


class ConsumerGroups:
    records = frozenset(
        {
            GroupRecord.CONSUMER_GROUP_METADATA,
            GroupRecord.CONSUMER_GROUP_PARTITION_METADATA,
            GroupRecord.CONSUMER_GROUP_MEMBER_METADATA,
            GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
            GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            GroupRecord.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            GroupRecord.CONSUMER_GROUP_REGULAR_EXPRESSION,
        }
    )

    def __init__(self, shard: GroupsShard) -> None:
        self._shard = shard
        self._groups: dict[str, ConsumerGroup] = {}
        self._checked: set[str] = set()
        """Groups whose hash is that of their topics as they are now."""

    @property
    def groups(self) -> Mapping[str, ConsumerGroup]:
        return self._groups

    @property
    def config(self) -> GroupConfig:
        return self._shard.config

    @property
    def image(self) -> ClusterImage:
        return self._shard.image

    @property
    def default_assignor(self) -> str:
        return self._shard.config.consumer_assignors[0]

    def get(self, group_id: str) -> Group | None:
        group = self._groups.get(group_id)
        return None if group is None else ConsumerMembership(group)

    def group_ids(self) -> Iterable[str]:
        return self._groups.keys()

    def replay(
        self, kind: GroupRecord, key: Message, value: Message | None, *, offset: int, timestamp_ms: int
    ) -> None:
        group_id = str(getattr(key, "group_id"))  # noqa: B009 - every key of these kinds has it
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ConsumerGroup(group_id)
        group.replay(key, value)
        if value is None and group.is_without_a_trace:
            del self._groups[group_id]
            self._checked.discard(group_id)

    def on_loaded(self, now_ms: int) -> Effects:
        """Members get a fresh session."""
        timers: list[SetTimer] = []
        for group in self._groups.values():
            timers += self._timers_of_all(group)
            timers += regex_timer(group, now_ms)
        return Effects(timers=tuple(timers))

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects | None:
        match follow_up:
            case WentDown(group_id) if error is None:
                return self._shard.classic.decide_adopted(group_id, now_ms)
            case WentDown():
                return NOTHING
            case _:
                return None

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects | None:
        match key:
            case SessionTimer(group_id, member_id) | RejoinTimer(group_id, member_id):
                return self.expel(group_id, [member_id], now_ms)
            case SyncTimer(group_id, member_id):
                return self.expel(group_id, [member_id], now_ms)
            case RevocationTimer(group_id, member_id):
                group = self._groups.get(group_id)
                member = None if group is None else group.members.get(member_id)
                if member is None or member.state is not MemberState.UNREVOKED_PARTITIONS:
                    return NOTHING
                return self.expel(group_id, [member_id], now_ms)
            case RegexTimer(group_id):
                return self._resolve(group_id, now_ms)
            case _:
                return None

    def on_image(self, delta: ImageDelta, now_ms: int) -> Effects:
        """Groups notice with the next heartbeat of a member, as in Kafka; new topics may match at once."""
        resized = delta.resized_topics
        if resized:
            self._checked = {
                group_id
                for group_id in self._checked
                if resized.isdisjoint(self._groups[group_id].subscribed_topics())
            }
        if delta.created.keys() == delta.deleted.keys():
            return NOTHING
        return Effects(
            timers=tuple(timer for group in self._groups.values() for timer in regex_timer(group, now_ms))
        )

    def decide_heartbeat(self, token: Token[HeartbeatReply], beat: Heartbeat, now_ms: int) -> Effects:
        """Reply what the member is to do, or why it is refused."""
        if beat.epoch in (LEAVE, LEAVE_FOR_A_WHILE):
            return self._leave(token, beat, now_ms)
        found = self._change_for(beat, now_ms)
        if isinstance(found, HeartbeatRefusal):
            return _answer(token, found)
        change, migration = found
        members = change.group.members
        if len(members) >= self._shard.config.consumer_group_size_max and beat.member_id not in members:
            return _answer(token, HeartbeatRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The group is full."))
        before = heartbeats.find_member(change, beat)
        if isinstance(before, HeartbeatRefusal):
            return _answer(token, before)
        return migration + self._beat(token, change, before, beat, now_ms)

    def describe(self, group_id: str) -> Description | ErrorCode:
        group = self._groups.get(group_id)
        return ErrorCode.GROUP_ID_NOT_FOUND if group is None else describe(group, self.default_assignor)

    def _beat(
        self,
        token: Token[HeartbeatReply],
        change: GroupChange,
        before: ConsumerMember,
        beat: Heartbeat,
        now_ms: int,
    ) -> Effects:
        if (refusal := heartbeats.refuse_regex(before, beat)) is not None:
            return _answer(token, refusal)
        member = heartbeats.update_member(change, before, beat)
        after = self.settle(change, before, member, beat.owned, now_ms)
        if isinstance(after, HeartbeatRefusal):
            return _answer(token, after)
        is_news = beat.epoch == JOIN or beat.is_full or after.assigned.items() != before.assigned.items()
        rules = self.rules_for(beat.group_id)
        reply = Beaten(
            after.member_id,
            after.epoch,
            rules.heartbeat_interval_ms,
            {topic: tuple(sorted(epochs)) for topic, epochs in after.assigned.items()} if is_news else None,
        )
        timers: list[SetTimer | CancelTimer] = [
            *timers_after(beat.group_id, before, after, rules.session_timeout_ms)
        ]
        if not heartbeats.is_resolved(change.group, after):
            timers += regex_timer(change.group, now_ms)
        return Effects(change.records, (Reply(token, reply),), tuple(timers))

    def settle(
        self,
        change: GroupChange,
        before: ConsumerMember,
        member: ConsumerMember,
        claimed: Claimed | None,
        now_ms: int,
    ) -> ConsumerMember | HeartbeatRefusal:
        group_id = change.group.group_id
        around = heartbeats.Surroundings(
            self._shard.image,
            self.default_assignor,
            self.rules_for(group_id).assignment_interval_ms,
            now_ms,
            group_id in self._checked,
        )
        after = heartbeats.settle(change, before, member, claimed, around)
        if not change.records:
            self._checked.add(group_id)
        return after

    def _change_for(self, beat: Heartbeat, now_ms: int) -> tuple[GroupChange, Effects] | HeartbeatRefusal:
        """The group that the member is in or joins, and what comes of its changing to this protocol."""
        group = self._groups.get(beat.group_id)
        if group is not None:
            return GroupChange(group), NOTHING
        if beat.epoch != JOIN:
            return _no_group(beat.group_id)
        classic = self._shard.classic.get(beat.group_id)
        if classic is None or classic.is_empty:
            former = () if classic is None else classic.tombstones()
            return GroupChange(ConsumerGroup(beat.group_id), *former), NOTHING
        if not may_go_up(classic, self._shard.config):
            return _no_group(beat.group_id)
        change = go_up(classic, self._shard.image, now_ms)
        timers = self._timers_of_all(change.group)
        return change, called_back(classic) + Effects(timers=timers)

    def _leave(self, token: Token[HeartbeatReply], beat: Heartbeat, now_ms: int) -> Effects:
        group = self._groups.get(beat.group_id)
        if group is None:
            return _answer(token, _no_group(beat.group_id))
        refusal = None
        if beat.instance_id is not None:
            refusal = heartbeats.refuse_instance(group, beat.instance_id, beat.member_id)
        member = group.members.get(beat.member_id)
        if refusal is not None or member is None:
            return _answer(token, refusal or heartbeats.unknown_member(beat.group_id, beat.member_id))
        reply = Effects(replies=(Reply(token, Beaten(beat.member_id, beat.epoch)),))
        if beat.epoch == LEAVE:
            return self.expel(beat.group_id, [beat.member_id], now_ms) + reply
        change = GroupChange(group)
        change.write_assignment(heartbeats.away(member))
        return reply + Effects(change.records, timers=(CancelTimer(_revocation(beat)),))

    def expel(self, group_id: str, member_ids: Iterable[str], now_ms: int) -> Effects:
        """Members are gone: the rest of the group shares what they had."""
        group = self._groups.get(group_id)
        gone = [] if group is None else [each for each in member_ids if each in group.members]
        if group is None or not gone:
            return NOTHING
        image = self._shard.image
        change = GroupChange(group)
        for member_id in gone:
            change.remove_member(member_id)
        timers = tuple(timer for each in gone for timer in no_timers(group_id, each))
        if may_go_down(change.group, self._shard.config):
            return self.go_down(change, now_ms) + Effects(timers=timers)
        change.bump_epoch(metadata_hash(change.group.subscribed_topics(), image))
        return Effects(change.records, timers=timers)

    def go_down(self, change: GroupChange, now_ms: int) -> Effects:
        """Only members of the classic protocol are left, so it is theirs again."""
        group_id, members = change.group.group_id, tuple(change.group.members)
        return Effects(
            go_down(change, self._shard.image, now_ms),
            timers=tuple(timer for each in members for timer in no_timers(group_id, each)),
            follow_ups=(WentDown(group_id),),
        )

    def _resolve(self, group_id: str, now_ms: int) -> Effects:
        group = self._groups.get(group_id)
        if group is None:
            return NOTHING
        change = GroupChange(group)
        write_matches(change, self._shard.image, now_ms)
        return Effects(change.records)

    def rules_for(self, group_id: str) -> GroupRules:
        return rules_for(group_id, self._shard.config, self._shard.image)

    def _timers_of_all(self, group: ConsumerGroup) -> tuple[SetTimer, ...]:
        session_ms = self.rules_for(group.group_id).session_timeout_ms
        return tuple(
            timer
            for member in group.members.values()
            for timer in timers_of(group.group_id, member, session_ms)
        )


def _revocation(beat: Heartbeat) -> RevocationTimer:
    return RevocationTimer(beat.group_id, beat.member_id)


def _no_group(group_id: str) -> HeartbeatRefusal:
    return HeartbeatRefusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {group_id}.")


def _answer(token: Token[HeartbeatReply], reply: HeartbeatReply) -> Effects:
    return Effects(replies=(Reply(token, reply),))
