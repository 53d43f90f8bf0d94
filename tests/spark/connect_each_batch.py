"""A query over Spark Connect that writes by `foreachBatch` what is in files, then tells what went wrong."""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from riverlog.spark import ForeachBatchWriter


def main(asked: dict[str, Any]) -> None:
    spark = SparkSession.builder.remote(asked["url"]).getOrCreate()
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(asked["files"])
    failure = ""
    try:
        (
            rows.writeStream.outputMode("update")
            .foreachBatch(ForeachBatchWriter(asked["options"], query_name=asked.get("query_name")))
            .option("checkpointLocation", asked["checkpoint"])
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
    except PySparkException as error:
        failure = str(error)
    sys.stdout.write(json.dumps(failure) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
