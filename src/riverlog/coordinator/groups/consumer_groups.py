"""All groups of the consumer protocol (KIP-848) in a shard, and what is decided about them.

The shard's kind of group for the consumer protocol: replays its records, keeps the timers of its members
(sessions, and how long they may take to give partitions up) and follows the topics. Soft state is only which
groups have been checked against the current topics. Not here: how a heartbeat is worked out
(`consumer_heartbeat`), regular expressions (`consumer_regexes`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from riverlog.coordinator.effects import (
    NOTHING,
    CancelTimer,
    Effects,
    Reply,
    SetTimer,
    TimerKey,
    Token,
)
from riverlog.coordinator.groups import consumer_heartbeat as heartbeats
from riverlog.coordinator.groups.consumer_description import Description, describe
from riverlog.coordinator.groups.consumer_draft import Draft
from riverlog.coordinator.groups.consumer_group import ConsumerGroup
from riverlog.coordinator.groups.consumer_member import ConsumerMember, MemberState
from riverlog.coordinator.groups.consumer_membership import ConsumerMembership
from riverlog.coordinator.groups.consumer_regexes import write_matches
from riverlog.coordinator.groups.consumer_requests import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Beaten,
    Heartbeat,
    HeartbeatReply,
    Refusal,
)
from riverlog.coordinator.groups.consumer_rules import GroupRules, rules_for
from riverlog.coordinator.groups.consumer_topics import metadata_hash
from riverlog.coordinator.groups.membership import Group
from riverlog.coordinator.records_format.formats import GroupRecord
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.wire.schema import Message

_RESOLVE_INTERVAL_MS: Final = 1_000
"""The expressions of a group are not looked at more often."""


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """The member has not been heard of for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationTimer:
    """The member has taken too long to give partitions up."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexTimer:
    """Time to look which topics the members' expressions match."""

    group_id: str


