"""Consumer groups: many that stay as they are, and one that takes a member in or lets one go."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median

from benchmarks import load
from benchmarks.asking import ask
from benchmarks.figures import Aim, Figure
from benchmarks.members import Member, hear_of_rebalance, heartbeats, settle
from benchmarks.servers import Server, riverlog
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest

GROUPS = 100
MEMBERS_EACH = 10
HEARTBEAT_S = 2.0
ROUNDS = 10  # Of heartbeats: more than three times the session time-out.
AT_ONCE = 50
REBALANCED = 50
REBALANCES = 5
INITIAL_DELAY_MS = "1000"  # Long enough for all to be in the first generation.


def run() -> list[Figure]:
    return [*_stay(), *_rebalance()]


def _stay() -> list[Figure]:
    """Every member sends its heartbeats, spread over the interval as those of many clients are."""
    load.allow_descriptors(GROUPS * MEMBERS_EACH + 500)
    names = [f"group-{number}" for number in range(GROUPS)]
    with _broker() as broker, ExitStack() as stack:
        idle_mb = broker.rss_mb
        members = [_member(broker, name, stack) for name in names for _ in range(MEMBERS_EACH)]
        for member in members:
            member.take_id()
        settle(members)
        busy_before, started = broker.cpu_s, time.perf_counter()
        moved = _groups_that_move(members)
        busy = (broker.cpu_s - busy_before) / (time.perf_counter() - started)
        moved |= _groups_not_stable(broker, names)
        total = f"{len(members):,} members in {GROUPS} groups"
        return [
            Figure(f"groups that did not stay stable, {total}", len(moved), "", aim=Aim(0)),
            Figure(f"broker CPU, {total}, a heartbeat in {HEARTBEAT_S:g} s", busy, "CPU s/s"),
            Figure(f"resident memory, {total}", broker.rss_mb, "MB"),
            Figure("of it for the members and their connections", broker.rss_mb - idle_mb, "MB"),
        ]


def _groups_that_move(members: list[Member]) -> set[str]:
    """Those in which a heartbeat was answered with anything but a plain yes."""
    moved: set[str] = set()
    pause_s = HEARTBEAT_S * AT_ONCE / len(members)
    due = time.perf_counter()
    for _ in range(ROUNDS):
        for start in range(0, len(members), AT_ONCE):
            some = members[start : start + AT_ONCE]
            answers = heartbeats(some)
            moved |= {member.group for member, answer in zip(some, answers, strict=True) if answer}
            due += pause_s
            time.sleep(max(0.0, due - time.perf_counter()))
    return moved


def _groups_not_stable(broker: Server, names: list[str]) -> set[str]:
    with load.connect(broker.address) as client:
        reply = ask(client, ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=names))
    stable = {
        group.group_id
        for group in reply.groups
        if group.group_state == "Stable" and len(group.members) == MEMBERS_EACH
    }
    return set(names) - stable


def _rebalance() -> list[Figure]:
    """From the request that sets it off until the last member is synced.

    The members' heartbeats follow at once, so no interval of theirs is in the figure.
    """
    joins, leaves = [], []
    with _broker() as broker, ExitStack() as stack:
        members = [_member(broker, "rebalanced", stack) for _ in range(REBALANCED)]
        *others, last = members
        for member in others:
            member.take_id()
        settle(others)
        for _ in range(REBALANCES):
            started = time.perf_counter()
            last.take_id()
            last.send_join()
            hear_of_rebalance(others)
            settle(members, already_asked=[last])
            joins.append(time.perf_counter() - started)
            started = time.perf_counter()
            last.leave()
            hear_of_rebalance(others)
            settle(others)
            leaves.append(time.perf_counter() - started)
    return [
        Figure(f"rebalance when the {REBALANCED}th member joins", median(joins), "s", aim=Aim(1.0)),
        Figure("the slowest of them", max(joins), "s", aim=Aim(1.0)),
        Figure(f"rebalance when one of {REBALANCED} members leaves", median(leaves), "s", aim=Aim(1.0)),
        Figure("the slowest of these", max(leaves), "s", aim=Aim(1.0)),
    ]


@contextmanager
def _broker() -> Iterator[Server]:
    """With a topic to read and the coordinator's own topic there."""
    with (
        tempfile.TemporaryDirectory() as directory,
        riverlog(Path(directory), group_initial_rebalance_delay_ms=INITIAL_DELAY_MS) as broker,
    ):
        with load.connect(broker.address) as client:
            load.call(client, load.Frames("read").create(REBALANCED))
            reply = ask(client, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
            assert reply.error_code == ErrorCode.NONE
        yield broker


def _member(broker: Server, group: str, stack: ExitStack) -> Member:
    return stack.enter_context(closing(Member(broker.address, group)))
