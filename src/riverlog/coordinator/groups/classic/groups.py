"""All classic groups of a shard: requests, records and timers find their group here.

A group is created when a client without a member id asks to join; its first record says so. It goes
with its tombstone. What a group decides is in `classic_joining`, `classic_syncing` and `classic_leaving`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from riverlog.coordinator.formats.classic_groups import GroupMetadataKey, GroupMetadataValue
from riverlog.coordinator.formats.formats import GroupRecord
from riverlog.coordinator.groups.classic import joining, leaving, rebalance, syncing
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.joining import JoinRules
from riverlog.coordinator.groups.classic.rebalance import Emptied
from riverlog.coordinator.groups.classic.records import StoredGroup, record_of, stored_from
from riverlog.coordinator.groups.classic.requests import (
    Beat,
    ClassicSessionTimer,
    ClassicSyncTimer,
    Joined,
    Joining,
    JoinTimer,
    Leaver,
    Synced,
    Syncing,
    Verdicts,
)
from riverlog.coordinator.groups.classic.states import ClassicEvent, State, rule
from riverlog.coordinator.groups.classic.syncing import Assigned
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CoordinatorRecord,
    Effects,
    FollowUp,
    Reply,
    SetTimer,
    TimerKey,
    Token,
    reply,
)
from riverlog.coordinator.runtime.rules import AnswerWith
from riverlog.metadata.delta import ImageDelta
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.wire.schema import Message


class ClassicHost(Protocol):
    """The groups of the consumer protocol, which take classic members in while a group migrates (KIP-848)."""

    def hosts(self, group_id: str) -> bool:
        """Whether there is such a group with members, so that classic members must be decided there."""
        ...

    def make_way(self, group_id: str) -> tuple[CoordinatorRecord, ...]:
        """Records that remove an empty group of that protocol, since a classic one takes its id."""
        ...

    def decide_classic_join(self, token: Token[Joined], request: Joining, now_ms: int) -> Effects: ...

    def decide_classic_sync(self, token: Token[Synced], request: Syncing, now_ms: int) -> Effects: ...

    def decide_classic_heartbeat(self, token: Token[ErrorCode], beat: Beat, now_ms: int) -> Effects: ...

    def decide_classic_leave(
        self, token: Token[Verdicts], group_id: str, leavers: Sequence[Leaver], now_ms: int
    ) -> Effects: ...


@dataclass(frozen=True, slots=True)
class Created:
    """The first record of a group was to be written."""

    group_id: str


class ClassicGroups:
    records = frozenset({GroupRecord.GROUP_METADATA})

    def __init__(self, config: GroupConfig) -> None:
        self.host: ClassicHost | None = None
        self._rules = JoinRules(config.initial_rebalance_delay_ms, config.group_size_max)
        self._groups: dict[str, ClassicGroup] = {}
        self._is_loaded = False

    def get(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def group_ids(self) -> Collection[str]:
        return self._groups.keys()

    # Requests.

    def decide_join(self, token: Token[Joined], request: Joining, now_ms: int) -> Effects:
        if (host := self._host(request.group_id)) is not None:
            return host.decide_classic_join(token, request, now_ms)
        group = self._groups.get(request.group_id)
        if group is not None:
            return joining.decide_join(group, token, request, self._rules, now_ms)
        if request.member_id:
            return reply(token, Joined(request.member_id, _missing(ClassicEvent.REJOIN_SAME)))
        return self._decide_first_join(token, request, now_ms)

    def _decide_first_join(self, token: Token[Joined], request: Joining, now_ms: int) -> Effects:
        group = self._groups[request.group_id] = ClassicGroup(request.group_id)
        group.state_since_ms = now_ms
        effects = joining.decide_join(group, token, request, self._rules, now_ms)
        former = () if self.host is None else self.host.make_way(request.group_id)
        created = Effects(
            (*former, record_of(request.group_id, StoredGroup(state_since_ms=now_ms))),
            follow_ups=(Created(request.group_id),),
        )
        return created + effects

    def _decide_not_created(self, group: ClassicGroup, error: ErrorCode) -> Effects:
        """A group whose first record could not be written never was."""
        if group.stored is not None:
            return NOTHING
        del self._groups[group.group_id]
        replies = [
            Reply(member.joining, error) for member in group.members.values() if member.joining is not None
        ]
        return Effects(replies=tuple(replies))

    def decide_sync(self, token: Token[Synced], request: Syncing, now_ms: int) -> Effects:
        if (host := self._host(request.group_id)) is not None:
            return host.decide_classic_sync(token, request, now_ms)
        group = self._groups.get(request.group_id)
        if group is None:
            return reply(token, Synced(_missing(ClassicEvent.SYNC)))
        return syncing.decide_sync(
            group, token, request, initial_delay_ms=self._rules.initial_delay_ms, now_ms=now_ms
        )

    def decide_heartbeat(self, token: Token[ErrorCode], beat: Beat, now_ms: int) -> Effects:
        if (host := self._host(beat.group_id)) is not None:
            return host.decide_classic_heartbeat(token, beat, now_ms)
        group = self._groups.get(beat.group_id)
        if group is None:
            return reply(token, _missing(ClassicEvent.HEARTBEAT))
        return syncing.decide_heartbeat(group, token, beat)

    def decide_leave(
        self, token: Token[Verdicts], group_id: str, leavers: Sequence[Leaver], now_ms: int
    ) -> Effects:
        if (host := self._host(group_id)) is not None:
            return host.decide_classic_leave(token, group_id, leavers, now_ms)
        group = self._groups.get(group_id)
        if group is None:
            return reply(token, (_missing(ClassicEvent.MEMBER_GONE),) * len(leavers))
        return leaving.decide_leave(
            group, token, leavers, initial_delay_ms=self._rules.initial_delay_ms, now_ms=now_ms
        )

    def _host(self, group_id: str) -> ClassicHost | None:
        return self.host if self.host is not None and self.host.hosts(group_id) else None

    # Records.

    def replay(
        self, kind: GroupRecord, key: Message, value: Message | None, *, offset: int, timestamp_ms: int
    ) -> None:
        assert isinstance(key, GroupMetadataKey)
        if value is None:
            self._groups.pop(key.group, None)
            return
        assert isinstance(value, GroupMetadataValue)
        group = self._groups.get(key.group) if self._is_loaded else None
        if group is None:
            group = self._groups[key.group] = ClassicGroup(key.group)
        group.apply_stored(stored_from(value))

    def on_loaded(self, now_ms: int) -> Effects:
        """Members get a fresh session. A group that is larger than it may be now is made to join again."""
        self._is_loaded = True
        timers: list[SetTimer] = []
        rebalances = NOTHING
        for group in self._groups.values():
            timers += (group.session_timer(member) for member in group.members.values())
            if len(group.members) > self._rules.members_max:
                rebalances += self._rebalance(group, now_ms)
        return Effects(timers=tuple(timers)) + rebalances

    def decide_adopted(self, group_id: str, now_ms: int) -> Effects:
        """A group of the other protocol has become classic by its record: let its members join again."""
        group = self._groups.get(group_id)
        if group is None:
            return NOTHING
        timers = tuple(group.session_timer(member) for member in group.members.values())
        return Effects(timers=timers) + self._rebalance(group, now_ms)

    def _rebalance(self, group: ClassicGroup, now_ms: int) -> Effects:
        return rebalance.decide_rebalance(group, initial_delay_ms=self._rules.initial_delay_ms, now_ms=now_ms)

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects | None:
        if not isinstance(follow_up, Created | Assigned | Emptied):
            return None
        group = self._groups.get(follow_up.group_id)
        if error is None or group is None:
            return NOTHING
        match follow_up:
            case Created():
                return self._decide_not_created(group, error)
            case Assigned():
                delay_ms = self._rules.initial_delay_ms
                return syncing.decide_not_assigned(group, follow_up, initial_delay_ms=delay_ms, now_ms=now_ms)
            case Emptied():
                return rebalance.decide_not_emptied(group)

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects | None:
        if not isinstance(key, ClassicSessionTimer | JoinTimer | ClassicSyncTimer):
            return None
        group = self._groups.get(key.group_id)
        if group is None:
            return NOTHING
        delay_ms = self._rules.initial_delay_ms
        match key:
            case ClassicSessionTimer(member_id=member_id):
                return leaving.decide_session_end(group, member_id, initial_delay_ms=delay_ms, now_ms=now_ms)
            case JoinTimer():
                return rebalance.decide_join_time_out(group, initial_delay_ms=delay_ms, now_ms=now_ms)
            case ClassicSyncTimer():
                return leaving.decide_sync_time_out(group, initial_delay_ms=delay_ms, now_ms=now_ms)

    def on_image(self, delta: ImageDelta, now_ms: int) -> Effects:
        return NOTHING


def _missing(event: ClassicEvent) -> ErrorCode:
    """What is answered about a group that is not there."""
    answer = rule(State.DEAD, event)
    assert isinstance(answer, AnswerWith)
    return answer.error
