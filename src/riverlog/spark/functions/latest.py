"""A topic as a table: the latest record of each key. What compaction keeps, whether it has run or not."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

_LATEST = "__riverlog_latest"


def latest_by_key(df: DataFrame) -> DataFrame:
    """One row for each key that has a value now: a key whose last record is a tombstone is not there.

    `df` is a batch read of the topic (`spark.read`). Records of one key lie in one partition, so the highest
    offset is the latest. Joined to a stream, the table is read anew for each of its batches.
    """
    latest = df.groupBy("key").agg(sf.max_by(sf.struct("*"), "offset").alias(_LATEST))
    return latest.select(f"{_LATEST}.*").filter(sf.col("value").isNotNull())