class GroupsShard(Protocol):
    """The shard, as far as this kind of group needs it."""

    config: GroupConfig
    image: ClusterImage

    def group(self, group_id: str) -> Group | None: ...


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
            for member in group.members.values():
                timers += self._timers_of(group.group_id, member)
            timers += _regex_timer(group, now_ms)
        return Effects(timers=tuple(timers))

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects | None:
        match key:
            case SessionTimer(group_id, member_id):
                return self._expel(group_id, member_id)
            case RevocationTimer(group_id, member_id):
                group = self._groups.get(group_id)
                member = None if group is None else group.members.get(member_id)
                if member is None or member.state is not MemberState.UNREVOKED_PARTITIONS:
                    return NOTHING
                return self._expel(group_id, member_id)
            case RegexTimer(group_id):
                return self._resolve(group_id, now_ms)
            case _:
                return None

    def on_image(self, old: ClusterImage, new: ClusterImage, now_ms: int) -> Effects:
        """Groups notice with the next heartbeat of a member, as in Kafka; new topics may match at once."""
        for group_id in tuple(self._checked):
            topics = self._groups[group_id].subscribed_topics()
            if any(old.topics.get(name) is not new.topics.get(name) for name in topics):
                self._checked.discard(group_id)
        if old.topics.keys() == new.topics.keys():
            return NOTHING
        return Effects(
            timers=tuple(timer for group in self._groups.values() for timer in _regex_timer(group, now_ms))
        )

    def decide_heartbeat(self, token: Token[HeartbeatReply], beat: Heartbeat, now_ms: int) -> Effects:
        """Reply what the member is to do, or why it is refused."""
        if beat.epoch in (LEAVE, LEAVE_FOR_A_WHILE):
            return self._leave(token, beat)
        draft = self._draft_for(beat)
        if isinstance(draft, Refusal):
            return _answer(token, draft)
        members = draft.group.members
        if len(members) >= self._shard.config.consumer_group_size_max and beat.member_id not in members:
            return _answer(token, Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The group is full."))
        before = heartbeats.find_member(draft, beat)
        if isinstance(before, Refusal):
            return _answer(token, before)
        return self._beat(token, draft, before, beat, now_ms)

    def describe(self, group_id: str) -> Description | ErrorCode:
        group = self._groups.get(group_id)
        return ErrorCode.GROUP_ID_NOT_FOUND if group is None else describe(group, self.default_assignor)

    def _beat(
        self,
        token: Token[HeartbeatReply],
        draft: Draft,
        before: ConsumerMember,
        beat: Heartbeat,
        now_ms: int,
    ) -> Effects:
        image, rules = self._shard.image, self._rules(beat.group_id)
        if (refusal := heartbeats.refuse_regex(before, beat)) is not None:
            return _answer(token, refusal)
        member = heartbeats.update_member(draft, before, beat)
        has_changed = member.topics != before.topics or member.regex != before.regex
        # A new expression counts when it is resolved; until then it would only be a detour.
        is_known = has_changed and (not member.regex or member.regex in draft.group.regexes)
        if (is_known or member.topics != before.topics) or beat.group_id not in self._checked:
            heartbeats.raise_epoch(
                draft, image, subscription_changed=is_known or member.topics != before.topics
            )
            if not draft.records:
                self._checked.add(beat.group_id)
        heartbeats.renew_target(
            draft,
            image,
            self.default_assignor,
            interval_ms=rules.assignment_interval_ms,
            now_ms=now_ms,
        )
        after = heartbeats.step(draft, member, image, beat.owned, subscription_changed=has_changed)
        if isinstance(after, Refusal):
            return _answer(token, after)
        is_news = beat.epoch == JOIN or beat.is_full or after.assigned.items() != before.assigned.items()
        reply = Beaten(
            after.member_id,
            after.epoch,
            rules.heartbeat_interval_ms,
            {topic: tuple(sorted(epochs)) for topic, epochs in after.assigned.items()} if is_news else None,
        )
        timers: list[SetTimer | CancelTimer] = [*self._timers_after(beat.group_id, before, after)]
        if has_changed and member.regex and not is_known:
            timers += _regex_timer(draft.group, now_ms)
        return Effects(draft.records, (Reply(token, reply),), tuple(timers))

    def _draft_for(self, beat: Heartbeat) -> Draft | Refusal:
        group = self._groups.get(beat.group_id)
        if group is not None:
            return Draft(group)
        if beat.epoch != JOIN:
            return _no_group(beat.group_id)
        other = self._shard.group(beat.group_id)
        if other is not None and not other.is_empty:
            return _no_group(beat.group_id)
        return Draft(ConsumerGroup(beat.group_id), *(() if other is None else other.tombstones()))

    def _leave(self, token: Token[HeartbeatReply], beat: Heartbeat) -> Effects:
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
            return self._expel(beat.group_id, beat.member_id) + reply
        draft = Draft(group)
        draft.write_assignment(heartbeats.away(member))
        return reply + Effects(draft.records, timers=(CancelTimer(_revocation(beat)),))

    def _expel(self, group_id: str, member_id: str) -> Effects:
        """The member is gone: the rest of the group shares what it had."""
        group = self._groups.get(group_id)
        if group is None or member_id not in group.members:
            return NOTHING
        draft = Draft(group)
        draft.remove_member(member_id)
        draft.bump_epoch(metadata_hash(draft.group.subscribed_topics(), self._shard.image))
        return Effects(draft.records, timers=_no_timers(group_id, member_id))

    def _resolve(self, group_id: str, now_ms: int) -> Effects:
        group = self._groups.get(group_id)
        if group is None:
            return NOTHING
        draft = Draft(group)
        write_matches(draft, self._shard.image, now_ms)
        return Effects(draft.records)

    def _rules(self, group_id: str) -> GroupRules:
        return rules_for(group_id, self._shard.config, self._shard.image)

    def _timers_after(
        self, group_id: str, before: ConsumerMember, after: ConsumerMember
    ) -> tuple[SetTimer | CancelTimer, ...]:
        session, *revocation = self._timers_of(group_id, after)
        if after.has_same_assignment(before):
            return (session,)
        if revocation:
            return (session, *revocation)
        return (session, CancelTimer(RevocationTimer(group_id, after.member_id)))

    def _timers_of(self, group_id: str, member: ConsumerMember) -> tuple[SetTimer, ...]:
        session_ms = self._rules(group_id).session_timeout_ms
        session = SetTimer(SessionTimer(group_id, member.member_id), session_ms)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            return (session,)
        revocation = SetTimer(RevocationTimer(group_id, member.member_id), member.rebalance_timeout_ms)
        return (session, revocation)


def _regex_timer(group: ConsumerGroup, now_ms: int) -> tuple[SetTimer, ...]:
    if not group.wanted_regexes():
        return ()
    latest_ms = max((each.resolved_ms for each in group.regexes.values()), default=0)
    return (SetTimer(RegexTimer(group.group_id), max(0, latest_ms + _RESOLVE_INTERVAL_MS - now_ms)),)


def _revocation(beat: Heartbeat) -> RevocationTimer:
    return RevocationTimer(beat.group_id, beat.member_id)


def _no_timers(group_id: str, member_id: str) -> tuple[CancelTimer, ...]:
    return (
        CancelTimer(SessionTimer(group_id, member_id)),
        CancelTimer(RevocationTimer(group_id, member_id)),
    )


def _no_group(group_id: str) -> Refusal:
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {group_id}.")


def _answer(token: Token[HeartbeatReply], reply: HeartbeatReply) -> Effects:
    return Effects(replies=(Reply(token, reply),))
