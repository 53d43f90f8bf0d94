"""One classic group as it stands: what its record says, and the rebalance that goes on meanwhile.

`stored` is hard state and changes in `apply_stored` alone; the rest is soft and belongs to decisions. Between
rebalances (`STABLE`, `EMPTY`) generation, leader, members and assignments are those of `stored`. During one
they run ahead of it; what a crash loses of that, the members repeat. No decisions here.
"""

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.member import Member, member_from
from riverlog.coordinator.groups.classic.records import StoredGroup, tombstone_of
from riverlog.coordinator.groups.classic.requests import ClassicSessionTimer, MemberProtocol, Protocols
from riverlog.coordinator.groups.classic.states import ClassicEvent, State, rule
from riverlog.coordinator.groups.kinds import Claim, Listed
from riverlog.coordinator.runtime.effects import NOTHING, CoordinatorRecord, Effects, SetTimer
from riverlog.coordinator.runtime.rules import AnswerWith
from riverlog.model.errors import ErrorCode


class ClassicGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.stored: StoredGroup | None = None
        """None until its first record is written."""
        self.state = State.EMPTY
        self.came_from = State.DEAD
        self.state_since_ms: int | None = None
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        self.pending: set[str] = set()
        """Ids that were given out and not yet joined with."""
        self.unsynced: set[str] = set()
        """Members of this generation that have not asked for their assignment."""
        self.has_newcomers = False
        """A member has joined since the first rebalance was last put off."""
        self.delay_left_ms = 0
        """For how long the first rebalance may still be put off."""
        self.replacement: Member | None = None
        """Takes the place of the static member of its instance when the record is written."""
        self.subscribed: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the most patient member allows."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def protocols(self) -> list[Protocols]:
        return [member.protocols for member in self.members.values()]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member that knows these protocols fits in."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        known = classic_protocols.common(self.protocols)
        return protocol_type == self.protocol_type and any(each.name in known for each in protocols)

    def refuse_member(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        """Why a client that claims this membership is not a member."""
        if instance_id is not None:
            owner = self.instances.get(instance_id)
            if owner is not None and owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def enter(self, state: State, now_ms: int) -> None:
        self.came_from, self.state = self.state, state
        self.state_since_ms = now_ms

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.pending.discard(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member:
        member = self.members.pop(member_id)
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]
        self.unsynced.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, member: Member, new_id: str) -> None:
        """A static member has come back under a new id; it keeps its place among the members."""
        old_id, member.member_id = member.member_id, new_id
        self.members = {each.member_id: each for each in self.members.values()}
        if member.instance_id is not None:
            self.instances[member.instance_id] = new_id
        self.unsynced.discard(old_id)
        if self.leader == old_id:
            self.leader = new_id

    def note_subscriptions(self) -> None:
        self.subscribed = (
            classic_protocols.subscribed_topics(
                member.metadata(self.protocol) for member in self.members.values()
            )
            if self.protocol_type == classic_protocols.CONSUMER
            else None
        )

    def session_timer(self, member: Member) -> SetTimer:
        return SetTimer(ClassicSessionTimer(self.group_id, member.member_id), member.session_timeout_ms)

    def apply_stored(self, stored: StoredGroup) -> None:
        """Take a record over: one of the past when loading, or the one that was decided just now."""
        is_new = self.stored is None and not self.pending
        if not self.members and (is_new or self.state is State.PREPARING_REBALANCE):
            self._begin_from(stored)
        elif self.state is State.COMPLETING_REBALANCE and stored.generation == self.generation:
            for member in stored.members:
                self.members[member.member_id].assignment = member.assignment
                self.members[member.member_id].syncing = None
            self.came_from, self.state = self.state, State.STABLE
            self.state_since_ms = stored.state_since_ms
        elif self.state is State.STABLE:
            self._apply_replacement(stored)
        self.stored = stored

    def _begin_from(self, stored: StoredGroup) -> None:
        self.came_from, self.state = self.state, State.STABLE if stored.members else State.EMPTY
        self.state_since_ms = stored.state_since_ms
        self.generation = stored.generation
        self.protocol_type, self.protocol = stored.protocol_type, stored.protocol
        self.leader = None
        for member in stored.members:
            self.add(member_from(member, stored.protocol), stored.protocol_type or "")
        self.leader = stored.leader
        self.note_subscriptions()

    def _apply_replacement(self, stored: StoredGroup) -> None:
        for member in stored.members:
            if member.member_id not in self.members and member.instance_id is not None:
                present = self.members[self.instances[member.instance_id]]
                self.rename(present, member.member_id)
                present.session_timeout_ms = member.session_timeout_ms
                present.rebalance_timeout_ms = member.rebalance_timeout_ms
                present.protocols = (MemberProtocol(stored.protocol or "", member.subscription),)
                if self.replacement is not None and self.replacement.member_id == member.member_id:
                    present.protocols = self.replacement.protocols
        self.replacement = None
        self.note_subscriptions()

    # What offsets and administrators ask.

    @property
    def listed(self) -> Listed:
        return Listed("classic", self.state.value, self.protocol_type or "")

    def refuse_commit(self, claim: Claim) -> ErrorCode | None:
        is_member = claim.generation_or_epoch >= 0 or claim.member_id or claim.instance_id is not None
        if claim.generation_or_epoch < 0 and (self.state is State.EMPTY or not is_member):
            is_transactional = claim.is_transactional
            event = (
                ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION
                if is_transactional
                else ClassicEvent.COMMIT_OUTSIDE
            )
        else:
            refusal = self.refuse_member(claim.member_id, claim.instance_id)
            if refusal is not None:
                return refusal
            if claim.generation_or_epoch != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
            event = ClassicEvent.COMMIT_IN_TRANSACTION if claim.is_transactional else ClassicEvent.COMMIT
        answer = rule(self.state, event)
        assert isinstance(answer, AnswerWith)
        return None if answer.error is ErrorCode.NONE else answer.error

    def refuse_commit_of(self, claim: Claim, topic: str, partition: int) -> ErrorCode | None:
        return None

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode | None:
        return None

    def refuse_offset_delete(self) -> ErrorCode | None:
        if self.state is State.EMPTY or self.protocol_type == classic_protocols.CONSUMER:
            return None
        return ErrorCode.NON_EMPTY_GROUP

    def is_subscribed(self, topic: str) -> bool:
        return self.subscribed is not None and topic in self.subscribed

    def offset_ages_from(self, topic: str, committed_ms: int) -> int | None:
        if self.protocol_type is None:
            return committed_ms
        if self.state is State.EMPTY:
            return committed_ms if self.state_since_ms is None else self.state_since_ms
        is_known = self.state is State.STABLE and self.subscribed is not None
        return committed_ms if is_known else None

    def decide_after_commit(self, claim: Claim, now_ms: int) -> Effects:
        member = self.members.get(claim.member_id)
        if member is None or claim.is_transactional or self.state is State.COMPLETING_REBALANCE:
            return NOTHING
        return Effects(timers=(self.session_timer(member),))

    def tombstones(self) -> tuple[CoordinatorRecord, ...]:
        return (tombstone_of(self.group_id),)
