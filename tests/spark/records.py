"""Rows with the columns that the source gives, made by hand."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

Header = tuple[str, bytes | None]
SOURCE_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def records(
    spark: SparkSession,
    values: Iterable[bytes | None],
    *,
    key: bytes | None = b"k",
    headers: Sequence[Header] | None = None,
    topic: str = "orders",
) -> DataFrame:
    """One record for each value, at offsets from 0, all in partition 2."""
    rows = [
        (key, value, topic, 2, offset, START, 0, list(headers) if headers is not None else None)
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, SOURCE_SCHEMA)
