"""Committed offsets: who may commit, fetch and delete them, and when they expire. Pure decisions.

Offsets of a transaction are written at once but count when it commits; until then a reader who requires
stable offsets is told to wait. Offsets expire when the group they belong to no longer needs them, which the
kind of the group says. Not here: the state itself (`offset_table`) and its records (`offset_records`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from riverlog.coordinator.groups.kinds import SIMPLE_GROUP, Claim, Group
from riverlog.coordinator.groups.offsets.committed import CommittedOffset
from riverlog.coordinator.groups.offsets.copies import OffsetsCopy, find
from riverlog.coordinator.groups.offsets.records import commit_record, read_key, read_value, tombstone
from riverlog.coordinator.groups.offsets.requests import FoundOffsets, NewOffset, Verdicts
from riverlog.coordinator.groups.offsets.table import OffsetTable
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CoordinatorRecord,
    Effects,
    Reply,
    SetTimer,
    TimerKey,
    Token,
)
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition

_SWEPT_AT_ONCE: Final = 20_000
_GROUP_NOT_FOUND_SINCE: Final = 9

_END_OF_TIME_MS = 2**63 - 1
"""What a record can hold; a client may ask for any retention."""


class OffsetRules(NamedTuple):
    metadata_length_max: int = 4096
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    sweep_interval_ms: int = 10 * 60 * 1000

    @classmethod
    def of(cls, config: GroupConfig) -> "OffsetRules":
        return cls(
            config.offset_metadata_bytes_max,
            config.offsets_retention_ms,
            config.offsets_retention_check_interval_ms,
        )


@dataclass(frozen=True, slots=True)
class SweepTimer:
    """Time to look for offsets that have expired."""


class Groups(Protocol):
    """The shard, as far as offsets need it."""

    def group(self, group_id: str) -> Group | None: ...

    def group_ids(self) -> Iterable[str]: ...


class Offsets:
    def __init__(self, groups: Groups, rules: OffsetRules) -> None:
        self.table = OffsetTable()
        self._groups = groups
        self._rules = rules
        self._to_sweep: list[str] = []

    def has_any(self, group_id: str) -> bool:
        return self.table.has_any(group_id)

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdAndEpoch | None
    ) -> None:
        group_id, topic, partition = read_key(key)
        if value is None:
            self.table.apply_removal(group_id, topic, partition)
            return
        committed = read_value(value, offset)
        if producer is None:
            self.table.apply_commit(group_id, topic, partition, committed)
        else:
            self.table.apply_pending(producer.producer_id, group_id, topic, partition, committed)

    def replay_end_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        self.table.apply_end(producer.producer_id, committed=committed)

    def decide_commit(
        self,
        token: Token[Verdicts],
        group_id: str,
        claim: Claim,
        wanted: Sequence[NewOffset],
        now_ms: int,
        *,
        producer: ProducerIdAndEpoch | None = None,
    ) -> Effects:
        """Replies a verdict for each offset, or one error for all. With a producer: in its transaction."""
        group = self._groups.group(group_id)
        refusal = _refuse_missing(claim) if group is None else group.refuse_commit(claim)
        if refusal is not None:
            return Effects(replies=(Reply(token, refusal),))
        group = group or SIMPLE_GROUP
        verdicts: list[ErrorCode] = []
        records: list[CoordinatorRecord] = []
        for new in wanted:
            verdict = self._judge(new, group, claim)
            verdicts.append(verdict)
            if verdict is ErrorCode.NONE:
                records.append(commit_record(group_id, *new.at, _committed(new, now_ms)))
        answer = Effects(tuple(records), (Reply(token, tuple(verdicts)),), producer=producer)
        return answer + group.decide_after_commit(claim, now_ms)

    def _judge(self, new: NewOffset, group: Group, claim: Claim) -> ErrorCode:
        if _java_length(new.metadata) > self._rules.metadata_length_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return group.refuse_commit_of(claim, *new.at) or ErrorCode.NONE

    def fetch(
        self,
        group_id: str,
        wanted: Sequence[tuple[str, Sequence[int]]] | None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> FoundOffsets | ErrorCode:
        """What is committed for these partitions, or with None for all that there are."""
        group = self._groups.group(group_id)
        if group is not None and (refusal := group.refuse_fetch(member_id, member_epoch)) is not None:
            return refusal
        table = self.table
        return [
            (topic, [find(table, group_id, topic, each, require_stable) for each in partitions])
            for topic, partitions in (self._all_of(group_id) if wanted is None else wanted)
        ]

    def fetch_or_copy(
        self,
        group_id: str,
        wanted: Sequence[tuple[str, Sequence[int]]] | None,
        *,
        at_once_max: int,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> FoundOffsets | OffsetsCopy | ErrorCode:
        """As `fetch`; where there is more to tell than `at_once_max`, a copy by which it can be told."""
        wanted = self._all_of(group_id) if wanted is None else wanted
        is_long = sum([len(partitions) for _, partitions in wanted]) > at_once_max
        found = self.fetch(
            group_id,
            () if is_long else wanted,
            member_id=member_id,
            member_epoch=member_epoch,
            require_stable=require_stable,
        )
        if not is_long or isinstance(found, ErrorCode):
            return found
        return OffsetsCopy(self.table.copy_of(group_id), group_id, wanted, require_stable)

    def _all_of(self, group_id: str) -> list[tuple[str, Sequence[int]]]:
        return [(topic, list(partitions)) for topic, partitions in self.table.topics_of(group_id).items()]

    def decide_delete(
        self, token: Token[Verdicts], group_id: str, wanted: Sequence[TopicPartition]
    ) -> Effects:
        """Replies a verdict for each partition, or one error for all."""
        group = self._groups.group(group_id)
        refusal = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.refuse_offset_delete()
        if group is None or refusal is not None:
            return Effects(replies=(Reply(token, refusal),))
        verdicts: list[ErrorCode] = []
        records: list[CoordinatorRecord] = []
        for topic, partition in wanted:
            if group.is_subscribed(topic):
                verdicts.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            verdicts.append(ErrorCode.NONE)
            if self.table.get(group_id, topic, partition) is not None:
                records.append(tombstone(group_id, topic, partition))
        return Effects(tuple(records), (Reply(token, tuple(verdicts)),), is_atomic=False)

    def tombstones(self, group_id: str) -> tuple[CoordinatorRecord, ...]:
        """Records that remove every offset of a group, pending ones too, for a deletion of the group."""
        partitions = dict.fromkeys(at for at, _ in self.table.of_group(group_id))
        partitions.update(dict.fromkeys(self.table.pending_of(group_id)))
        return tuple(tombstone(group_id, *at) for at in partitions)

    def decide_topics_deleted(self, topics: Collection[str]) -> Effects:
        """The offsets of topics that are no more go with them."""
        records = [
            tombstone(group_id, *at)
            for group_id in self.table.group_ids()
            for at in dict.fromkeys(
                (*(at for at, _ in self.table.of_group(group_id)), *self.table.pending_of(group_id))
            )
            if at.topic in topics
        ]
        return Effects(tuple(records), is_atomic=False) if records else NOTHING

    def on_loaded(self, now_ms: int) -> Effects:
        return Effects(timers=(SetTimer(SweepTimer(), self._rules.sweep_interval_ms),))

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects | None:
        return self._sweep(now_ms) if isinstance(key, SweepTimer) else None

    def _sweep(self, now_ms: int) -> Effects:
        """Expire what is due, some groups at a time so that requests do not wait for all of them."""
        if not self._to_sweep:
            self._to_sweep = sorted(self._groups.group_ids())
        records: list[CoordinatorRecord] = []
        looked_at = 0
        while self._to_sweep and looked_at < _SWEPT_AT_ONCE:
            group_id = self._to_sweep.pop()
            group = self._groups.group(group_id)
            if group is not None:
                looked_at += 1 + sum(map(len, self.table.topics_of(group_id).values()))
                records += self._expired(group_id, group, now_ms)
        delay_ms = 0 if self._to_sweep else self._rules.sweep_interval_ms
        return Effects(tuple(records), timers=(SetTimer(SweepTimer(), delay_ms),), is_atomic=False)

    def _expired(self, group_id: str, group: Group, now_ms: int) -> list[CoordinatorRecord]:
        records: list[CoordinatorRecord] = []
        is_all = True
        for at, committed in self.table.of_group(group_id):
            if self._is_expired(group_id, group, at, committed, now_ms):
                records.append(tombstone(group_id, *at))
            else:
                is_all = False
        if is_all and group.is_empty and not self.table.pending_of(group_id):
            records += group.tombstones()
        return records

    def _is_expired(
        self, group_id: str, group: Group, at: TopicPartition, committed: CommittedOffset, now_ms: int
    ) -> bool:
        ages_from_ms = group.offset_ages_from(at.topic, committed.committed_ms)
        if (
            ages_from_ms is None
            or group.is_subscribed(at.topic)
            or self.table.is_pending(group_id, at.topic, at.partition)
        ):
            return False
        if committed.expires_ms is not None:
            return now_ms >= committed.expires_ms
        return now_ms - ages_from_ms >= self._rules.retention_ms


def _refuse_missing(claim: Claim) -> ErrorCode | None:
    """A client that claims no membership may commit to a group that does not exist, which creates it."""
    if claim.generation_or_epoch < 0:
        return None
    if claim.is_transactional or claim.version < _GROUP_NOT_FOUND_SINCE:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.GROUP_ID_NOT_FOUND


def _committed(new: NewOffset, now_ms: int) -> CommittedOffset:
    expires_ms = None if new.retention_ms is None else min(now_ms + new.retention_ms, _END_OF_TIME_MS)
    return CommittedOffset(new.offset, new.leader_epoch, new.metadata, now_ms, expires_ms, new.topic_id, -1)


def _java_length(text: str) -> int:
    """In UTF-16 code units, which is what Kafka bounds."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
