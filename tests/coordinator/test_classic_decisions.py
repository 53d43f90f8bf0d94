"""Rebalances of classic groups in detail: who waits for whom, time-outs, static members, failed writes."""

import pytest

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.joining import NEWCOMER_TIMEOUT_MS
from riverlog.coordinator.groups.classic.requests import (
    ClassicSessionTimer,
    Joined,
    Leaver,
    MemberProtocol,
    Protocols,
    Synced,
)
from riverlog.coordinator.groups.classic.states import State
from riverlog.coordinator.groups.kinds import Claim
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from tests.coordinator.classic_driver import GROUP, RANGE, Driver

UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def named(*names: str) -> Protocols:
    return tuple(MemberProtocol(name, name.encode()) for name in names)


def test_a_first_rebalance_is_put_off_while_members_come_up_to_their_patience() -> None:
    driver = Driver(GroupConfig(initial_rebalance_delay_ms=3_000))
    numbers = []
    for pause_ms in (2_500, 2_500, 2_000, 999):
        numbers.append(driver.send_join(version=3, session_timeout_ms=60_000, rebalance_timeout_ms=8_000))
        driver.pass_time(pause_ms)
    # Put off after 3 s and after 6 s, because somebody has come; after 8 s nobody can wait any longer.
    assert not driver.answers
    driver.pass_time(1)
    assert {driver.answers[number].generation for number in numbers} == {1}


def test_a_first_rebalance_does_not_wait_longer_than_its_delay_for_nobody() -> None:
    driver = Driver(GroupConfig(initial_rebalance_delay_ms=3_000))
    number = driver.send_join(version=3)
    driver.pass_time(2_999)
    assert number not in driver.answers
    driver.pass_time(1)
    assert driver.answers[number].generation == 1


def test_who_does_not_join_again_in_time_is_dropped() -> None:
    driver = Driver()
    first, second = driver.stable(2)
    number = driver.send_join(first, named("range"))
    for _ in range(6):
        driver.pass_time(9_999)
        assert driver.beat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert number not in driver.answers
    driver.pass_time(60)
    assert driver.answers[number].generation == 2
    assert [member.member_id for member in driver.answers[number].members] == [first]
    assert driver.beat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_silence_ends_a_session_and_brings_a_rebalance() -> None:
    driver = Driver()
    first, second = driver.stable(2)
    driver.pass_time(6_000)
    assert driver.beat(first, 1) is ErrorCode.NONE
    driver.pass_time(4_000)
    assert second not in driver.group.members
    assert driver.beat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.join(first).generation == 2


def test_a_commit_is_a_sign_of_life() -> None:
    driver = Driver()
    [only] = driver.stable()
    driver.pass_time(9_000)
    driver.carry_out(driver.group.decide_after_commit(Claim(only, None, 1), driver.now_ms))
    driver.pass_time(9_000)
    assert only in driver.group.members


def test_a_member_that_waits_for_the_others_owes_no_heartbeat() -> None:
    driver = Driver()
    first, second = driver.stable(2)
    number = driver.send_join(first, named("range"))
    for _ in range(4):
        driver.pass_time(9_000)
        driver.beat(second, 1)
    assert first in driver.group.members
    driver.send_join(second)
    assert driver.answers[number].error is ErrorCode.NONE


def test_an_id_that_is_not_used_holds_nobody_up_for_longer_than_its_session() -> None:
    driver = Driver()
    [first] = driver.stable()
    driver.new_member()
    number = driver.send_join(first, named("range"))
    driver.pass_time(9_999)
    assert number not in driver.answers
    driver.pass_time(1)
    assert driver.answers[number].generation == 2


