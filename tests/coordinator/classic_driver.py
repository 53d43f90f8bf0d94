"""A classic group outside the runtime: requests in, answers and timers out, on a time that the test sets.

Carries effects out in the runtime's order and can refuse to write. `session`, `join` and `sync` timers go off
when the test lets the time pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from riverlog.coordinator.formats.classic_groups import GroupMetadataKey, GroupMetadataValue
from riverlog.coordinator.formats.formats import GroupRecord, decode_key, decode_value
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.groups import ClassicGroups
from riverlog.coordinator.groups.classic.requests import (
    Beat,
    Joined,
    Joining,
    Leaver,
    MemberProtocol,
    Protocols,
    Synced,
    Syncing,
    Verdicts,
)
from riverlog.coordinator.runtime.effects import (
    CancelTimer,
    CoordinatorRecord,
    Effects,
    SetTimer,
    TimerKey,
    Token,
)
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode

START_MS = 1_800_000_000_000
GROUP = "g"
RANGE: Protocols = (MemberProtocol("range", b"r"), MemberProtocol("roundrobin", b"rr"))


@dataclass
class Driver:
    config: GroupConfig = field(default_factory=lambda: GroupConfig(initial_rebalance_delay_ms=0))
    log: list[CoordinatorRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now_ms = START_MS
        self.answers: dict[int, Any] = {}
        self.timers: dict[TimerKey, int] = {}
        self.write_error: ErrorCode | None = None
        self._numbers = count(1)
        self._ids = count(1)
        self.load()

    def load(self) -> None:
        """Begin anew from the log, as after a restart."""
        self.groups = ClassicGroups(self.config)
        self.timers.clear()
        for each in self.log:
            replay_record(self.groups, each)
        self.carry_out(self.groups.on_loaded(self.now_ms))

    @property
    def group(self) -> ClassicGroup:
        found = self.groups.get(GROUP)
        assert found is not None
        return found

    def carry_out(self, effects: Effects) -> None:
        error = self.write_error if effects.records else None
        if error is None:
            for each in effects.records:
                self.log.append(each)
                replay_record(self.groups, each)
            for timer in effects.timers:
                match timer:
                    case SetTimer(key=key, delay_ms=delay_ms):
                        self.timers[key] = self.now_ms + delay_ms
                    case CancelTimer(key=key):
                        self.timers.pop(key, None)
        for token, answer in effects.replies:
            assert token.number not in self.answers, "answered twice"
            self.answers[token.number] = answer if error is None else error
        for follow_up in effects.follow_ups:
            followed = self.groups.on_committed(follow_up, error, self.now_ms)
            assert followed is not None
            self.carry_out(followed)

    def run(self, decide: Callable[[Token[Any], int], Effects]) -> int:
        token: Token[Any] = Token(next(self._numbers))
        self.carry_out(decide(token, self.now_ms))
        return token.number

    def pass_time(self, ms: int) -> None:
        """Let timers go off in their order."""
        end_ms = self.now_ms + ms
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=lambda key: self.timers[key])
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            effects = self.groups.on_timer(key, self.now_ms)
            assert effects is not None
            if effects.records and self.write_error is not None:
                self.timers[key] = self.now_ms + 500
            self.carry_out(effects)
        self.now_ms = end_ms

    # Requests; each gives the number of its answer.

    def send_join(
        self, member_id: str = "", protocols: Protocols = RANGE, *, version: int = 9, **more: Any
    ) -> int:
        fields = {"protocol_type": "consumer", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
        request = Joining(
            group_id=GROUP,
            member_id=member_id,
            new_member_id=f"m{next(self._ids)}" if not member_id else "unused",
            protocols=protocols,
            version=version,
            **{**fields, **more},
        )
        return self.run(lambda token, now_ms: self.groups.decide_join(token, request, now_ms))

    def send_sync(self, member_id: str, generation: int, **more: Any) -> int:
        request = Syncing(GROUP, member_id, generation, **more)
        return self.run(lambda token, now_ms: self.groups.decide_sync(token, request, now_ms))

    def join(self, member_id: str = "", protocols: Protocols = RANGE, **more: Any) -> Joined:
        number = self.send_join(member_id, protocols, **more)
        self.pass_time(0)
        answer = self.answers.pop(number)
        assert isinstance(answer, Joined)
        return answer

    def sync(self, member_id: str, generation: int, **more: Any) -> Synced:
        answer = self.answers.pop(self.send_sync(member_id, generation, **more))
        assert isinstance(answer, Synced)
        return answer

    def beat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        beat = Beat(GROUP, member_id, generation, instance_id)
        answer = self.answers.pop(
            self.run(lambda token, now_ms: self.groups.decide_heartbeat(token, beat, now_ms))
        )
        assert isinstance(answer, ErrorCode)
        return answer

    def leave(self, *leavers: Leaver) -> Verdicts | ErrorCode:
        answer = self.answers.pop(
            self.run(lambda token, now_ms: self.groups.decide_leave(token, GROUP, leavers, now_ms))
        )
        assert isinstance(answer, tuple | ErrorCode)
        return answer

    # Usual beginnings.

    def new_member(self, **more: Any) -> str:
        """An id that has been given out and not yet been used."""
        return self.join(**more).member_id

    def stable(self, members: int = 1, **more: Any) -> list[str]:
        """A stable group of so many members, each with its own id as its assignment."""
        ids = [self.new_member(**more) for _ in range(members)]
        numbers = [self.send_join(each, **more) for each in ids]
        self.pass_time(0)
        if members > 1 and not all(number in self.answers for number in numbers):
            raise AssertionError("they have not all joined in one generation")
        generation = self.answers[numbers[0]].generation
        given = {each: each.encode() for each in ids}
        leader = self.group.leader
        assert leader is not None
        for each in [leader, *(each for each in ids if each != leader)]:
            assert self.sync(each, generation, assignments=given).assignment == each.encode()
        for number in numbers:
            self.answers.pop(number)
        return ids


def replay_record(groups: ClassicGroups, record: CoordinatorRecord) -> None:
    value = None if record.value is None else decode_value(GroupMetadataValue, record.value)
    groups.replay(
        GroupRecord.GROUP_METADATA,
        decode_key(GroupMetadataKey, record.key),
        value,
        offset=0,
        timestamp_ms=0,
    )
