"""Tasks and drivers that are repeated, overtaken, fenced or gone: nothing is lost or doubled."""

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.client.transactions import fence_and_abort
from riverlog.model.errors import RiverlogError
from riverlog.spark.sink import decisions, kept_deciders
from riverlog.spark.sink.commit import (
    CheckpointRewound,
    EpochCommit,
    EpochLost,
    EpochUndecided,
)
from riverlog.spark.sink.decisions import (
    DriverFenced,
    decision_log,
    driver_id,
    encode,
    partition_of,
    task_prefix,
)
from riverlog.spark.sink.leftovers import UnknownQuery, abort_leftovers
from riverlog.spark.sink.placement import RowRefused
from riverlog.spark.sink.task_writer import write_exactly_once
from riverlog.spark.sink.tasks import Task
from riverlog.spark.sink.writers import StreamWriter
from riverlog.testing import Broker
from riverlog.testing.fault import Asked
from tests.spark.sink_parts import commit_of, options_for, rows, run_commit, run_task, values_of
from tests.waiting import eventually

_names = itertools.count()


class Killed(BaseException):
    """Stands for the end of a driver's process."""


class KilledAfterDecision(EpochCommit):
    def decide(self) -> None:
        EpochCommit.decide(self)
        raise Killed


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"rows-{next(_names)}"
    broker.create_topic(name, partitions=2)
    return name


def open_transactions(broker: Broker, query: str) -> set[str]:
    with Cluster(options_for(broker, None).client) as cluster:
        return list_open(cluster, task_prefix(query))


