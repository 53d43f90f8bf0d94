"""Every state of a classic group and everything that can happen in it, taken from the table."""

from collections.abc import Callable
from typing import Any

import pytest

from riverlog.coordinator.groups.classic_requests import (
    Joined,
    JoinTimer,
    Leaver,
    MemberProtocol,
    Protocols,
    SessionTimer,
    Synced,
    SyncTimer,
)
from riverlog.coordinator.groups.classic_states import (
    TABLE,
    Answer,
    Event,
    Goto,
    Ignore,
    Impossible,
    Rule,
    State,
    Tell,
)
from riverlog.coordinator.groups.membership import Claim
from riverlog.coordinator.groups.offsets import OffsetRules, Offsets
from riverlog.model.errors import ErrorCode
from tests.coordinator.classic_driver import GROUP, RANGE, Driver, replay_record

CHANGED: Protocols = (MemberProtocol("range", b"new"), MemberProtocol("roundrobin", b"rr"))
OTHER_CHOICE: Protocols = (MemberProtocol("roundrobin", b"rr"),)


class Scene:
    """A group in a state, with a leader, a follower and, where the event needs it, a static member."""

    def __init__(self, state: State) -> None:
        self.driver = Driver()
        self.state = state
        self.leader = self.follower = "nobody"
        self.pending = "nobody"
        {
            State.DEAD: lambda: None,
            State.EMPTY: self._empty,
            State.PREPARING_REBALANCE: self._preparing,
            State.COMPLETING_REBALANCE: self._completing,
            State.STABLE: self._stable,
        }[state]()
        assert self.present is state

    @property
    def present(self) -> State:
        group = self.driver.groups.get(GROUP)
        return State.DEAD if group is None else group.state

    @property
    def generation(self) -> int:
        return 1 if self.state is State.DEAD else self.driver.group.generation

    def _empty(self) -> None:
        [only] = self.driver.stable()
        self.driver.leave(Leaver(only))
        self.pending = self.driver.new_member()

    def _stable(self) -> None:
        self.leader, self.follower, self.static = self._three()
        for each in (self.leader, self.follower, self.static):
            self.driver.sync(each, 1, assignments={self.leader: b"all"})
        self.pending = self.driver.new_member()

    def _preparing(self) -> None:
        self._stable()
        self.driver.send_join(self.leader)

    def _completing(self) -> None:
        self.leader, self.follower, self.static = self._three()
        self.pending = self.driver.new_member()

    def _three(self) -> tuple[str, str, str]:
        ids = [self.driver.new_member() for _ in range(2)]
        waiting = [self.driver.send_join(each) for each in ids]
        static = self.driver.join(instance_id="i")
        assert static.error is ErrorCode.NONE
        answers = [self.driver.answers.pop(each) for each in waiting]
        assert {each.generation for each in answers} == {static.generation}
        leader = str(self.driver.group.leader)
        [follower] = [each for each in ids if each != leader]
        return leader, follower, static.member_id

    # What happens, and the error that it is answered with; None: not answered (yet).

    def do(self, event: Event) -> ErrorCode | Joined | Synced | None:
        return _DOING[event](self)

    def join(self, member_id: str = "", protocols: Protocols = RANGE, **more: Any) -> Joined | None:
        number = self.driver.send_join(member_id, protocols, **more)
        answer = self.driver.answers.get(number)
        return answer if isinstance(answer, Joined) else None

    def sync(self, member_id: str) -> Synced | None:
        number = self.driver.send_sync(member_id, self.generation, assignments={self.follower: b"f"})
        answer = self.driver.answers.get(number)
        return answer if isinstance(answer, Synced) else None

    def ring(self, key: SessionTimer | JoinTimer | SyncTimer) -> None:
        effects = self.driver.groups.on_timer(key, self.driver.now_ms)
        assert effects is not None
        self.driver.carry_out(effects)

    def all_joined(self) -> None:
        if self.state is State.PREPARING_REBALANCE:
            self.driver.leave(Leaver(self.pending))
            self.driver.send_join(self.follower)
            self.driver.send_join(self.static, instance_id="i")
        else:
            self.ring(JoinTimer(GROUP))

    def nobody_left(self) -> None:
        if self.state is State.PREPARING_REBALANCE:
            self.driver.leave(
                Leaver(self.leader), Leaver(self.follower), Leaver("", "i"), Leaver(self.pending)
            )
        else:
            self.ring(JoinTimer(GROUP))

    def commit(self, claim: Claim) -> ErrorCode:
        group = self.driver.groups.get(GROUP)
        if group is None:
            offsets = Offsets(_NoGroups(), OffsetRules())
            number = self.driver.run(
                lambda token, now_ms: offsets.decide_commit(token, GROUP, claim, [], now_ms)
            )
            answer = self.driver.answers[number]
            return ErrorCode.NONE if answer == () else answer
        return group.refuse_commit(claim) or ErrorCode.NONE

    def leave(self) -> ErrorCode:
        verdicts = self.driver.leave(Leaver(self.follower))
        assert isinstance(verdicts, tuple)
        return verdicts[0]

    def delete(self) -> ErrorCode:
        group = self.driver.groups.get(GROUP)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        for record in group.tombstones():
            replay_record(self.driver.groups, record)
        return ErrorCode.NONE

    def expire(self) -> None:
        """The offsets ask a group only when it is empty."""
        group = self.driver.groups.get(GROUP)
        if group is not None and group.is_empty:
            self.delete()


