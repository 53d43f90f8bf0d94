"""CSV values, one line each, by Spark's own parser, with an error that says what is wrong."""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from riverlog.spark.functions.dead_letters import ERROR
from riverlog.spark.functions.parser_options import CORRUPT, parser_options
from riverlog.spark.functions.required_fields import first_violation
from riverlog.spark.functions.schema_text import as_ddl

_PARSED = "__riverlog_parsed"
_SHOWN_CHARACTERS = 60


def with_csv(df: DataFrame, schema: StructType, into: str, options: Mapping[str, str]) -> DataFrame:
    """The columns `into` and `error` added; `into` is null where there is an error."""
    text = sf.col("value").cast("string")
    settings = parser_options(options)
    parsed = df.withColumn(_PARSED, sf.from_csv(text, as_ddl(_with_corrupt(schema)), settings))
    fields = {field.name: sf.col(_PARSED).getField(field.name) for field in schema.fields}
    decoded = sf.struct(*(column.alias(name) for name, column in fields.items()))
    is_bad = sf.col(_PARSED).isNull() | sf.col(_PARSED)[CORRUPT].isNotNull()
    error = (
        sf.when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        .when(is_bad, _reason(text, fields, schema, settings))
        .otherwise(first_violation(decoded, schema))
    )
    rows = parsed.withColumns({into: decoded, ERROR: error}).drop(_PARSED)
    return rows.withColumn(into, sf.when(sf.col(ERROR).isNull(), sf.col(into)))


def _with_corrupt(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def _reason(
    text: Column, fields: Mapping[str, Column], schema: StructType, settings: Mapping[str, str]
) -> Column:
    as_text = StructType([StructField(field.name, StringType()) for field in schema.fields])
    strings = sf.from_csv(text, as_ddl(_with_corrupt(as_text)), dict(settings))
    wrong_count = sf.lit(f"the value does not have {len(schema.fields)} fields")
    is_miscounted = strings.isNull() | strings[CORRUPT].isNotNull()
    mismatches = list(_mismatches(strings, fields, schema))
    return sf.when(is_miscounted, wrong_count).otherwise(
        sf.coalesce(*mismatches, sf.lit("the value is not CSV of the schema"))
    )


def _mismatches(strings: Column, fields: Mapping[str, Column], schema: StructType) -> Iterator[Column]:
    for field in schema.fields:
        raw = strings.getField(field.name)
        told = sf.lit(f"the field {field.name} is not {field.dataType.simpleString()}: ")
        is_other = raw.isNotNull() & fields[field.name].isNull()
        yield sf.when(is_other, sf.concat(told, sf.substring(raw, 1, _SHOWN_CHARACTERS)))
