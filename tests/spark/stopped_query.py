"""A program: a stream from topic to topic, stopped while its tasks write. What Spark logs is on stderr."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.spark.connection import BOOTSTRAP, connection_of
from riverlog.spark.sink.decisions import PREFIX
from tests.spark.quick_spark import QUICK
from tests.waiting import eventually

STOPPING, STOPPED = "=== stopping", "=== stopped"
_PATIENCE_S = 200


def main(bootstrap: str, source: str, target: str, directory: Path) -> None:
    small = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    spark = SparkSession.builder.master("local[2]").config(map={**QUICK, **small}).getOrCreate()
    address = {BOOTSTRAP: bootstrap}
    rows = (
        spark.readStream.format("riverlog")
        .options(**address, subscribe=source, startingOffsets="earliest")
        .load()
        .selectExpr("value", "java_method('java.lang.Thread', 'sleep', 5L) as pause")
        .filter("pause is not null")
    )
    query = (
        rows.writeStream.format("riverlog")
        .options(**address, topic=target, checkpointLocation=str(directory / "checkpoint"))
        .option("kafka.batch.size", "1000")
        .start()
    )
    with Cluster(connection_of(address, ()).settings) as cluster:
        eventually(lambda: list_open(cluster, f"{PREFIX}/{query.id}/"), timeout_s=_PATIENCE_S)
        sys.stderr.write(f"{STOPPING}\n")
        query.stop()
        sys.stderr.write(f"{STOPPED}\n")
        assert query.exception() is None
        assert list_open(cluster, f"{PREFIX}/") == set()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