class _NoGroups:
    def group(self, group_id: str) -> None:
        return None

    def group_ids(self) -> list[str]:
        return []


def _nothing(_: object) -> None:
    """Whoever brings a group about is answered by what comes next, not by this."""


_DOING: dict[Event, Callable[[Scene], ErrorCode | Joined | Synced | None]] = {
    Event.CREATE: lambda scene: _nothing(scene.join("", ())),
    Event.ASK_ID: lambda scene: scene.join(),
    Event.JOIN: lambda scene: scene.join(scene.pending),
    Event.REJOIN_SAME: lambda scene: scene.join(scene.follower),
    Event.REJOIN_LEADER: lambda scene: scene.join(scene.leader),
    Event.REJOIN_CHANGED: lambda scene: scene.join(scene.follower, CHANGED),
    Event.REPLACE_SAME: lambda scene: scene.join(instance_id="i"),
    Event.REPLACE_CHANGED: lambda scene: scene.join("", OTHER_CHOICE, instance_id="i"),
    Event.SYNC: lambda scene: scene.sync(scene.follower),
    Event.SYNC_LEADER: lambda scene: scene.sync(scene.leader),
    Event.HEARTBEAT: lambda scene: scene.driver.beat(scene.follower, scene.generation),
    Event.MEMBER_GONE: lambda scene: scene.leave(),
    Event.PENDING_GONE: lambda scene: scene.ring(SessionTimer(GROUP, scene.pending)),
    Event.ALL_JOINED: lambda scene: scene.all_joined(),
    Event.NOBODY_LEFT: lambda scene: scene.nobody_left(),
    Event.SYNC_TIME_OUT: lambda scene: _sync_time_out(scene),
    Event.COMMIT: lambda scene: scene.commit(Claim(scene.follower, None, scene.generation, version=9)),
    Event.COMMIT_IN_TRANSACTION: lambda scene: scene.commit(
        Claim(scene.follower, None, scene.generation, is_transactional=True, version=9)
    ),
    Event.COMMIT_OUTSIDE: lambda scene: scene.commit(Claim()),
    Event.COMMIT_OUTSIDE_IN_TRANSACTION: lambda scene: scene.commit(Claim(is_transactional=True)),
    Event.DELETE: lambda scene: scene.delete(),
    Event.EXPIRE: lambda scene: scene.expire(),
}


def _sync_time_out(scene: Scene) -> None:
    if scene.state is State.STABLE:
        # The follower of the next generation is silent; the leader has handed in.
        scene.driver.group.unsynced.add(scene.follower)
    scene.ring(SyncTimer(GROUP))


PAIRS = [(state, event, TABLE[state][event]) for state in State for event in Event]


def test_every_pair_is_listed() -> None:
    assert set(TABLE) == set(State)
    for state, events in TABLE.items():
        assert set(events) == set(Event), state


def test_every_event_can_be_made() -> None:
    assert set(_DOING) == set(Event)


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [pair for pair in PAIRS if not isinstance(pair[2], Impossible)],
    ids=lambda each: each.name if isinstance(each, State | Event) else "",
)
def test_a_group_does_as_the_table_says(state: State, event: Event, expected: Rule) -> None:
    scene = Scene(state)
    answer = scene.do(event)
    error = answer if isinstance(answer, ErrorCode | None) else answer.error
    match expected:
        case Goto(state=after):
            assert error in (None, ErrorCode.NONE)
            assert scene.present is after
        case Answer(error=told):
            assert error is told
            assert scene.present is state
        case Tell():
            assert error is ErrorCode.NONE
            assert isinstance(answer, Joined | Synced)
            assert scene.present is state
        case Ignore():
            assert answer is None
            assert scene.present is state
        case Impossible():
            raise AssertionError


@pytest.mark.parametrize(
    ("state", "event"), [(state, event) for state, event, rule in PAIRS if isinstance(rule, Impossible)]
)
def test_what_the_table_calls_impossible_needs_what_the_state_does_not_have(
    state: State, event: Event
) -> None:
    """A group that is empty or dead has no members to act; one that is there is not created again."""
    group = Scene(state).driver.groups.get(GROUP)
    if event is Event.CREATE:
        assert group is not None
    elif event is Event.NOBODY_LEFT:
        assert group is not None
        assert bool(group.members) or group.is_empty
    else:
        assert group is None or not group.members
