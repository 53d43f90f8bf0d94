"""A query from topic to topic with a `ProgressListener` on it; as a program, over Spark Connect."""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from riverlog.spark import ProgressListener
from tests.waiting import eventually


def run_listened(spark: SparkSession, asked: Mapping[str, str]) -> None:
    """Read what is there in two batches, and return when the listener has heard that it ended."""
    brokers = {"kafka.bootstrap.servers": asked["bootstrap"]}
    listener = ProgressListener(prometheus_file=asked["file"], brokers=brokers)
    spark.streams.addListener(listener)
    try:
        query = (
            spark.readStream.format("riverlog")
            .options(**brokers)
            .option("subscribe", asked["source"])
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", asked["rows_a_batch"])
            .load()
            .select("value")
            .writeStream.format("riverlog")
            .options(**brokers)
            .option("topic", asked["target"])
            .option("checkpointLocation", asked["checkpoint"])
            .queryName(asked["name"])
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        eventually(lambda: _has_ended(listener, asked["name"]), "no word of the end", 60)
    finally:
        spark.streams.removeListener(listener)
        listener.close()


def _has_ended(listener: ProgressListener, name: str) -> bool:
    return any(each.name == name and not each.is_running for each in listener.figures())


def main(asked: Mapping[str, Any]) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    run_listened(SparkSession.builder.remote(asked["url"]).getOrCreate(), asked)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
