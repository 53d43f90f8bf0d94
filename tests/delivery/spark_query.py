"""Worker: a Spark driver with queries from topic to topic, repartitioned in between.

With points the sink is the one that stops there, without it is the plain one. A run takes what is there and
ends; the next order is waited for in between. All runs of a query share its checkpoint, also those of other
drivers.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import rand
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from riverlog.spark import ForeachBatchWriter
from tests.delivery.control import Control, options
from tests.delivery.spark_pausing import FORMAT, PausingDataSource, PausingForeachBatchWriter
from tests.waiting import eventually, looks

PARTITIONS = 2
STREAM, FOREACH_BATCH = "stream", "foreachBatch"
"""The ways that the rows take to the sink."""
_SLOW_MACHINE = "Python worker failed to connect back"
"""Spark gives the Python process of a source or sink ten seconds to start, and has no setting for it."""
_STARTS_MAX = 10
_RUN_S = 600.0
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.log.level": "ERROR",
    # A driver that lives for seconds gains nothing from code that is compiled well.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def session(master: str, directory: Path, more: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("delivery")
    for name, value in {**_SETTINGS, "spark.local.dir": str(directory / "scratch"), **more}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def repartitioned(frame: DataFrame, how: str) -> DataFrame:
    """At random each attempt puts other rows into a task; otherwise the same."""
    match how:
        case "random":
            return frame.repartition(PARTITIONS, rand())
        case "deterministic":
            return frame.repartition(PARTITIONS, "value")
        case _:
            raise ValueError(how)


class Driver:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._directory = Path(given["directory"])
        self._spark = session(given["master"], self._directory, given["settings"])
        if given["points"]:
            self._spark.dataSource.register(PausingDataSource)

    def run(self, names: list[str]) -> dict[str, str | None]:
        """Each query until it has read all; what went wrong with it, if anything."""
        queries: dict[str, StreamingQuery] = {}
        for name in names:
            queries[name] = self._start(name)
            self._wait_for_a_job(queries[name])
        starts = Counter(names)
        for _ in looks(_RUN_S, every_s=0.05):
            are_going_on = any(query.isActive for query in queries.values())
            for name, query in queries.items():
                if starts[name] < _STARTS_MAX and _SLOW_MACHINE in (_failure(query) or ""):
                    starts[name] += 1
                    queries[name] = self._start(name)
                    are_going_on = True
            if not are_going_on:
                return {name: _failure(query) for name, query in queries.items()}
        raise AssertionError(f"queries go on after {_RUN_S} s: {names}")

    def stop(self) -> None:
        self._spark.stop()

    def _wait_for_a_job(self, query: StreamingQuery) -> None:
        """Two queries that begin at the same moment can spoil something that Spark keeps for both.

        From then on no task of that driver can be serialised ("Illegal size 5 of collection, expected 6").
        """
        tracker = self._spark.sparkContext.statusTracker()
        eventually(
            lambda: not query.isActive or tracker.getJobIdsForGroup(str(query.runId)),
            "its first job did not begin",
            _RUN_S,
        )

    def _start(self, name: str) -> StreamingQuery:
        """The name says how it repartitions and names its topics."""
        rows = (
            self._spark.readStream.format("riverlog")
            .option("kafka.bootstrap.servers", self._given["bootstrap"])
            .option("subscribe", f"{name}-in")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self._given["rows_a_batch"])
            .load()
            .select("key", "value")
        )
        writer = self._writer(repartitioned(rows, name), name)
        return (
            writer.option("checkpointLocation", str(self._directory / "checkpoints" / name))
            .trigger(availableNow=True)
            .start()
        )

    def _writer(self, rows: DataFrame, name: str) -> DataStreamWriter:
        points = self._given["points"]
        pausing = {"points": points, "label": name} if points else {}
        options = {"kafka.bootstrap.servers": self._given["bootstrap"], "topic": f"{name}-out"}
        if self._given.get("way", STREAM) == FOREACH_BATCH:
            write = PausingForeachBatchWriter(options, pausing) if points else ForeachBatchWriter(options)
            return rows.writeStream.outputMode("update").foreachBatch(write)
        return rows.writeStream.format(FORMAT if points else "riverlog").options(**options, **pausing)


def _failure(query: StreamingQuery) -> str | None:
    """What ended it, if it was not the end of its rows."""
    failure = query.exception()
    return None if failure is None else str(failure)


def keep_stdout_clean() -> None:
    """What the JVM and its children print goes to stderr; stdout is the line to the test."""
    kept = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(kept, "w")


def main() -> None:
    keep_stdout_clean()
    control = Control()
    driver = Driver(options())
    while not (order := control.ask("ready")).get("finish"):
        control.tell("done", failures=driver.run(order["run"]))
    driver.stop()


if __name__ == "__main__":
    main()