def test_rows_are_visible_only_when_the_driver_has_committed(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = [run_task(options, [b"a", b"b"], query=topic), run_task(options, [b"c"], query=topic, partition=1)]
    assert values_of(broker, topic) == {}
    run_commit(options, told)
    assert values_of(broker, topic) == {b"a": 1, b"b": 1, b"c": 1}


def test_a_task_without_rows_has_no_transaction(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = run_task(options, [], query=topic)
    assert told.written is None
    run_commit(options, [told])
    with Cluster(options.client) as cluster:
        log = decision_log(cluster, topic)
        assert log is None or log.refresh() is None


def test_a_decided_epoch_is_not_written_again_and_only_ended(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = [run_task(options, [b"a"], query=topic), run_task(options, [b"b"], query=topic, partition=1)]
    with pytest.raises(Killed):
        run_commit(options, told, commit_class=KilledAfterDecision)
    assert values_of(broker, topic) == {}
    # The next run places its rows otherwise, as a random repartitioning does.
    again = [
        run_task(options, [b"b", b"a"], query=topic, run="run2"),
        run_task(options, [], query=topic, run="run2", partition=1),
    ]
    assert all(each.is_skipped for each in again)
    run_commit(options, again)
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}


def test_an_epoch_that_is_committed_and_repeated_stays_as_it_is(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    run_commit(options, [run_task(options, [b"a"], query=topic)])
    again = run_task(options, [b"a"], query=topic, run="run2")
    assert again.is_skipped
    run_commit(options, [again])
    run_commit(options, [run_task(options, [b"b"], query=topic, run="run2", epoch=1)], epoch=1)
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}


def test_what_a_driver_left_undecided_is_aborted_by_the_next_run(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    run_task(options, [b"a"], query=topic)
    run_task(options, [b"b"], query=topic, partition=1)
    again = [run_task(options, [b"a", b"b"], query=topic, run="run2")]
    assert len(open_transactions(broker, topic)) == 3
    run_commit(options, again)
    assert open_transactions(broker, topic) == set()
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}


def test_several_processes_of_one_driver_commit_its_epochs_in_turns(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has any of its idle workers commit, and each keeps what it needs to go on."""
    options = options_for(broker, topic)
    processes: list[dict[Any, Any]] = [{}, {}]
    for epoch in range(6):
        monkeypatch.setattr(kept_deciders, "_kept", processes[epoch % 2])
        monkeypatch.setattr(decisions, "_known", {})
        run_commit(options, [run_task(options, [b"%d" % epoch], query=topic, epoch=epoch)], epoch=epoch)
    assert values_of(broker, topic) == {b"%d" % epoch: 1 for epoch in range(6)}
    assert open_transactions(broker, topic) == set()


def test_a_driver_that_was_overtaken_between_its_epochs_stops(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(broker, topic)
    kept: dict[Any, Any] = {}
    monkeypatch.setattr(kept_deciders, "_kept", kept)
    run_commit(options, [run_task(options, [b"a"], query=topic)])
    told = run_task(options, [b"b"], query=topic, epoch=1)
    monkeypatch.setattr(kept_deciders, "_kept", {})
    monkeypatch.setattr(decisions, "_known", {})
    # One that has fenced and not decided yet, and then one that has.
    with Cluster(options.client) as cluster:
        commit_of(cluster, [replace(told, run="run2")], 1).fence()
    monkeypatch.setattr(kept_deciders, "_kept", kept)
    with pytest.raises(DriverFenced):
        run_commit(options, [told], epoch=1)
    again = run_task(options, [b"b"], query=topic, run="run2", epoch=1)
    run_commit(options, [again], epoch=1)
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}
    assert open_transactions(broker, topic) == set()


def test_the_loser_of_two_attempts_is_aborted(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    run_task(options, [b"a"], query=topic, attempt=0)
    winner = run_task(options, [b"a"], query=topic, attempt=1)
    run_commit(options, [winner])
    assert values_of(broker, topic) == {b"a": 1}
    assert open_transactions(broker, topic) == set()


def test_an_attempt_that_ends_after_the_decision_aborts_itself(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    winner = run_task(options, [b"a"], query=topic)

    slow = Task(topic, "run1", 0, 0, 1, may_be_repeated=True)

    def late() -> Iterator[object]:
        run_commit(options, [winner])
        yield rows([b"a"])

    told = write_exactly_once(options, slow, late())
    assert told.is_skipped
    assert open_transactions(broker, topic) == set()
    assert values_of(broker, topic) == {b"a": 1}


def test_a_task_that_fails_aborts_what_it_has_written(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)

    def failing() -> Iterator[object]:
        yield rows([b"a"])
        raise ValueError("the user's code")

    with pytest.raises(ValueError, match="the user's code"):
        write_exactly_once(options, Task(topic, "run1", 0, 0, 0, True), failing())
    assert open_transactions(broker, topic) == set()


def test_a_driver_that_another_has_taken_over_from_cannot_decide(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    old = [run_task(options, [b"a"], query=topic)]
    new = [run_task(options, [b"a"], query=topic, run="run2")]
    with Cluster(options.client) as first:
        zombie = commit_of(first, old)
        zombie.fence()
        run_commit(options, new)
        with pytest.raises(EpochUndecided):
            zombie.decide()
        with pytest.raises(DriverFenced, match=topic):
            zombie.decider.decide(zombie.decision())
    assert values_of(broker, topic) == {b"a": 1}


def test_of_two_drivers_that_write_the_same_epoch_one_stops(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    one = [run_task(options, [b"a"], query=topic)]
    other = [run_task(options, [b"a"], query=topic, run="run2")]
    run_commit(options, one)
    with pytest.raises(DriverFenced, match=f"epoch 0 of query {topic}"):
        run_commit(options, other)
    assert values_of(broker, topic) == {b"a": 1}


def test_a_fenced_driver_does_not_abort_what_it_had_decided(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = [run_task(options, [b"a"], query=topic)]
    with pytest.raises(Killed):
        run_commit(options, told, commit_class=KilledAfterDecision)
    with Cluster(options.client) as cluster:
        commit_of(cluster, told).abort()
    assert values_of(broker, topic) == {b"a": 1}


def test_an_aborted_epoch_leaves_nothing_also_of_tasks_that_did_not_tell(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = [run_task(options, [b"a"], query=topic)]
    run_task(options, [b"b"], query=topic, partition=1)
    with Cluster(options.client) as cluster:
        commit_of(cluster, told).abort()
    assert open_transactions(broker, topic) == set()
    assert values_of(broker, topic) == {}


def test_an_older_epoch_than_the_newest_decided_is_refused(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    run_commit(options, [run_task(options, [b"a"], query=topic, epoch=5)], epoch=5)
    again = run_task(options, [b"b"], query=topic, run="run2", epoch=3)
    with pytest.raises(CheckpointRewound, match=f"epoch 3 of query {topic}.*epoch 5"):
        run_commit(options, [again], epoch=3)
    assert values_of(broker, topic) == {b"a": 1}


def test_an_epoch_is_not_decided_when_a_transaction_was_ended_by_hand(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    told = [run_task(options, [b"a"], query=topic), run_task(options, [b"b"], query=topic, partition=1)]
    assert told[1].written is not None
    with Cluster(options.client) as cluster:
        fence_and_abort(cluster, told[1].written.transactional_id)
    with pytest.raises(EpochUndecided, match=f"epoch 0 of query {topic}"):
        run_commit(options, told)
    run_commit(options, [run_task(options, [b"a", b"b"], query=topic, run="run2")])
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}


def test_transactional_ids_are_used_again_in_the_next_epoch_and_not_within_one(
    broker: Broker, topic: str
) -> None:
    options = options_for(broker, topic)
    seen: list[set[str]] = []
    for epoch in range(3):
        told = [
            run_task(options, [b"%d" % epoch], query=topic, epoch=epoch, partition=index)
            for index in range(2)
        ]
        run_commit(options, told, epoch=epoch)
        seen.append({each.written.transactional_id for each in told if each.written})
    assert len(seen[0]) == 2
    assert seen[0] == seen[1] == seen[2]
    assert sum(values_of(broker, topic).values()) == 6


def test_a_decision_stands_though_another_query_holds_back_the_stable_offset(
    broker: Broker, topic: str
) -> None:
    """Both write to one partition of the decision topic; the other one stops in the middle of deciding."""
    options = options_for(broker, topic)
    same = next(
        each for each in (f"{topic}-{n}" for n in range(1000)) if partition_of(each) == partition_of(topic)
    )
    with Cluster(options.client) as cluster:
        holding = commit_of(cluster, [run_task(options, [b"x"], query=same)])
        holding.fence()
        holding.decider.put(encode(holding.decision()))
        with pytest.raises(Killed):
            run_commit(options, [run_task(options, [b"a"], query=topic)], commit_class=KilledAfterDecision)
        again = run_task(options, [b"a"], query=topic, run="run2")
        assert again.is_skipped
        run_commit(options, [again])
    assert abort_leftovers(broker.bootstrap_servers, same).aborted
    assert values_of(broker, topic) == {b"a": 1}


def test_leftovers_of_a_dropped_query_are_ended_on_request(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    with pytest.raises(Killed):
        run_commit(options, [run_task(options, [b"a"], query=topic)], commit_class=KilledAfterDecision)
    run_task(options, [b"b"], query=topic, run="run2", epoch=1)
    ended = abort_leftovers(broker.bootstrap_servers, topic)
    assert len(ended.committed) == len(ended.aborted) == 1
    assert open_transactions(broker, topic) == set()
    assert values_of(broker, topic) == {b"a": 1}


def test_leftovers_are_found_by_the_name_of_a_transaction_as_txn_list_shows_it(
    broker: Broker, topic: str
) -> None:
    told = run_task(options_for(broker, topic), [b"a"], query=topic)
    assert told.written is not None
    name = told.written.transactional_id
    assert abort_leftovers(broker.bootstrap_servers, name).aborted == (name,)
    assert abort_leftovers(broker.bootstrap_servers, name).aborted == ()
    told = run_task(options_for(broker, topic), [b"b"], query=topic, run="run2")
    assert told.written is not None
    ended = abort_leftovers(broker.bootstrap_servers, driver_id(topic))
    assert ended.aborted == (told.written.transactional_id,)


def test_leftovers_of_a_query_that_nobody_knows_are_a_mistake(broker: Broker, topic: str) -> None:
    with pytest.raises(UnknownQuery, match=f"no query {topic} has written here"):
        abort_leftovers(broker.bootstrap_servers, topic)


def test_a_stream_that_is_stopped_before_any_task_has_told_leaves_nothing(broker: Broker, topic: str) -> None:
    checkpoint = {"checkpointLocation": f"/checkpoints/{topic}"}
    options = options_for(broker, topic, **checkpoint)
    other = options_for(broker, topic, checkpointLocation="/checkpoints/of another")
    run_task(options, [b"a"], query=topic)
    run_task(other, [b"b"], query=f"other-{topic}")
    StreamWriter(options).abort([None, None], 0)
    assert open_transactions(broker, topic) == set()
    assert len(open_transactions(broker, f"other-{topic}")) == 1
    abort_leftovers(broker.bootstrap_servers, f"other-{topic}")


def test_without_two_phase_commit_a_decided_transaction_that_timed_out_is_loud() -> None:
    with Broker(
        {
            "transaction.two.phase.commit.enable": False,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
        }
    ) as broker:
        broker.create_topic("t", partitions=1)
        options = options_for(broker, "t", **{"kafka.transaction.timeout.ms": "4000"})
        told = [run_task(options, [b"a"], query="q")]
        with pytest.raises(Killed):
            run_commit(options, told, commit_class=KilledAfterDecision)
        eventually(lambda: not open_transactions(broker, "q"))
        again = run_task(options, [b"a"], query="q", run="run2")
        assert again.is_skipped
        with pytest.raises(EpochLost, match=r"epoch 0 of query q.*acceptLostEpoch=0"):
            run_commit(options, [again])
        with pytest.raises(EpochLost, match="epoch 0 of query q"):
            run_commit(options, [again])
        with Cluster(options.client) as cluster:
            EpochCommit(cluster, "q", "run2", 0, [again], is_stream=True, accepted_epoch=0).commit()
        patient = options_for(broker, "t")
        run_commit(patient, [run_task(patient, [b"b"], query="q", run="run2", epoch=1)], epoch=1)
        assert values_of(broker, "t") == {b"b": 1}


def test_without_two_phase_commit_a_transaction_that_timed_out_before_the_decision_is_written_again() -> None:
    with Broker(
        {
            "transaction.two.phase.commit.enable": False,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
        }
    ) as broker:
        broker.create_topic("t", partitions=1)
        options = options_for(broker, "t", **{"kafka.transaction.timeout.ms": "1500"})
        told = [run_task(options, [b"a"], query="q")]
        eventually(lambda: not open_transactions(broker, "q"))
        with pytest.raises(EpochUndecided, match="epoch 0 of query q"):
            run_commit(options, told)
        patient = options_for(broker, "t")
        run_commit(patient, [run_task(patient, [b"a"], query="q", run="run2")])
        assert values_of(broker, "t") == {b"a": 1}


def test_a_topic_that_the_broker_creates_by_itself_is_created_by_the_first_row(broker: Broker) -> None:
    for number in range(10):
        name = f"made-by-the-sink-{number}"
        options = options_for(broker, name)
        run_commit(options, [run_task(options, [b"a"], query=name)])
        assert values_of(broker, name) == {b"a": 1}


def test_a_topic_that_nobody_creates_is_named_with_a_remedy() -> None:
    with (
        Broker({"auto.create.topics.enable": False}) as strict,
        pytest.raises(RowRefused, match="nowhere does not exist; create it with `riverlog topic"),
    ):
        run_task(options_for(strict, "nowhere"), [b"a"], query="q")


def test_the_command_ends_what_a_dead_query_has_left(broker: Broker, topic: str) -> None:
    options = options_for(broker, topic)
    run_task(options, [b"lost"], query=topic)
    told = run_task(options, [b"kept"], query=topic, run="run2")
    with Cluster(options.client) as cluster, pytest.raises(Killed):
        commit_of(cluster, [told], commit_class=KilledAfterDecision).commit()
    command = [str(Path(sys.executable).with_name("riverlog")), "pipeline", "abort-leftovers", topic]
    command += ["-b", broker.bootstrap_servers]

    def outcomes() -> list[str]:
        done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=True)
        return [each["outcome"] for each in json.loads(done.stdout)]

    assert outcomes() == ["committed", "aborted"]
    assert outcomes() == []
    assert open_transactions(broker, topic) == set()
    assert values_of(broker, topic) == {b"kept": 1}


class Counting(EpochCommit):
    """Counts the requests of each commit."""

    asked: ClassVar[list[int]] = []

    def commit(self) -> None:
        count = 0
        use = self.cluster.use

        def counted(*args: Any) -> Any:
            nonlocal count
            count += 1
            return use(*args)

        self.cluster.use = counted  # type: ignore[method-assign, assignment]
        EpochCommit.commit(self)
        self.asked.append(count)


def test_a_driver_takes_over_once_and_decides_its_later_epochs_with_three_requests_before_the_commits(
    broker: Broker, topic: str
) -> None:
    options = options_for(broker, topic)
    Counting.asked.clear()
    with Cluster(options.client) as cluster:
        for epoch in range(4):
            told = run_task(options, [b"%d" % epoch], query=topic, epoch=epoch)
            commit_of(cluster, [told], epoch, Counting).commit()
    assert values_of(broker, topic) == {b"%d" % epoch: 1 for epoch in range(4)}
    # Describe, decide, conclude; commits, and the look for what is open, go together.
    assert Counting.asked[2:] == [3, 3]


def test_a_driver_that_was_overtaken_between_epochs_cannot_decide_any_more(
    broker: Broker, topic: str
) -> None:
    options = options_for(broker, topic)
    run_commit(options, [run_task(options, [b"0"], query=topic)])
    first = run_task(options, [b"first"], query=topic, epoch=1)
    second = run_task(options, [b"second"], query=topic, run="run2", epoch=1)
    run_commit(options, [second], epoch=1)
    with pytest.raises(RiverlogError):
        run_commit(options, [first], epoch=1)
    assert values_of(broker, topic) == {b"0": 1, b"second": 1}
    assert open_transactions(broker, topic) == set()


def test_a_later_epoch_is_decided_in_four_round_trips(broker: Broker, topic: str) -> None:
    """The commits of its transactions and the look for others are on the way at the same time."""
    options = options_for(broker, topic, **{"kafka.client.id": f"id-{topic}"})
    asked: list[str] = []

    def note(request: Asked) -> bool:
        asked.append(request.api)
        return False

    with Cluster(options.client) as cluster:
        for epoch in range(3):
            told = [run_task(options, [b"%d" % epoch], query=topic, epoch=epoch, partition=n) for n in (0, 1)]
            asked.clear()
            spy = broker.faults.delay(client_id=f"id-{topic}", seconds=0, when=note)
            commit_of(cluster, told, epoch).commit()
            broker.faults.remove(spy)
    ends = ["EndTxn", "EndTxn", "ListTransactions"]
    assert asked == ["DescribeTransactions", "Produce", "EndTxn", *ends]
    assert values_of(broker, topic) == {b"%d" % epoch: 2 for epoch in range(3)}


@pytest.mark.parametrize("api", ["EndTxn", "ListTransactions"])
@pytest.mark.parametrize("done", [True, False])
def test_a_connection_that_is_lost_among_the_commits_loses_nothing(
    broker: Broker, topic: str, api: str, done: bool
) -> None:
    options = options_for(broker, topic)
    for epoch in range(3):
        told = [run_task(options, [b"%d" % epoch], query=topic, epoch=epoch, partition=n) for n in range(3)]
        run_task(options, [b"%d" % epoch], query=topic, epoch=epoch, partition=2, attempt=1)
        with Cluster(options.client) as cluster:
            fault = broker.faults.disconnect(api, done=done, times=1, client_id="riverlog-spark")
            commit_of(cluster, told, epoch).commit()
            assert fault.hits == 1
    assert values_of(broker, topic) == {b"%d" % epoch: 3 for epoch in range(3)}
    assert open_transactions(broker, topic) == set()
