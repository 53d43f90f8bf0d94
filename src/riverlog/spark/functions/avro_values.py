"""Avro values, in plain encoding or with a registry's schema id in front, read by fastavro in Arrow batches.

Spark's own Avro functions need a jar; this needs only the `spark` extra on the workers. A value must be one
datum and nothing more. What does not fit its schema is that record's error; what has nothing to do with the
record (a registry that cannot be reached) fails the task.
"""

import io
import json
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa  # type: ignore[import-untyped]
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from riverlog.spark.functions.avro_schema import Conversion, load, reading_of, without_logical_types
from riverlog.spark.functions.dead_letters import ERROR
from riverlog.spark.functions.registry import Registry, SchemaUnknownError, registry_at

_MAGIC = 0
_ID_BYTES = 5
_PARSED = "__riverlog_parsed"
# What fastavro raises for bytes that are not of the schema; it has no base class of its own for them.
_BAD_VALUE = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    ArithmeticError,
    struct.error,
    SchemaResolutionError,
)


class NotThisFormatError(ValueError):
    """A value is no Avro of the expected kind; the message becomes the error of its dead letter."""


def with_avro(
    df: DataFrame,
    schema: str | Mapping[str, object] | None,
    registry: str | None,
    subject: str | None,
    into: str,
) -> DataFrame:
    """The columns `into` and `error` added; `into` is null where there is an error."""
    if schema is None:
        assert registry is not None
        assert subject is not None
        schema = Registry(registry).latest(subject)
    reader = load(schema)
    reading = reading_of(reader)
    key = _key(reader)
    _parsed(key)
    result = StructType([StructField(into, reading.spark_type), StructField(ERROR, StringType())])

    def decode_batch(values: pa.Array) -> pa.Array:
        return decode_values(values, key, registry, into)

    # Called deterministic it would run twice: once for the columns, once more in a filter on them.
    # The hints say which kind of function it is; Spark's stubs want it said again, and Spark then complains.
    decode_udf = arrow_udf(decode_batch, result).asNondeterministic()  # type: ignore[call-overload]
    parsed = df.withColumn(_PARSED, decode_udf(sf.col("value")))
    return parsed.withColumns({name: sf.col(_PARSED)[name] for name in (into, ERROR)}).drop(_PARSED)


def decode_values(values: pa.Array, reader_key: str, registry: str | None, into: str) -> pa.Array:
    """A struct array of (decoded, error), one of the two null; both are for a null value."""
    reading = _reading(reader_key)
    read = _wire_reader(reader_key, registry) if registry else _plain_reader(reader_key)
    rows: list[Any] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        row, error = (None, None) if value is None else _attempt(read, reading.convert, value)
        rows.append(row)
        errors.append(error)
    decoded_type = to_arrow_type(reading.spark_type, timezone="UTC")
    decoded = _as_arrow(rows, errors, decoded_type)
    return pa.StructArray.from_arrays([decoded, pa.array(errors, pa.string())], names=[into, ERROR])


def _attempt(read: Callable[[bytes], Any], convert: Conversion, value: bytes) -> tuple[Any, str | None]:
    try:
        datum = read(value)
        return (datum if convert is None else convert(datum)), None
    except (NotThisFormatError, SchemaUnknownError) as error:
        return None, str(error)
    except _BAD_VALUE as error:
        return None, f"the value is not Avro of the schema: {error or type(error).__name__}"


def _as_arrow(rows: list[Any], errors: list[str | None], decoded_type: pa.DataType) -> pa.Array:
    try:
        return pa.array(rows, decoded_type)
    except (pa.ArrowInvalid, OverflowError):
        # One value does not fit its type (a decimal with more digits than declared): find out which.
        for position, row in enumerate(rows):
            try:
                pa.array([row], decoded_type)
            except (pa.ArrowInvalid, OverflowError) as error:
                rows[position], errors[position] = None, f"the value does not fit the schema: {error}"
        return pa.array(rows, decoded_type)


def _plain_reader(reader_key: str) -> Callable[[bytes], Any]:
    schema = _parsed(reader_key)
    return lambda value: _one_datum(value, 0, schema, None)


def _wire_reader(reader_key: str, address: str) -> Callable[[bytes], Any]:
    registry, reader = registry_at(address), _parsed(reader_key)

    def read(value: bytes) -> Any:
        if len(value) < _ID_BYTES or value[0] != _MAGIC:
            raise NotThisFormatError("the value does not begin with a schema id of a registry")
        writer = registry.schema(int.from_bytes(value[1:_ID_BYTES], "big"))
        return _one_datum(value, _ID_BYTES, _parsed(writer), reader)

    return read


def _one_datum(value: bytes, start: int, writer: Any, reader: Any) -> Any:
    stream = io.BytesIO(value)
    stream.seek(start)
    datum = fastavro.schemaless_reader(stream, writer, reader)
    if left := len(value) - stream.tell():
        raise NotThisFormatError(f"the value has {left} bytes after the Avro datum")
    return datum


def _key(schema: Any) -> str:
    """The schema as text: it travels to the workers and names it in their caches."""
    return json.dumps(schema)


@cache
def _parsed(text: str) -> Any:
    try:
        return fastavro.parse_schema(without_logical_types(load(text)))
    except (SchemaParseException, UnknownType) as error:
        raise ValueError(f"The Avro schema cannot be used: {error}") from error


@cache
def _reading(text: str) -> Any:
    return reading_of(load(text))
