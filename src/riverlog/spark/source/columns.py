"""The columns of the source: those of Spark's Kafka connector, by name, order and type."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from riverlog.spark.connection import OptionError

_PLAIN: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def source_schema(include_headers: bool) -> StructType:
    fields = list(_PLAIN)
    if include_headers:
        fields.append(StructField("headers", ArrayType(_HEADER)))
    return StructType(fields)


def check_schema(given: StructType, include_headers: bool) -> None:
    """A schema of the user's own cannot be kept: columns mean what they mean."""
    expected = source_schema(include_headers)
    if [(field.name, field.dataType) for field in given] != [
        (field.name, field.dataType) for field in expected
    ]:
        raise OptionError(
            "schema",
            f"the source always has the columns {expected.simpleString()}",
            "leave out .schema(…) and select what you need",
        )
