"""Splitting by condition and dropping duplicates, on streams that really run."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from riverlog.spark import decode, dedup, latest_by_key, split
from tests.spark.records import records


def regions(spark: SparkSession) -> DataFrame:
    values = [b'{"region": "eu", "n": 1}', b'{"region": "us", "n": 20}', b'{"region": "??", "n": 3}', b"?"]
    return decode(records(spark, values), schema="region STRING, n INT").rows


def routed(rows: DataFrame) -> set[tuple[int, str]]:
    return {(row.offset, row.topic) for row in rows.select("offset", "topic").collect()}


ROUTES = {"dead": "error IS NOT NULL", "eu": "decoded.region = 'eu'", "us": "decoded.region = 'us'"}


def test_each_row_goes_to_the_first_topic_whose_condition_holds(spark: SparkSession) -> None:
    rows = split(regions(spark), {**ROUTES, "few": sf.col("decoded.n") < 10}, otherwise="rest")

    assert routed(rows) == {(0, "eu"), (1, "us"), (2, "few"), (3, "dead")}
    assert "partition" not in rows.columns


def test_rows_that_no_condition_takes_go_where_it_is_said(spark: SparkSession) -> None:
    assert (2, "rest") in routed(split(regions(spark), ROUTES, otherwise="rest"))
    assert {offset for offset, _ in routed(split(regions(spark), ROUTES, otherwise=None))} == {0, 1, 3}


def test_a_row_can_go_to_every_topic_whose_condition_holds(spark: SparkSession) -> None:
    rows = split(
        regions(spark), {"eu": "decoded.region = 'eu'", "few": "decoded.n < 10"}, otherwise="x", every=True
    )

    assert routed(rows) == {(0, "eu"), (0, "few"), (1, "x"), (2, "few"), (3, "x")}


def test_no_routes_are_a_mistake(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="no routes"):
        split(regions(spark), {}, otherwise="rest")


def test_duplicates_within_the_watermark_are_dropped_also_in_a_later_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, schema = tmp_path / "in", "at TIMESTAMP, order STRUCT<id: INT>"
    source.mkdir()
    lines = [
        ["12:00:00 1", "12:00:01 2", "12:00:02 1"],
        ["12:00:30 2", "12:00:31 3", "12:00:31 null", "12:00:31 null"],
    ]
    for number, batch in enumerate(lines):
        parts = (line.split() for line in batch)
        text = "\n".join(f'{{"at": "2026-03-01T{at}Z", "order": {{"id": {id}}}}}' for at, id in parts)
        (source / f"{number}.json").write_text(text)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(source))
    rows = dedup(stream, "order.id", time="at", within="1 minute")

    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(60)

    out = spark.read.parquet(str(tmp_path / "out"))
    assert out.columns == ["at", "order"]
    assert sorted(str(row.order.id) for row in out.collect()) == ["1", "2", "3", "None"]


def test_dedup_without_keys_is_a_mistake(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="at least one key"):
        dedup(stream, [])


def test_the_latest_record_of_each_key_makes_a_table(spark: SparkSession) -> None:
    both = records(spark, [b"1", b"2", None], key=b"gone").union(records(spark, [b"1", b"2"], key=b"kept"))

    [row] = latest_by_key(both).collect()

    assert (bytes(row.key), bytes(row.value), row.offset) == (b"kept", b"2", 1)
