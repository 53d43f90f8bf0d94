"""The value of each record as columns, and what could not be decoded as dead letters.

Nothing is lost between the two: each row of the input is either in `good` or in `dead`. A record without a
value (a tombstone) is a dead letter unless the caller asks to keep it, so `good` never holds a null by
accident. Fields that the schema calls NOT NULL must be there, which Spark's own parsers do not look at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from riverlog.spark.functions.avro_values import with_avro
from riverlog.spark.functions.csv_values import with_csv
from riverlog.spark.functions.dead_letters import ERROR, dead_letters
from riverlog.spark.functions.json_values import with_json
from riverlog.spark.functions.raw_values import with_raw
from riverlog.spark.functions.schema_text import as_struct

Format = Literal["json", "avro", "csv", "raw"]
Tombstones = Literal["dead", "keep"]
NO_VALUE = "the record has no value"


@dataclass(frozen=True, slots=True)
class Decoded:
    """One input in three views: every row with its `error` (null when it is good), the good, the dead."""

    rows: DataFrame

    @property
    def good(self) -> DataFrame:
        return self.rows.filter(sf.col(ERROR).isNull()).drop(ERROR)

    @property
    def dead(self) -> DataFrame:
        """Columns error, key, value, headers, topic, partition, offset, timestamp; none of the decoded."""
        return dead_letters(self.rows.filter(sf.col(ERROR).isNotNull()))


def decode(
    df: DataFrame,
    format: Format = "json",
    *,
    schema: str | StructType | Mapping[str, object] | None = None,
    registry: str | None = None,
    subject: str | None = None,
    into: str = "decoded",
    tombstones: Tombstones = "dead",
    options: Mapping[str, str] | None = None,
) -> Decoded:
    """Decode the column `value` into a struct column named `into`; all other columns stay.

    json, csv: `schema` is Spark's, as DDL text or a StructType; `options` go to Spark's own parser.
    avro: `schema` is Avro's, as JSON text or a dict. With `registry` (its address) the values carry the id of
    their schema and are resolved to `schema`, or else to the latest of `subject`.
    raw: no schema; `options={"encoding": "utf-8"}` gives text and makes dead letters of what is none.
    """
    _check(format, schema, registry, subject)
    if into in ("value", ERROR):
        raise ValueError(f"The decoded column cannot be called {into}. Give another name as `into`.")
    text_options = dict(options or {})
    match format:
        case "json":
            rows = with_json(df, _struct(schema), into, text_options)
        case "csv":
            rows = with_csv(df, _struct(schema), into, text_options)
        case "avro":
            assert not isinstance(schema, StructType)
            rows = with_avro(df, schema, registry, subject, into)
        case "raw":
            rows = with_raw(df, into, text_options)
        case _:
            assert_never(format)
    no_value = sf.col("value").isNull()
    reason = sf.lit(NO_VALUE) if tombstones == "dead" else sf.lit(None).cast("string")
    return Decoded(rows.withColumn(ERROR, sf.when(no_value, reason).otherwise(sf.col(ERROR))))


def _check(format: str, schema: object, registry: str | None, subject: str | None) -> None:
    if format not in ("json", "avro", "csv", "raw"):
        raise ValueError(f"The format {format!r} is unknown. Use json, avro, csv or raw.")
    if format != "avro" and (registry or subject):
        raise ValueError(f"A schema registry is for the format avro, not for {format}.")
    if format == "raw" and schema is not None:
        raise ValueError("The format raw has no schema. Leave `schema` out.")
    if format in ("json", "csv") and not isinstance(schema, (str, StructType)):
        raise ValueError(
            f"The format {format} needs `schema`: DDL text such as 'id BIGINT NOT NULL', or a StructType."
        )
    if format == "avro" and isinstance(schema, StructType):
        raise ValueError("The format avro needs an Avro schema (JSON text or a dict), not a StructType.")
    if format == "avro" and schema is None and not (registry and subject):
        raise ValueError("The format avro needs `schema`, or `registry` and `subject` to take it from.")


def _struct(schema: object) -> StructType:
    assert isinstance(schema, (str, StructType))
    return as_struct(schema)
