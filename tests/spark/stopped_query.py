"""A program: a stream from topic to topic, stopped while its tasks write. What Spark logs is on stderr.

The sink is Riverlog's, or that of Spark's connector, to see what Spark logs for any sink.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.connection import BOOTSTRAP, connection_of
from riverlog.spark.sink.decisions import PREFIX
from riverlog.spark.spark_home import light_home
from tests.spark.quick_spark import QUICK
from tests.waiting import eventually

ROWS: Final = 40_000
PARTITIONS: Final = 2
_STOPPING, _STOPPED = "=== stopping", "=== stopped"
_PATIENCE_S = 200


def errors_of_a_stop(
    bootstrap: str, source: str, target: str, directory: Path, *, sink: str = "riverlog", jars: str = ""
) -> list[str]:
    """What the whole of Spark logs at level ERROR from the stop until it is done, line by line."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, bootstrap, source, target, str(directory), sink, jars],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(light_home(directory / "home")),
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = done.stderr.partition(_STOPPING)[2].partition(_STOPPED)[0]
    return [line for line in told.splitlines() if " ERROR " in line]


def main(bootstrap: str, source: str, target: str, directory: Path, sink: str, jars: str) -> None:
    more = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100", "spark.jars": jars}
    spark = SparkSession.builder.master("local[2]").config(map={**QUICK, **more}).getOrCreate()
    address = {BOOTSTRAP: bootstrap}
    rows = (
        spark.readStream.format("riverlog")
        .options(**address, subscribe=source, startingOffsets="earliest")
        .load()
        .selectExpr("value", "java_method('java.lang.Thread', 'sleep', 5L) as pause")
        .filter("pause is not null")
    )
    query = (
        rows.writeStream.format(sink)
        .options(**address, topic=target, checkpointLocation=str(directory / "checkpoint"))
        .option("kafka.batch.size", "1000")
        .start()
    )
    eventually(lambda: _all_tasks_write(bootstrap, target, sink), timeout_s=_PATIENCE_S)
    sys.stderr.write(f"{_STOPPING}\n")
    query.stop()
    sys.stderr.write(f"{_STOPPED}\n")
    assert query.exception() is None
    spark.stop()


def _all_tasks_write(bootstrap: str, target: str, sink: str) -> bool:
    """One that begins only then may, on a busy machine, leave its transaction to the query's next start."""
    if sink != "riverlog":
        return _has_records(bootstrap, target)
    with Cluster(connection_of({BOOTSTRAP: bootstrap}, ()).settings) as cluster:
        return len(list_open(cluster, f"{PREFIX}/")) == PARTITIONS


def _has_records(bootstrap: str, topic: str) -> bool:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks"})
    try:
        return any(
            consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)[1]
            for index in range(PARTITIONS)
        )
    finally:
        consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5], sys.argv[6])
