"""Batch writes without a name: each row once, and the same few transactional ids however many there are."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.sink.commit import EpochUndecided
from riverlog.spark.sink.decisions import PREFIX, decision_log
from riverlog.spark.sink.leftovers import abort_leftovers
from riverlog.spark.sink.options import SinkOptions
from riverlog.spark.sink.task_writer import write_exactly_once
from riverlog.spark.sink.tasks import Task, TaskWrote
from riverlog.spark.sink.write_lanes import Lane, LaneCommit, take_lane
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.spark.sink_parts import in_another_process, options_for, rows, values_of

_names = itertools.count()


class Killed(BaseException):
    """Stands for the end of a driver's process."""


class KilledAfterDecision(LaneCommit):
    def finish_and_free(self) -> None:
        raise Killed


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture
def options(broker: Broker) -> SinkOptions:
    name = f"lanes-{next(_names)}"
    broker.create_topic(name, partitions=2)
    return options_for(broker, name)


def begin(options: SinkOptions) -> Lane:
    with Cluster(options.client) as cluster:
        return take_lane(cluster)


def run_task(
    options: SinkOptions, lane: Lane, values: Sequence[bytes], partition: int = 0, attempt: int = 0
) -> TaskWrote:
    task = Task(lane.identity, lane.run, lane.epoch, partition, attempt, may_be_repeated=False)
    return write_exactly_once(options, task, [rows(values)] if values else [])


def commit(
    options: SinkOptions, lane: Lane, told: Sequence[TaskWrote], by: type[LaneCommit] = LaneCommit
) -> None:
    with Cluster(options.client) as cluster:
        by(cluster, lane.identity, lane.run, lane.epoch, told, is_stream=True).commit()


def abort(options: SinkOptions, lane: Lane, told: Sequence[TaskWrote] = ()) -> None:
    with Cluster(options.client) as cluster:
        LaneCommit(cluster, lane.identity, lane.run, lane.epoch, told, is_stream=True).abort()