def test_a_new_member_that_gave_up_is_dropped_after_five_minutes() -> None:
    driver = Driver()
    [first] = driver.stable(rebalance_timeout_ms=10 * NEWCOMER_TIMEOUT_MS)
    newcomer = driver.new_member()
    number = driver.send_join(newcomer)
    for _ in range(NEWCOMER_TIMEOUT_MS // 5_000):
        driver.pass_time(5_000)
        assert driver.beat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.answers[number] == Joined("", ErrorCode.UNKNOWN_MEMBER_ID)
    assert list(driver.group.members) == [first]


def joined_pair(driver: Driver) -> tuple[str, str]:
    """The leader and the follower of a group in which nobody has synced yet."""
    ids = [driver.new_member() for _ in range(2)]
    for each in ids:
        driver.send_join(each)
    driver.pass_time(0)
    leader = str(driver.group.leader)
    [follower] = [each for each in ids if each != leader]
    return leader, follower


def test_who_joins_and_does_not_sync_is_dropped_after_the_rebalance_time_out() -> None:
    driver = Driver()
    leader, follower = joined_pair(driver)
    waiting = driver.send_sync(leader, 1)
    assert driver.answers[waiting].error is ErrorCode.NONE
    for _ in range(12):
        driver.pass_time(5_000)
        driver.beat(leader, 1)
        driver.beat(follower, 1)
    assert list(driver.group.members) == [leader]
    assert driver.group.state is State.PREPARING_REBALANCE


def test_the_assignment_waits_for_the_leader_and_a_forgotten_member_gets_nothing() -> None:
    driver = Driver()
    leader, follower = joined_pair(driver)
    waiting = driver.send_sync(follower, 1)
    assert waiting not in driver.answers
    assert driver.sync(leader, 1, assignments={leader: b"all"}).assignment == b"all"
    assert driver.answers[waiting] == Synced(ErrorCode.NONE, "consumer", "range", b"")


def test_when_the_leader_dies_before_it_has_assigned_the_others_join_again() -> None:
    driver = Driver()
    _, follower = joined_pair(driver)
    waiting = driver.send_sync(follower, 1)
    driver.pass_time(10_000)
    assert driver.answers[waiting] == Synced(ErrorCode.REBALANCE_IN_PROGRESS)
    answer = driver.join(follower)
    assert (answer.generation, answer.leader) == (2, follower)


@pytest.mark.parametrize(
    ("members", "choice"),
    [
        ([("a", "b")], "a"),
        ([("a", "b"), ("b", "a"), ("b", "a")], "b"),
        ([("a", "b"), ("b",), ("a", "b")], "b"),
        ([("a", "b"), ("b", "a")], "a"),
        ([("c", "a", "b"), ("b", "a"), ("d", "b", "a")], "b"),
    ],
)
def test_the_protocol_with_the_most_votes_among_those_that_all_know_is_chosen(
    members: list[tuple[str, ...]], choice: str
) -> None:
    assert classic_protocols.chosen([named(*each) for each in members]) == choice


def test_a_member_that_knows_no_common_protocol_is_refused() -> None:
    driver = Driver()
    driver.stable(protocols=named("a", "b"))
    error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.join("", named("c")).error is error
    assert driver.join("", named("a"), protocol_type="connect").error is error
    assert driver.join("", named("c", "b")).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_group_takes_no_more_members_than_it_may_have() -> None:
    driver = Driver(GroupConfig(initial_rebalance_delay_ms=0, group_size_max=2))
    first, second = driver.stable(2)
    assert driver.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    number = driver.send_join(first, named("range"))
    third = driver.join()
    assert third.error is ErrorCode.MEMBER_ID_REQUIRED
    driver.send_join(third.member_id)
    # Whoever joins first is in.
    assert driver.join(second).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.answers[number].generation == 2
    assert set(driver.group.members) == {first, third.member_id}


def test_a_group_that_has_become_too_large_joins_anew_after_a_load() -> None:
    driver = Driver()
    driver.stable(3)
    driver.config = GroupConfig(initial_rebalance_delay_ms=0, group_size_max=2)
    driver.load()
    assert driver.group.state is State.PREPARING_REBALANCE


def test_members_get_a_fresh_session_after_a_load_and_keep_generation_and_assignment() -> None:
    driver = Driver()
    ids = driver.stable(2)
    before = driver.group.stored
    driver.pass_time(9_000)
    driver.load()
    assert driver.group.stored == before
    driver.pass_time(9_000)
    assert [driver.beat(each, 1) for each in ids] == [ErrorCode.NONE] * 2
    assert driver.sync(ids[0], 1).assignment == ids[0].encode()
    driver.pass_time(10_000)
    assert driver.group.state is State.EMPTY
    assert driver.group.generation == 2
    driver.load()
    assert (driver.group.state, driver.group.generation) == (State.EMPTY, 2)


def static(driver: Driver, *, version: int = 9) -> tuple[str, str]:
    """A stable group of a static member and a dynamic one: their ids."""
    dynamic = driver.new_member()
    number = driver.send_join(dynamic)
    member = driver.join(instance_id="i", version=version).member_id
    given = {member: b"s", dynamic: b"d"}
    assert driver.answers.pop(number).generation == 1
    for each in sorted((member, dynamic), key=lambda each: each != driver.group.leader):
        driver.sync(each, 1, assignments=given)
    return member, dynamic


def test_a_static_member_comes_back_without_a_rebalance_and_its_former_self_is_fenced() -> None:
    driver = Driver()
    old, dynamic = static(driver)
    back = driver.join(instance_id="i")
    assert (back.error, back.generation) == (ErrorCode.NONE, 1)
    assert back.member_id not in (old, dynamic)
    assert driver.group.state is State.STABLE
    assert driver.beat(dynamic, 1) is ErrorCode.NONE
    assert driver.beat(old, 1, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.join(old, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert driver.group.refuse_commit(Claim(old, "i", 1)) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.group.refuse_commit(Claim(back.member_id, "i", 1)) is None
    assert driver.sync(back.member_id, 1, instance_id="i").assignment == b"s"
    assert ClassicSessionTimer(GROUP, old) not in driver.timers
    driver.load()
    assert back.member_id in driver.group.members


@pytest.mark.parametrize("version", [8, 9])
def test_a_static_leader_that_comes_back_skips_its_assignment_if_it_knows_how(version: int) -> None:
    driver = Driver()
    old = driver.join(instance_id="i", version=version)
    assert old.leader == old.member_id
    driver.sync(old.member_id, 1, assignments={old.member_id: b"s"})
    back = driver.join(instance_id="i", version=version)
    assert driver.group.leader == back.member_id
    if version == 9:
        assert back.is_assigned
        assert back.leader == back.member_id
        assert [member.member_id for member in back.members] == [back.member_id]
    else:
        assert not back.is_assigned
        assert (back.leader, back.members) == (old.member_id, ())


def test_a_static_member_is_not_dropped_for_being_late_but_by_its_session() -> None:
    driver = Driver()
    member, dynamic = static(driver)
    driver.send_join(dynamic, named("range"))
    for _ in range(7):
        driver.pass_time(9_000)
        driver.beat(member, 1, "i")
    assert driver.group.generation == 2
    assert member in driver.group.members
    driver.pass_time(10_000)
    assert member not in driver.group.members


def test_a_static_member_is_put_out_by_its_instance_id() -> None:
    driver = Driver()
    member, dynamic = static(driver)
    assert driver.leave(Leaver("", "i"), Leaver("", "x"), Leaver("", None)) == (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    )
    assert list(driver.group.members) == [dynamic]
    assert driver.beat(member, 1, "i") is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_assignment_that_cannot_be_written_is_given_to_nobody() -> None:
    driver = Driver()
    leader, follower = joined_pair(driver)
    waiting = driver.send_sync(follower, 1)
    driver.write_error = UNAVAILABLE
    number = driver.send_sync(leader, 1, assignments={leader: b"l", follower: b"f"})
    assert driver.answers[number] is UNAVAILABLE
    assert driver.answers[waiting] is UNAVAILABLE
    assert driver.group.state is State.PREPARING_REBALANCE
    driver.write_error = None
    again = [driver.send_join(each) for each in (leader, follower)]
    assert {driver.answers[each].generation for each in again} == {2}


def test_a_group_whose_first_record_cannot_be_written_never_was() -> None:
    driver = Driver()
    driver.write_error = UNAVAILABLE
    assert driver.answers[driver.send_join()] is UNAVAILABLE
    assert driver.answers[driver.send_join(version=3)] is UNAVAILABLE
    assert driver.groups.get(GROUP) is None
    driver.write_error = None
    assert len(driver.stable(2)) == 2


def test_a_group_that_cannot_be_written_empty_becomes_so_later() -> None:
    driver = Driver()
    [only] = driver.stable()
    driver.write_error = UNAVAILABLE
    driver.pass_time(12_000)
    states = [driver.group.state]
    driver.write_error = None
    driver.pass_time(1_000)
    states.append(driver.group.state)
    assert states == [State.PREPARING_REBALANCE, State.EMPTY]
    assert driver.beat(only, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_whose_return_cannot_be_written_stays_who_it_was() -> None:
    driver = Driver()
    old, _ = static(driver)
    driver.write_error = UNAVAILABLE
    assert driver.answers[driver.send_join(instance_id="i")] is UNAVAILABLE
    assert driver.beat(old, 1, "i") is ErrorCode.NONE


def test_a_join_on_another_connection_takes_the_place_of_the_first() -> None:
    driver = Driver()
    first, _ = driver.stable(2)
    stale = driver.send_join(first, named("range"))
    fresh = driver.send_join(first, named("range"))
    assert driver.answers[stale].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert fresh not in driver.answers


def test_names_of_protocols_are_told_to_the_leader_alone() -> None:
    driver = Driver()
    ids = [driver.new_member() for _ in range(2)]
    numbers = [driver.send_join(each) for each in ids]
    driver.pass_time(0)
    answers = [driver.answers[number] for number in numbers]
    assert sorted(len(answer.members) for answer in answers) == [0, 2]
    assert {answer.protocol for answer in answers} == {"range"}
    assert {member.metadata for answer in answers for member in answer.members} == {RANGE[0].metadata}
