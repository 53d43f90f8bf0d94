"""A topic as Parquet files: every record with its key, value, headers, time, partition and offset.

The files lie under `topic=…/date=…`, the date being the record's in UTC. Spark's file sink writes each batch
of a query exactly once; the list of files that count is its own, under `_spark_metadata`, and `read_archive`
follows it, so files of a batch that failed are not seen.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from riverlog.spark.functions.dead_letters import HEADERS_TYPE, select_with_optional

PARTITION_COLUMNS = ("topic", "date")
_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": HEADERS_TYPE,
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
RECORD_COLUMNS = tuple(_TYPES)
_MS_PER_DAY = 86_400_000


def archive(
    df: DataFrame, path: str, *, checkpoint: str | None = None, every: str | None = None
) -> StreamingQuery:
    """Start a query that archives the stream `df`, which has the source's columns, under `path`.

    Without `every` it works until it has caught up with the topic and ends; with it, such as "1 minute", it
    goes on and adds files that often. The checkpoint is `path`/_checkpoint unless another is given.
    """
    if not df.isStreaming:
        raise ValueError(
            "archive is for streams. Write a batch with "
            "archive_rows(df).write.partitionBy('topic', 'date').parquet(path)."
        )
    writer = (
        archive_rows(df)
        .writeStream.format("parquet")
        .partitionBy(*PARTITION_COLUMNS)
        .option("path", path)
        .option("checkpointLocation", checkpoint or f"{path.rstrip('/')}/_checkpoint")
    )
    triggered = writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)
    return triggered.start()


def archive_rows(df: DataFrame) -> DataFrame:
    """The rows as an archive holds them. For pipelines, whose engine starts the queries itself."""
    optional = {name: _TYPES[name] for name in ("headers", "timestampType")}
    kept = select_with_optional(df, RECORD_COLUMNS, optional)
    return kept.withColumn("date", utc_date(sf.col("timestamp")))


def read_archive(spark: SparkSession, path: str) -> DataFrame:
    """The records of an archive as a batch, with the source's columns, and `date` to read less."""
    # Types are given, not found out: a topic called 2024 is still text.
    ddl = ", ".join(f"{name} {kind}" for name, kind in (*_TYPES.items(), ("date", "date")))
    return spark.read.schema(ddl).parquet(path)


def utc_date(timestamp: Column) -> Column:
    """Not `to_date`, which depends on the time zone of the session."""
    return sf.date_from_unix_date(sf.floor(sf.unix_millis(timestamp) / _MS_PER_DAY).cast("int"))
