"""Who may commit, fetch and delete offsets, and when they expire: decisions compared as values."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from riverlog.coordinator.groups.kinds import Claim, Group, SimpleGroup
from riverlog.coordinator.groups.offsets.offsets import OffsetRules, Offsets, SweepTimer
from riverlog.coordinator.groups.offsets.records import read_key, tombstone
from riverlog.coordinator.groups.offsets.requests import FoundOffset, NewOffset, Verdicts
from riverlog.coordinator.runtime.effects import NOTHING, CoordinatorRecord, Effects, Reply, SetTimer, Token
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicId, TopicPartition

TOKEN: Token[Verdicts] = Token(1)
NOW = 1_800_000_000_000
HOUR = 3_600_000
RULES = OffsetRules(metadata_length_max=10, retention_ms=24 * HOUR, sweep_interval_ms=600_000)
AT = TopicPartition("orders", 0)


@dataclass
class Watched(SimpleGroup):
    """A group whose answers the test sets."""

    refusal: ErrorCode | None = None
    refused_partition: int | None = None
    subscribed: str = ""
    empty_since_ms: int | None = None
    is_empty: bool = True

    def refuse_commit(self, claim: Claim) -> ErrorCode | None:
        return self.refusal

    def refuse_commit_of(self, claim: Claim, topic: str, partition: int) -> ErrorCode | None:
        return ErrorCode.STALE_MEMBER_EPOCH if partition == self.refused_partition else None

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode | None:
        return self.refusal

    def refuse_offset_delete(self) -> ErrorCode | None:
        return self.refusal

    def is_subscribed(self, topic: str) -> bool:
        return topic == self.subscribed

    def offset_ages_from(self, topic: str, committed_ms: int) -> int | None:
        return self.empty_since_ms

    def decide_after_commit(self, claim: Claim, now_ms: int) -> Effects:
        return Effects(timers=(SetTimer("session", 45_000),))

    def tombstones(self) -> tuple[CoordinatorRecord, ...]:
        return (CoordinatorRecord(b"group", None),)


class Groups:
    """Groups with members, and whatever has offsets."""

    def __init__(self, **groups: Group) -> None:
        self.groups = groups
        self.offsets = Offsets(self, RULES)
        self._next_offset = 0

    def group(self, group_id: str) -> Group | None:
        found = self.groups.get(group_id)
        return found or (SimpleGroup() if self.offsets.has_any(group_id) else None)

    def group_ids(self) -> list[str]:
        return sorted({*self.groups, *self.offsets.table.group_ids()})

    def carry_out(self, effects: Effects) -> Effects:
        for key, value in effects.records:
            if key != b"group":
                self.offsets.replay(key, value, offset=self._next_offset, producer=effects.producer)
            self._next_offset += 1
        return effects

    def commit(
        self,
        *wanted: NewOffset,
        claim: Claim = Claim(),  # noqa: B008 - a frozen value
        group: str = "g",
        now_ms: int = NOW,
        producer: ProducerIdAndEpoch | None = None,
    ) -> Verdicts | ErrorCode:
        effects = self.offsets.decide_commit(TOKEN, group, claim, wanted, now_ms, producer=producer)
        [(token, verdicts)] = self.carry_out(effects).replies
        assert token is TOKEN
        assert isinstance(verdicts, ErrorCode | tuple)
        return verdicts

    def found(self, *, stable: bool = False, at: TopicPartition = AT, group: str = "g") -> FoundOffset:
        answer = self.offsets.fetch(group, [(at.topic, [at.partition])], require_stable=stable)
        assert not isinstance(answer, ErrorCode)
        [(topic, [found])] = answer
        assert topic == at.topic
        return found

    def sweep(self, now_ms: int) -> list[CoordinatorRecord]:
        effects = self.offsets.on_timer(SweepTimer(), now_ms)
        assert effects is not None
        assert effects.timers == (SetTimer(SweepTimer(), 600_000),)
        assert not effects.is_atomic
        self.carry_out(effects)
        return list(effects.records)


def test_anybody_may_commit_to_a_group_without_members() -> None:
    groups = Groups()
    assert groups.commit(NewOffset(AT, 42, LeaderEpoch(3), "note", TopicId(UUID(int=5)))) == (ErrorCode.NONE,)
    assert groups.found() == FoundOffset(0, 42, LeaderEpoch(3), "note")
    assert groups.commit(NewOffset(AT, 41)) == (ErrorCode.NONE,)
    assert groups.found() == FoundOffset(0, 41)


@pytest.mark.parametrize(
    ("version", "is_transactional", "error"),
    [
        (8, False, ErrorCode.ILLEGAL_GENERATION),
        (9, False, ErrorCode.GROUP_ID_NOT_FOUND),
        (10, True, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_member_cannot_commit_to_a_group_that_is_not_there(
    version: int, is_transactional: bool, error: ErrorCode
) -> None:
    claim = Claim("member", None, 3, is_transactional, version)
    assert Groups().commit(NewOffset(AT, 1), claim=claim) is error


def test_a_member_cannot_commit_to_a_group_without_members() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 1))
    assert groups.commit(NewOffset(AT, 2), claim=Claim("m", None, 3)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.found().offset == 1


def test_the_group_decides_who_may_commit_and_is_told_of_it() -> None:
    groups = Groups(g=Watched())
    effects = groups.offsets.decide_commit(TOKEN, "g", Claim("m", None, 1), [NewOffset(AT, 1)], NOW)
    assert effects.timers == (SetTimer("session", 45_000),)
    refusing = Groups(g=Watched(refusal=ErrorCode.REBALANCE_IN_PROGRESS))
    assert refusing.offsets.decide_commit(
        TOKEN, "g", Claim("m", None, 1), [NewOffset(AT, 1)], NOW
    ) == Effects(replies=(Reply(TOKEN, ErrorCode.REBALANCE_IN_PROGRESS),))


def test_each_partition_is_judged_by_itself() -> None:
    groups = Groups(g=Watched(refused_partition=1))
    wanted = [
        NewOffset(TopicPartition("orders", 0), 5, metadata="0123456789"),
        NewOffset(TopicPartition("orders", 1), 5),
        NewOffset(TopicPartition("orders", 2), 5, metadata="0123456789x"),
        NewOffset(TopicPartition("orders", 3), 5, metadata="12345678😀"),
        NewOffset(TopicPartition("orders", 4), 5, metadata="123456789😀"),
    ]
    assert groups.commit(*wanted) == (
        ErrorCode.NONE,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    )
    answer = groups.offsets.fetch("g", None)
    assert not isinstance(answer, ErrorCode)
    assert {each.partition for _, found in answer for each in found} == {0, 3}


def test_offsets_that_were_never_committed_are_absent_but_no_error() -> None:
    assert Groups().offsets.fetch("g", [("orders", [0, 7])]) == [("orders", [FoundOffset(0), FoundOffset(7)])]
    assert Groups().offsets.fetch("g", None) == []


def test_the_group_decides_who_may_fetch() -> None:
    groups = Groups(g=Watched(refusal=ErrorCode.STALE_MEMBER_EPOCH))
    assert groups.offsets.fetch("g", None, member_id="m", member_epoch=1) is ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 10))
    groups.commit(NewOffset(AT, 20), producer=ProducerIdAndEpoch(7, 0), claim=Claim(is_transactional=True))
    assert groups.found().offset == 10
    assert groups.found(stable=True) == FoundOffset(0, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(7, 0), committed=True)
    assert groups.found(stable=True).offset == 20


def test_offsets_of_an_aborted_transaction_never_were() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 20), producer=ProducerIdAndEpoch(7, 0), claim=Claim(is_transactional=True))
    assert groups.found(stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(7, 0), committed=False)
    assert groups.found(stable=True) == FoundOffset(0)
    assert not groups.offsets.has_any("g")


def test_a_later_commit_outside_the_transaction_wins() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 20), producer=ProducerIdAndEpoch(7, 0), claim=Claim(is_transactional=True))
    groups.commit(NewOffset(AT, 5))
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(7, 0), committed=True)
    assert groups.found(stable=True).offset == 5


def test_another_producer_keeps_a_partition_unstable() -> None:
    groups = Groups()
    for producer_id in (7, 8):
        groups.commit(
            NewOffset(AT, producer_id),
            producer=ProducerIdAndEpoch(producer_id, 0),
            claim=Claim(is_transactional=True),
        )
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(7, 0), committed=True)
    assert groups.found(stable=True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(8, 0), committed=True)
    assert groups.found(stable=True).offset == 8


def test_deleting_needs_a_group_and_spares_what_is_read() -> None:
    groups = Groups()
    assert groups.offsets.decide_delete(TOKEN, "g", [AT]).replies[0].answer is ErrorCode.GROUP_ID_NOT_FOUND
    groups.groups["g"] = Watched(subscribed="orders")
    groups.commit(NewOffset(AT, 1), NewOffset(TopicPartition("other", 0), 1))
    effects = groups.offsets.decide_delete(
        TOKEN, "g", [AT, TopicPartition("other", 0), TopicPartition("other", 9)]
    )
    assert effects.replies[0].answer == (
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.NONE,
        ErrorCode.NONE,
    )
    assert effects.records == (tombstone("g", "other", 0),)
    groups.groups["g"] = Watched(refusal=ErrorCode.NON_EMPTY_GROUP)
    assert groups.offsets.decide_delete(TOKEN, "g", [AT]).replies[0].answer is ErrorCode.NON_EMPTY_GROUP


def test_offsets_go_with_their_topic_also_pending_ones() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 1), NewOffset(TopicPartition("kept", 0), 1))
    groups.commit(
        NewOffset(AT, 2), producer=ProducerIdAndEpoch(7, 0), claim=Claim(is_transactional=True), group="h"
    )
    effects = groups.carry_out(groups.offsets.decide_topics_deleted({"orders"}))
    assert {read_key(record.key) for record in effects.records} == {("g", "orders", 0), ("h", "orders", 0)}
    groups.offsets.replay_end_marker(ProducerIdAndEpoch(7, 0), committed=True)
    assert groups.offsets.table.group_ids() == {"g"}
    assert groups.offsets.decide_topics_deleted({"orders"}) is NOTHING


def test_offsets_of_a_group_without_members_expire_after_their_commit() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 1))
    groups.commit(NewOffset(TopicPartition("orders", 1), 1), now_ms=NOW + HOUR)
    assert groups.sweep(NOW + 24 * HOUR - 1) == []
    assert groups.sweep(NOW + 24 * HOUR) == [tombstone("g", "orders", 0)]
    assert groups.sweep(NOW + 25 * HOUR) == [tombstone("g", "orders", 1)]
    assert groups.group("g") is None


def test_offsets_age_from_when_the_group_says_and_take_an_empty_group_with_them() -> None:
    watched = Watched()
    groups = Groups(g=watched)
    groups.commit(NewOffset(AT, 1))
    assert groups.sweep(NOW + 1000 * HOUR) == []
    watched.empty_since_ms = NOW + 1000 * HOUR
    watched.subscribed = "orders"
    assert groups.sweep(NOW + 1024 * HOUR) == []
    watched.subscribed = ""
    watched.is_empty = False
    assert groups.sweep(NOW + 1024 * HOUR) == [tombstone("g", "orders", 0)]
    watched.is_empty = True
    assert groups.sweep(NOW + 1024 * HOUR) == [CoordinatorRecord(b"group", None)]


def test_an_offset_with_a_retention_of_its_own_expires_by_it() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 1, retention_ms=1000))
    assert groups.sweep(NOW + 999) == []
    assert groups.sweep(NOW + 1000) == [tombstone("g", "orders", 0)]


def test_an_offset_that_a_transaction_may_yet_change_does_not_expire() -> None:
    groups = Groups()
    groups.commit(NewOffset(AT, 1))
    groups.commit(NewOffset(AT, 2), producer=ProducerIdAndEpoch(7, 0), claim=Claim(is_transactional=True))
    assert groups.sweep(NOW + 1000 * HOUR) == []


def test_a_long_sweep_is_taken_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.coordinator.groups.offsets.offsets._SWEPT_AT_ONCE", 3)
    groups = Groups()
    for number in range(5):
        groups.commit(NewOffset(AT, 1), group=f"g{number}")
    swept = 0
    delays = []
    for _ in range(3):
        effects = groups.offsets.on_timer(SweepTimer(), NOW + 1000 * HOUR)
        assert effects is not None
        swept += len(groups.carry_out(effects).records)
        [timer] = effects.timers
        assert isinstance(timer, SetTimer)
        delays.append(timer.delay_ms)
    assert (swept, delays) == (5, [0, 0, 600_000])