def transactional_ids(options: SinkOptions) -> set[str]:
    with Cluster(options.client) as cluster:
        listed = cluster.ask_any(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        return {each.transactional_id for each in listed.transaction_states}


def still_open(options: SinkOptions) -> set[str]:
    with Cluster(options.client) as cluster:
        return list_open(cluster, f"{PREFIX}/")


def values(broker: Broker, options: SinkOptions) -> Any:
    assert options.topic is not None
    return values_of(broker, options.topic)


def test_many_writes_need_no_more_transactional_ids_than_one(broker: Broker, options: SinkOptions) -> None:
    before = transactional_ids(options)
    counts = []
    for number in range(20):
        lane = begin(options)
        told = [run_task(options, lane, [b"%d-%d" % (number, part)], part) for part in range(2)]
        commit(options, lane, told)
        counts.append(len(transactional_ids(options) - before))
    assert counts == [3] * 20
    assert values(broker, options) == {
        b"%d-%d" % (number, part): 1 for number in range(20) for part in (0, 1)
    }
    with Cluster(options.client) as cluster:
        log = decision_log(cluster, lane.identity)
        assert log is not None
        assert log.refresh() is None


def test_planners_that_take_over_from_each_other_use_the_same_few_ids(
    broker: Broker, options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ends idle processes: with pauses each write has a planner, and tasks, of its own."""
    before = transactional_ids(options)
    for number in range(20):
        with in_another_process(monkeypatch):
            lane = begin(options)
        with in_another_process(monkeypatch):
            told = [run_task(options, lane, [b"%d" % number])]
        with in_another_process(monkeypatch):
            abort(options, lane, told) if number % 4 == 3 else commit(options, lane, told)
    assert len(transactional_ids(options) - before) == 2
    assert values(broker, options) == {b"%d" % number: 1 for number in range(20) if number % 4 != 3}
    assert still_open(options) == set()


def test_a_lane_whose_planner_has_ended_is_not_free_while_its_write_goes_on(
    broker: Broker, options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_another_process(monkeypatch):
        first = begin(options)
        told = [run_task(options, first, [b"a"])]
    second = begin(options)
    assert second.identity != first.identity
    told_later = [run_task(options, second, [b"b"])]
    commit(options, first, told)
    commit(options, second, told_later)
    assert values(broker, options) == {b"a": 1, b"b": 1}
    assert still_open(options) == set()


def test_writes_without_rows_and_writes_that_fail_use_ids_again_too(
    broker: Broker, options: SinkOptions
) -> None:
    before = transactional_ids(options)
    for number in range(12):
        lane = begin(options)
        told = [run_task(options, lane, [b"%d" % number] if number % 3 else [])]
        if number % 3 == 2:
            abort(options, lane, told)
        else:
            commit(options, lane, told)
    assert len(transactional_ids(options) - before) == 2
    assert values(broker, options) == {b"%d" % number: 1 for number in range(1, 12, 3)}
    assert still_open(options) == set()


def test_writes_at_the_same_time_have_ids_of_their_own(
    broker: Broker, options: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of one driver, and one of another."""
    lanes = [begin(options), begin(options)]
    with in_another_process(monkeypatch):
        lanes.append(begin(options))
    assert len({each.identity for each in lanes}) == 3
    told = [run_task(options, lane, [b"%d" % index]) for index, lane in enumerate(lanes)]
    assert len(still_open(options)) == 3
    commit(options, lanes[1], [told[1]])
    abort(options, lanes[0], [told[0]])
    commit(options, lanes[2], [told[2]])
    assert values(broker, options) == {b"1": 1, b"2": 1}
    assert still_open(options) == set()


def test_a_lane_is_free_only_when_all_of_its_write_is_ended(broker: Broker, options: SinkOptions) -> None:
    lane = begin(options)
    told = [run_task(options, lane, [b"a"])]
    with pytest.raises(Killed):
        commit(options, lane, told, KilledAfterDecision)
    assert begin(options).identity != lane.identity
    # Spark asks for an abort when a commit has failed, and what was decided stays decided.
    abort(options, lane, told)
    assert values(broker, options) == {b"a": 1}
    assert begin(options).identity == lane.identity


def test_a_late_end_of_a_write_does_not_touch_the_next_one(broker: Broker, options: SinkOptions) -> None:
    first = begin(options)
    told = [run_task(options, first, [b"a"])]
    commit(options, first, told)
    second = begin(options)
    assert (second.identity, second.epoch) == (first.identity, 1)
    told_later = [run_task(options, second, [b"b"])]
    abort(options, first, told)
    with pytest.raises(EpochUndecided):
        commit(options, first, told)
    commit(options, second, told_later)
    assert values(broker, options) == {b"a": 1, b"b": 1}


@pytest.mark.parametrize("is_given_up", [True, False])
@pytest.mark.parametrize("is_used_again", [True, False])
def test_a_task_that_comes_too_late_leaves_nothing(
    broker: Broker, options: SinkOptions, is_given_up: bool, is_used_again: bool
) -> None:
    lane = begin(options)
    told = [run_task(options, lane, [b"a"])]
    abort(options, lane, told) if is_given_up else commit(options, lane, told)
    if is_used_again:
        assert begin(options).identity == lane.identity
    late = run_task(options, lane, [b"a"], attempt=1)
    assert late.is_skipped
    assert late.written is None
    assert still_open(options) == set()
    assert values(broker, options) == ({} if is_given_up else {b"a": 1})


def test_the_loser_of_two_attempts_is_aborted(broker: Broker, options: SinkOptions) -> None:
    lane = begin(options)
    run_task(options, lane, [b"a"], attempt=0)
    commit(options, lane, [run_task(options, lane, [b"a"], attempt=1)])
    assert values(broker, options) == {b"a": 1}
    assert still_open(options) == set()


@pytest.mark.parametrize("is_decided", [True, False])
def test_what_a_dead_driver_leaves_is_ended_on_request_as_it_was_decided(
    broker: Broker, options: SinkOptions, is_decided: bool
) -> None:
    lane = begin(options)
    told = [run_task(options, lane, [b"a"]), run_task(options, lane, [b"b"], 1)]
    if is_decided:
        with pytest.raises(Killed):
            commit(options, lane, told, KilledAfterDecision)
    abort_leftovers(broker.bootstrap_servers, lane.identity)
    assert values(broker, options) == ({b"a": 1, b"b": 1} if is_decided else {})
    assert still_open(options) == set()
