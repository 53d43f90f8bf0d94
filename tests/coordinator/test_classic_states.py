"""Every state of a classic group and everything that can happen in it: by the table, or in every state."""

import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from riverlog.coordinator.groups import classic
from riverlog.coordinator.groups.classic.requests import (
    ClassicSessionTimer,
    ClassicSyncTimer,
    Joined,
    JoinTimer,
    Leaver,
    MemberProtocol,
    Protocols,
    Synced,
)
from riverlog.coordinator.groups.classic.states import TABLE, ClassicEvent, ClassicRule, State
from riverlog.coordinator.groups.kinds import Claim
from riverlog.coordinator.groups.offsets.offsets import SweepTimer
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.rules import IGNORE, IMPOSSIBLE, AnswerWith, Goto, Ignore, Impossible, Tell
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from tests.coordinator.classic_driver import GROUP, RANGE, Driver

CHANGED: Protocols = (MemberProtocol("range", b"new"), MemberProtocol("roundrobin", b"rr"))
OTHER_CHOICE: Protocols = (MemberProtocol("roundrobin", b"rr"),)


class Elsewhere(Enum):
    """What happens to a group without its table being asked."""

    CREATE = "a client without a member id asks to join"
    ASK_ID = "a new member asks for its id (KIP-394)"
    JOIN = "a new member joins"
    PENDING_GONE = "a member that got an id did not come back with it"
    ALL_JOINED = "every member has joined, or those who have not are out of time"
    NO_MEMBER_LEFT = "there is no member any more to wait for"
    DELETE = "an administrator deletes the group"
    EXPIRE = "the last offset of the group has expired"


ID_REQUIRED = AnswerWith(ErrorCode.MEMBER_ID_REQUIRED)
NOT_EMPTY = AnswerWith(ErrorCode.NON_EMPTY_GROUP)
PREPARING = Goto(State.PREPARING_REBALANCE)

