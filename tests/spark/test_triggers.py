"""Triggers that Spark keeps from sources in Python: it refuses them, as the docs say, and reads nothing."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from riverlog.testing import Broker


@pytest.mark.parametrize(
    ("trigger", "complaint"),
    [
        ({"continuous": "1 second"}, "riverlog does not support continuous processing"),
        ({"realTime": "5 seconds"}, "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"),
    ],
)
def test_spark_refuses_the_continuous_trigger_and_real_time_mode(
    spark: SparkSession, broker: Broker, tmp_path: Path, trigger: dict[str, str], complaint: str
) -> None:
    broker.create_topic(name := f"live-{next(iter(trigger))}")
    rows = (
        spark.readStream.format("riverlog")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", name)
        .load()
    )
    # A sink that is open to both, so that it is the source that is refused.
    writer = rows.writeStream.format("console").outputMode("update").trigger(**trigger)
    with pytest.raises(PySparkException) as caught:
        writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
    assert complaint in str(caught.value)
