"""Spark queries from topic to topic: every row exactly once, whoever is killed, fails or runs twice.

They write as streams or by `foreachBatch`. Two queries run side by side: one repartitions at random, so that
each attempt of a task has other rows, one always in the same way. What is in the end in the targets is read
by another client, committed records only.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.server import Server
from tests.delivery.spark_cluster import StandaloneCluster
from tests.delivery.spark_pausing import COMMITTING, DECIDED, ONE_ENDED, RAISING, WRITING, WRITTEN
from tests.delivery.spark_query import FOREACH_BATCH, STREAM
from tests.delivery.spark_run import PARTITIONS, QUERIES, SparkRun

ROOT = Path(__file__).parents[2]
SPECULATING = {
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}
COMMITTERS = {STREAM: "python_streaming_sink_runner", FOREACH_BATCH: "commit_data_source_write"}
SOURCE_PLANNER = "python_streaming_source_runner"
"""Modules of Spark that run in Python workers of the driver."""
RETRYING = "local[2,4]"
"""Two tasks at a time, four attempts of each."""
NAMES = {
    WRITING: "while a task writes",
    WRITTEN: "after a task's write",
    COMMITTING: "before commit",
    DECIDED: "between decision and EndTxn",
    ONE_ENDED: "between decision and the second EndTxn",
}
OPEN_MIN = {WRITING: 0, WRITTEN: 1, COMMITTING: PARTITIONS, DECIDED: PARTITIONS, ONE_ENDED: PARTITIONS - 1}
"""How many transactions must be open at each point, beside what is left of earlier kills."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "broker") as server:
        yield server


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", [STREAM, FOREACH_BATCH])
def test_each_row_is_written_once_over_kills_of_driver_and_broker_and_failing_tasks(
    server: Server, tmp_path: Path, chance: Seeded, way: str
) -> None:
    run = SparkRun(server, tmp_path, chance, RETRYING, way=way)
    run.make_topics()
    faults: Counter[str] = Counter()
    kills = [WRITTEN, COMMITTING, chance.dice.choice([DECIDED, ONE_ENDED])]
    chance.dice.shuffle(kills)
    try:
        for point in kills:
            run.start_driver()
            kill_driver(run, point, faults)
        run.start_driver()
        _overtake(run, faults)
        _fail_tasks(run, faults)
        broker_kills = [WRITING, chance.dice.choice([WRITTEN, COMMITTING]), DECIDED]
        for point in broker_kills:
            _kill_broker(server, run, point, faults)
        run.check_rows(*QUERIES)
    finally:
        run.close()
    assert faults.total() == (len(kills) + len(broker_kills) + 2) * len(QUERIES)
    report(
        f"Spark, exactly once, {way}",
        chance,
        faults=dict(faults),
        rows=run.rows * len(QUERIES),
        drivers=len(run.drivers),
        attempts=dict(run.attempts()),
        missing=0,
        doubled=0,
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", [STREAM, FOREACH_BATCH])
def test_each_row_is_written_once_when_tasks_run_twice_at_the_same_time(
    server: Server, tmp_path: Path, chance: Seeded, way: str
) -> None:
    spark_dir = tmp_path / "spark"
    spark_dir.mkdir()
    with StandaloneCluster(spark_dir, {"PYTHONPATH": str(ROOT)}) as cluster:
        run = SparkRun(server, tmp_path, chance, cluster.master, SPECULATING, way)
        run.make_topics()
        try:
            run.start_driver()
            for query in QUERIES:
                _speculate(run, query)
            run.work_off(*QUERIES)
            run.check_rows(*QUERIES)
        finally:
            run.close()
    assert run.attempts()["attempt 1"] >= len(QUERIES)
    report(
        f"Spark, speculative tasks, {way}",
        chance,
        rows=run.rows * len(QUERIES),
        attempts=dict(run.attempts()),
        missing=0,
        doubled=0,
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", [STREAM, FOREACH_BATCH])
def test_each_row_is_written_once_when_planners_are_killed_and_two_drivers_take_turns(
    server: Server, tmp_path: Path, chance: Seeded, way: str
) -> None:
    run = SparkRun(server, tmp_path, chance, RETRYING, way=way)
    run.make_topics()
    faults: Counter[str] = Counter()
    try:
        run.start_driver()
        for module in (COMMITTERS[way], SOURCE_PLANNER):
            _kill_planners(run, module, faults)
        first = run.driver
        run.start_driver()
        for turn, driver in enumerate([run.driver, first, run.driver, first]):
            run.add_rows()
            driver.run(*QUERIES)
            failures = {query: each for query, each in driver.outcomes().items() if each is not None}
            assert not failures, (turn, failures)
            faults["turns of two drivers"] += 1
        run.check_rows(*QUERIES)
    finally:
        run.close()
    report(
        f"Spark, planners killed and drivers in turns, {way}",
        chance,
        faults=dict(faults),
        rows=run.rows * len(QUERIES),
        missing=0,
        doubled=0,
    )


def _kill_planners(run: SparkRun, module: str, faults: Counter[str]) -> None:
    """Between two epochs of one run: what a planner has kept is gone, and Spark may notice when it asks."""
    with run.held_in_second_epoch(*QUERIES):
        killed = run.driver.kill_planners(module)
        # One that commits is ended by Spark itself when it had nothing to do for a minute.
        assert killed or module != SOURCE_PLANNER
        faults[f"{module} killed between epochs"] += killed
    failed = [query for query, failure in run.driver.outcomes().items() if failure is not None]
    if failed:
        run.work_off(*failed)
    run.check_rows(*QUERIES)


def _speculate(run: SparkRun, query: str) -> None:
    """A task and its copy write the same rows, both to the end; then both are let go."""
    with run.held_at(WRITTEN, query, count=2):
        first, second = run.points.reached(WRITTEN)
        assert (first["epoch"], first["partition"]) == (second["epoch"], second["partition"])
        assert {first["attempt"], second["attempt"]} == {0, 1}
        assert len(run.open_transactions(query)) == PARTITIONS + 1
    run.expect_success()


def kill_driver(run: SparkRun, point: str, faults: Counter[str]) -> None:
    with run.held_at(point, *QUERIES):
        _check_point(run, point)
        run.driver.kill()
    for query in QUERIES:
        faults[f"driver killed {NAMES[point]} ({query})"] += 1


def _overtake(run: SparkRun, faults: Counter[str]) -> None:
    """A driver that is thought dead wakes up after the next one has done its work."""
    with run.held_at(COMMITTING, *QUERIES):
        overtaken = run.driver
        run.start_driver()
        run.work_off(*QUERIES)
    for query, failure in overtaken.outcomes().items():
        assert failure is not None, f"{query}: a driver that was overtaken went on"
        assert re.search("another driver|is decided already", failure), failure
        faults[f"driver overtaken {NAMES[COMMITTING]} ({query})"] += 1
    overtaken.kill()
    run.check_rows(*QUERIES)


def _fail_tasks(run: SparkRun, faults: Counter[str]) -> None:
    """First attempts raise: one task's in the middle of its rows, the other's when all is written."""
    run.add_rows()
    before = run.attempts()["attempt 1"]
    with run.points.closed(RAISING):
        run.work_off(*QUERIES)
    for query in QUERIES:
        raised = {each["partition"] for each in run.points.reached(RAISING) if each["query"] == query}
        assert raised == set(range(PARTITIONS))
        faults[f"tasks raised and tried again ({query})"] += 1
    assert run.attempts()["attempt 1"] - before >= PARTITIONS * len(QUERIES)
    run.check_rows(*QUERIES)


def _kill_broker(server: Server, run: SparkRun, point: str, faults: Counter[str]) -> None:
    with run.held_at(point, *QUERIES):
        _check_point(run, point)
        server.restart()
    run.expect_success()
    for query in QUERIES:
        faults[f"broker killed {NAMES[point]} ({query})"] += 1


def _check_point(run: SparkRun, point: str) -> None:
    """What the broker says must fit where the queries are."""
    for query in QUERIES:
        reached = next(each for each in run.points.reached(point) if each["query"] == query)
        assert len(run.open_transactions(query)) >= OPEN_MIN[point]
        is_decided = run.decided_epoch(query) == reached["epoch"]
        assert is_decided == (point in (DECIDED, ONE_ENDED))