OUTCOMES: dict[State, dict[Elsewhere, ClassicRule]] = {
    State.EMPTY: {
        Elsewhere.CREATE: IMPOSSIBLE,
        Elsewhere.ASK_ID: ID_REQUIRED,
        Elsewhere.JOIN: PREPARING,
        Elsewhere.PENDING_GONE: IGNORE,
        Elsewhere.ALL_JOINED: IMPOSSIBLE,
        Elsewhere.NO_MEMBER_LEFT: IMPOSSIBLE,
        Elsewhere.DELETE: Goto(State.DEAD),
        Elsewhere.EXPIRE: Goto(State.DEAD),
    },
    State.PREPARING_REBALANCE: {
        Elsewhere.CREATE: IMPOSSIBLE,
        Elsewhere.ASK_ID: ID_REQUIRED,
        Elsewhere.JOIN: PREPARING,
        Elsewhere.PENDING_GONE: PREPARING,
        Elsewhere.ALL_JOINED: Goto(State.COMPLETING_REBALANCE),
        Elsewhere.NO_MEMBER_LEFT: Goto(State.EMPTY),
        Elsewhere.DELETE: NOT_EMPTY,
        Elsewhere.EXPIRE: IGNORE,
    },
    **{
        state: {
            Elsewhere.CREATE: IMPOSSIBLE,
            Elsewhere.ASK_ID: ID_REQUIRED,
            Elsewhere.JOIN: PREPARING,
            Elsewhere.PENDING_GONE: IGNORE,
            Elsewhere.ALL_JOINED: IGNORE,
            Elsewhere.NO_MEMBER_LEFT: IMPOSSIBLE,
            Elsewhere.DELETE: NOT_EMPTY,
            Elsewhere.EXPIRE: IGNORE,
        }
        for state in (State.COMPLETING_REBALANCE, State.STABLE)
    },
    State.DEAD: {
        Elsewhere.CREATE: Goto(State.EMPTY),
        Elsewhere.ASK_ID: IMPOSSIBLE,
        Elsewhere.JOIN: IMPOSSIBLE,
        Elsewhere.PENDING_GONE: IGNORE,
        Elsewhere.ALL_JOINED: IGNORE,
        Elsewhere.NO_MEMBER_LEFT: IGNORE,
        Elsewhere.DELETE: AnswerWith(ErrorCode.GROUP_ID_NOT_FOUND),
        Elsewhere.EXPIRE: IGNORE,
    },
}


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

    def do(self, event: ClassicEvent | Elsewhere) -> ErrorCode | Joined | Synced | None:
        return _DOING[event](self)

    def join(self, member_id: str = "", protocols: Protocols = RANGE, **more: Any) -> Joined | None:
        number = self.driver.send_join(member_id, protocols, **more)
        answer = self.driver.answers.get(number)
        return answer if isinstance(answer, Joined) else None

    def sync(self, member_id: str) -> Synced | None:
        number = self.driver.send_sync(member_id, self.generation, assignments={self.follower: b"f"})
        answer = self.driver.answers.get(number)
        return answer if isinstance(answer, Synced) else None

    def ring(self, key: ClassicSessionTimer | JoinTimer | ClassicSyncTimer) -> None:
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

    def no_member_left(self) -> None:
        if self.state is State.PREPARING_REBALANCE:
            self.driver.leave(
                Leaver(self.leader), Leaver(self.follower), Leaver("", "i"), Leaver(self.pending)
            )
        else:
            self.ring(JoinTimer(GROUP))

    def commit(self, claim: Claim) -> ErrorCode:
        number = self.driver.run(
            lambda token, now_ms: self.shard.offsets.decide_commit(token, GROUP, claim, [], now_ms)
        )
        answer = self.driver.answers[number]
        return ErrorCode.NONE if answer == () else answer

    def leave(self) -> ErrorCode | None:
        """An empty group can only be left by an id that has not joined yet, which changes nothing."""
        is_empty = self.state is State.EMPTY
        verdicts = self.driver.leave(Leaver(self.pending if is_empty else self.follower))
        assert isinstance(verdicts, tuple)
        if is_empty:
            assert verdicts == (ErrorCode.NONE,)
            return None
        return verdicts[0]

    def delete(self) -> ErrorCode:
        number = self.driver.run(lambda token, _: self.shard.decide_deletion(GROUP, token))
        return ErrorCode(self.driver.answers[number])

    def expire(self) -> None:
        """By the sweep of the offsets, when everything that can be old is old."""
        effects = self.shard.on_timer(SweepTimer(), self.driver.now_ms + 365 * 24 * 3_600_000)
        self.driver.carry_out(effects)

    @property
    def shard(self) -> GroupShard:
        shard = GroupShard(self.driver.config, ClusterImage())
        shard.classic = self.driver.groups
        shard.kinds = (shard.classic, shard.consumer)
        return shard


def _nothing(_: object) -> None:
    """The first join of a group is answered by what follows its creation, not by the creation."""


