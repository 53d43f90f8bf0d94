"""A group of the consumer protocol, as the offsets see it: who may commit and fetch.

A member commits in its epoch and in no other. Members of the classic protocol in an upgraded group name their
epoch as generation and are refused in the words of that protocol.
"""

from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.kinds import Claim, Listed
from riverlog.coordinator.runtime.effects import NOTHING, CoordinatorRecord, Effects
from riverlog.model.errors import ErrorCode

_COMMIT_BY_EPOCH_SINCE = 9


class ConsumerMembership:
    def __init__(self, group: ConsumerGroup) -> None:
        self._group = group

    @property
    def is_empty(self) -> bool:
        return not self._group.members

    @property
    def listed(self) -> Listed:
        return Listed("consumer", self._group.state, "consumer")

    def refuse_commit(self, claim: Claim) -> ErrorCode | None:
        if claim.generation_or_epoch < 0 and (self.is_empty or claim.is_transactional):
            return None
        member = self._group.members.get(claim.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.classic is not None:
            is_current = claim.generation_or_epoch == member.epoch
            return None if is_current else ErrorCode.ILLEGAL_GENERATION
        if not claim.is_transactional and claim.version < _COMMIT_BY_EPOCH_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        return None if claim.generation_or_epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def refuse_commit_of(self, claim: Claim, topic: str, partition: int) -> ErrorCode | None:
        return None

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode | None:
        if member_id is None and member_epoch < 0:
            return None
        member = self._group.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return None if member.epoch == member_epoch else ErrorCode.STALE_MEMBER_EPOCH

    def refuse_offset_delete(self) -> ErrorCode | None:
        return None

    def is_subscribed(self, topic: str) -> bool:
        return topic in self._group.subscribed_topics()

    def offset_ages_from(self, topic: str, committed_ms: int) -> int | None:
        return committed_ms

    def decide_after_commit(self, claim: Claim, now_ms: int) -> Effects:
        """Only heartbeats keep a member alive."""
        return NOTHING

    def tombstones(self) -> tuple[CoordinatorRecord, ...]:
        return tuple(each.encoded() for each in records.group_tombstones(self._group.group_id))
