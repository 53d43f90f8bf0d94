"""Queries whose processes end between epochs: the same few transactional ids, nothing lost or doubled."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import rand

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.sink.decisions import PREFIX, driver_id, task_prefix
from riverlog.spark.sink.options import SinkOptions
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.processes import ROOT, Process
from tests.spark.sink_parts import in_another_process, options_for, run_commit, run_task, values_of
from tests.waiting import eventually, is_readable

_names = itertools.count()
TASK = """
import sys
from pathlib import Path
from riverlog.spark.sink.options import sink_options
from tests.spark.sink_parts import rows
from riverlog.spark.sink.task_writer import write_exactly_once
from riverlog.spark.sink.tasks import Task
servers, topic, epoch, value, hold = sys.argv[1:]
options = sink_options({"kafka.bootstrap.servers": servers, "topic": topic}, is_stream=True)
def reach(point):
    if point == hold:
        print(point, flush=True)
        sys.stdin.readline()
def batches():
    reach("begun")
    yield rows([value.encode()])
    reach("written")
told = write_exactly_once(options, Task(topic, "run1", int(epoch), 0, 0, may_be_repeated=True), batches())
print("skipped" if told.is_skipped else "told")
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"rows-{next(_names)}"
    broker.create_topic(name, partitions=2)
    return name


def transactional_ids(options: SinkOptions, identity: str) -> set[str]:
    with Cluster(options.client) as cluster:
        listed = cluster.ask_any(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    found = {each.transactional_id for each in listed.transaction_states}
    return {each for each in found if each.startswith(task_prefix(identity)) or each == driver_id(identity)}


def open_transactions(options: SinkOptions) -> set[str]:
    with Cluster(options.client) as cluster:
        return list_open(cluster, f"{PREFIX}/")


def test_a_query_whose_processes_end_after_each_epoch_needs_the_ids_of_one(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes write, one of them two tasks, under whichever name is free; a third commits."""
    options = options_for(broker, topic)
    counts = []
    for epoch in range(20):
        with in_another_process(monkeypatch):
            told = [run_task(options, [b"%d-0" % epoch], query=topic, epoch=epoch)]
            with in_another_process(monkeypatch):
                told += [
                    run_task(options, [b"%d-%d" % (epoch, part)], query=topic, epoch=epoch, partition=part)
                    for part in (1, 2)
                ]
        with in_another_process(monkeypatch):
            run_commit(options, told, epoch=epoch)
        counts.append(len(transactional_ids(options, topic)))
    assert max(counts) <= 1 + 2 * 2, counts
    assert values_of(broker, topic) == {b"%d-%d" % (n, part): 1 for n in range(20) for part in range(3)}
    assert open_transactions(options) == set()


def test_who_takes_over_within_an_epoch_leaves_alone_what_is_prepared(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(broker, topic)
    told = []
    for part in range(4):
        with in_another_process(monkeypatch):
            told.append(run_task(options, [b"%d" % part], query=topic, partition=part))
    assert len(open_transactions(options)) == 4
    run_commit(options, told)
    assert values_of(broker, topic) == {b"%d" % part: 1 for part in range(4)}


@pytest.mark.parametrize("stopped_at", ["begun", "written"])
def test_a_process_that_was_only_stopped_writes_into_nobodys_transaction(
    broker: Broker, topic: str, names: Path, stopped_at: str
) -> None:
    """Its epoch and later ones are written by others meanwhile, with a task of it open and with none."""
    options = options_for(broker, topic)
    environment = {**os.environ, "TMPDIR": str(names.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TASK, broker.bootstrap_servers, topic, "0", "a", stopped_at]
    with Process(command, cwd=names.parent, environment=environment) as process:
        assert is_readable(process.stdout, 60), process.errors()
        assert process.stdout.readline().decode().strip() == stopped_at
        process.freeze()
        run_commit(options, [run_task(options, [b"a"], query=topic, attempt=1)])
        told = [run_task(options, [b"b"], query=topic, epoch=1)]
        process.thaw()
        process.stdin.close()
        process.wait()
        # Refused, or it has found that its epoch is decided without it.
        assert b"told" not in process.stdout.read(), process.errors()
        run_commit(options, told, epoch=1)
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}
    assert open_transactions(options) == set()


def test_a_killed_process_and_the_one_after_it_write_under_one_name(
    broker: Broker, topic: str, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is killed with rows in an open transaction; the kernel hands its name on."""
    options = options_for(broker, topic)
    environment = {**os.environ, "TMPDIR": str(names.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TASK, broker.bootstrap_servers, topic]
    with Process([*command, "0", "lost", "written"], cwd=names.parent, environment=environment) as process:
        eventually(lambda: open_transactions(options), timeout_s=60)
        process.kill()
    with in_another_process(monkeypatch):
        run_commit(options, [run_task(options, [b"a"], query=topic, attempt=1)])
    before = transactional_ids(options, topic)
    with Process([*command, "1", "b", ""], cwd=names.parent, environment=environment) as process:
        assert process.wait() == 0, process.errors()
        assert process.stdout.read() == b"told\n"
    assert transactional_ids(options, topic) == before
    assert values_of(broker, topic) == {b"a": 1}


def test_a_query_of_spark_whose_workers_end_between_its_batches_needs_the_ids_of_one(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    options = options_for(broker, topic)
    files = tmp_path / "in"
    files.mkdir()
    rows = spark.readStream.format("text").load(str(files)).repartition(2, rand())
    writer = rows.writeStream.format("riverlog").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    counts = []
    try:
        for number in range(8):
            (files / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(20)))
            query.processAllAvailable()
            counts.append(len(transactional_ids(options, str(query.id))))
            assert _end_workers() > 0
    finally:
        query.stop()
    # Two cores: no more than two processes have tasks at a time, and neither more than two of a batch.
    assert max(counts) <= 1 + 2 * 2, counts
    assert values_of(broker, topic) == {b"%d-%d" % (n, line): 1 for n in range(8) for line in range(20)}
    left = {each for each in open_transactions(options) if str(query.id) in each}
    assert left == set(), "other tests leave some of their own"


def _end_workers() -> int:
    """Those that Spark has forked for tasks and commits, all idle now; how many there were."""
    daemons = [each for each in psutil.Process().children(recursive=True) if "daemon" in _command(each)]
    pids = {each.pid for each in daemons}
    workers = [each for each in daemons if each.ppid() in pids]
    for worker in workers:
        worker.kill()
    psutil.wait_procs(workers, 60)
    return len(workers)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
