"""JSON values by Spark's own parser, with an error that says what is wrong.

Spark's `from_json` stops after the first object and does not look at what follows it; the value is therefore
parsed as the one element of an array, where anything that follows makes the whole malformed. The reason for a
failure is looked for only in rows that failed.
"""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from riverlog.spark.functions.dead_letters import ERROR
from riverlog.spark.functions.parser_options import CORRUPT, parser_options
from riverlog.spark.functions.required_fields import first_violation

_PARSED = "__riverlog_parsed"
_SHOWN_CHARACTERS = 60


def with_json(df: DataFrame, schema: StructType, into: str, options: Mapping[str, str]) -> DataFrame:
    """The columns `into` and `error` added; `into` is null where there is an error."""
    text = sf.col("value").cast("string")
    # The names cannot meet a field of the user's: those are one level down.
    wrapper = StructType([StructField("one", ArrayType(schema)), StructField(CORRUPT, StringType())])
    wrapped = sf.concat(sf.lit('{"one":['), text, sf.lit("]}"))
    settings = parser_options(options)
    parsed = df.withColumn(_PARSED, sf.from_json(wrapped, wrapper, settings))
    decoded = sf.get(sf.col(_PARSED)["one"], sf.lit(0))
    is_one = sf.col(_PARSED)[CORRUPT].isNull() & (sf.size(sf.col(_PARSED)["one"]) == 1) & decoded.isNotNull()
    error = (
        sf.when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        .when(~is_one, _reason(text, sf.from_json(text, schema, settings), schema))
        .otherwise(first_violation(decoded, schema))
    )
    rows = parsed.withColumns({into: decoded, ERROR: error}).drop(_PARSED)
    return rows.withColumn(into, sf.when(sf.col(ERROR).isNull(), sf.col(into)))


def _reason(text: Column, leniently: Column, schema: StructType) -> Column:
    """`leniently` is the first object in the text, with a null for each field that is of another type."""
    is_well_formed = sf.try_parse_json(text).isNotNull()
    is_object = sf.startswith(sf.ltrim(text), sf.lit("{"))
    not_one = sf.lit("the value is not one JSON object")
    mismatch = sf.coalesce(*_mismatches(text, leniently, schema, ()), not_one)
    return (
        sf.when(is_well_formed & is_object, mismatch)
        .when(is_well_formed, not_one)
        .otherwise(sf.lit("the value is not well-formed JSON"))
    )


def _mismatches(text: Column, decoded: Column, schema: StructType, path: tuple[str, ...]) -> Iterator[Column]:
    """For each field: a sentence when the text has a value for it and the parser made nothing of it."""
    for field in schema.fields:
        names = (*path, field.name)
        child = decoded.getField(field.name)
        if "'" in field.name:
            continue
        raw = sf.get_json_object(text, "$" + "".join(f"['{name}']" for name in names))
        told = f"the field {'.'.join(names)} is not {field.dataType.simpleString()}: "
        is_other = raw.isNotNull() & child.isNull()
        yield sf.when(is_other, sf.concat(sf.lit(told), sf.substring(raw, 1, _SHOWN_CHARACTERS)))
        if isinstance(field.dataType, StructType):
            yield from _mismatches(text, child, field.dataType, names)