_DOING: dict[ClassicEvent | Elsewhere, Callable[[Scene], ErrorCode | Joined | Synced | None]] = {
    Elsewhere.CREATE: lambda scene: _nothing(scene.join("", ())),
    Elsewhere.ASK_ID: lambda scene: scene.join(),
    Elsewhere.JOIN: lambda scene: scene.join(scene.pending),
    ClassicEvent.REJOIN_SAME: lambda scene: scene.join(scene.follower),
    ClassicEvent.REJOIN_LEADER: lambda scene: scene.join(scene.leader),
    ClassicEvent.REJOIN_CHANGED: lambda scene: scene.join(scene.follower, CHANGED),
    ClassicEvent.REPLACE_SAME: lambda scene: scene.join(instance_id="i"),
    ClassicEvent.REPLACE_CHANGED: lambda scene: scene.join("", OTHER_CHOICE, instance_id="i"),
    ClassicEvent.SYNC: lambda scene: scene.sync(scene.follower),
    ClassicEvent.SYNC_LEADER: lambda scene: scene.sync(scene.leader),
    ClassicEvent.HEARTBEAT: lambda scene: scene.driver.beat(scene.follower, scene.generation),
    ClassicEvent.MEMBER_GONE: lambda scene: scene.leave(),
    Elsewhere.PENDING_GONE: lambda scene: scene.ring(ClassicSessionTimer(GROUP, scene.pending)),
    Elsewhere.ALL_JOINED: lambda scene: scene.all_joined(),
    Elsewhere.NO_MEMBER_LEFT: lambda scene: scene.no_member_left(),
    ClassicEvent.SYNC_TIME_OUT: lambda scene: _sync_time_out(scene),
    ClassicEvent.COMMIT: lambda scene: scene.commit(Claim(scene.follower, None, scene.generation, version=9)),
    ClassicEvent.COMMIT_IN_TRANSACTION: lambda scene: scene.commit(
        Claim(scene.follower, None, scene.generation, is_transactional=True, version=9)
    ),
    ClassicEvent.COMMIT_OUTSIDE: lambda scene: scene.commit(Claim()),
    ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: lambda scene: scene.commit(Claim(is_transactional=True)),
    Elsewhere.DELETE: lambda scene: scene.delete(),
    Elsewhere.EXPIRE: lambda scene: scene.expire(),
}


def _sync_time_out(scene: Scene) -> None:
    if scene.state is State.STABLE:
        # The follower of the next generation is silent; the leader has handed in.
        scene.driver.group.unsynced.add(scene.follower)
    scene.ring(ClassicSyncTimer(GROUP))


PAIRS: list[tuple[State, ClassicEvent | Elsewhere, ClassicRule]] = [
    *((state, event, rule) for state in State for event, rule in TABLE[state].items()),
    *((state, event, rule) for state in State for event, rule in OUTCOMES[state].items()),
]


def test_every_pair_is_listed() -> None:
    assert set(TABLE) == set(State)
    for state, events in TABLE.items():
        assert set(events) == set(ClassicEvent), state
        assert set(OUTCOMES[state]) == set(Elsewhere), state


def test_every_event_can_be_made() -> None:
    assert set(_DOING) == {*ClassicEvent, *Elsewhere}


def test_the_table_lists_only_what_is_asked_of_it() -> None:
    """A row that is not read could be wrong for ever."""
    package = Path(classic.__file__).parent
    asked = "".join(file.read_text() for file in package.glob("*.py") if file.name != "states.py")
    assert [
        event.name for event in ClassicEvent if not re.search(rf"\bClassicEvent\.{event.name}\b", asked)
    ] == []


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [pair for pair in PAIRS if not isinstance(pair[2], Impossible)],
    ids=lambda each: each.name if isinstance(each, State | ClassicEvent | Elsewhere) else "",
)
def test_a_group_does_as_the_tables_say(
    state: State, event: ClassicEvent | Elsewhere, expected: ClassicRule
) -> None:
    scene = Scene(state)
    answer = scene.do(event)
    error = answer if isinstance(answer, ErrorCode | None) else answer.error
    match expected:
        case Goto(state=after):
            assert error in (None, ErrorCode.NONE)
            assert scene.present is after
        case AnswerWith(error=told):
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
    state: State, event: ClassicEvent | Elsewhere
) -> None:
    """A group that is empty or dead has no members to act; one that exists is not created again; where no
    member is waited for, none can fail to come."""
    driver = Scene(state).driver
    group = driver.groups.get(GROUP)
    if event is Elsewhere.CREATE:
        assert group is not None
    elif event is Elsewhere.NO_MEMBER_LEFT:
        assert group is not None
        assert JoinTimer(GROUP) not in driver.timers
    else:
        assert group is None or not group.members
