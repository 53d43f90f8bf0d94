"""Avro schemas: the Spark type of one, and what to do to the plain values of its logical types.

Logical types are taken off before anything is read, from the writer's schema and the reader's alike, and
applied afterwards by the reader's alone, as Avro's rules of resolution say. Spark has no type for recursive
records, for unions of unlike types and for `time`, `duration` and nanoseconds: the first two are refused, the
others stay the number or the bytes that they are made of.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.sql import types

Schema: TypeAlias = Any
Conversion: TypeAlias = Callable[[Any], Any] | None

_PRIMITIVES: Mapping[str, types.DataType] = {
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "string": types.StringType(),
}
# What Arrow takes for these types is the count of microseconds or days since 1970.
_MOMENTS: Mapping[tuple[str, str], tuple[types.DataType, Conversion]] = {
    ("long", "timestamp-millis"): (types.TimestampType(), lambda value: value * 1000),
    ("long", "timestamp-micros"): (types.TimestampType(), None),
    ("long", "local-timestamp-millis"): (types.TimestampNTZType(), lambda value: value * 1000),
    ("long", "local-timestamp-micros"): (types.TimestampNTZType(), None),
    ("int", "date"): (types.DateType(), None),
}
_DECIMAL_DIGITS_MAX = 38


@dataclass(frozen=True, slots=True)
class Reading:
    """How values of one schema are read: their Spark type, and a conversion where plain is not enough."""

    spark_type: types.DataType
    convert: Conversion


def load(schema: str | Mapping[str, object]) -> Schema:
    """The schema as plain dicts and lists. A bare name, such as string, is a schema too."""
    if not isinstance(schema, str):
        return json.loads(json.dumps(schema))
    return json.loads(schema) if schema.lstrip()[:1] in ("{", "[", '"') else schema


def without_logical_types(schema: Schema) -> Schema:
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: part for name, part in schema.items() if name not in ("logicalType", "precision", "scale")}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = without_logical_types(kept[name])
    if "fields" in kept:
        kept["fields"] = [without_logical_types(field) for field in kept["fields"]]
    return kept


def reading_of(schema: Schema) -> Reading:
    """Raises ValueError, naming the place, for what Spark has no type for."""
    return _Walk().read(schema, "", "")


class _Walk:
    """One pass over a schema; named types are known from where they are defined."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}
        self._open: list[str] = []

    def read(self, schema: Schema, namespace: str, path: str) -> Reading:
        if isinstance(schema, list):
            return self._union(schema, namespace, path)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return Reading(_PRIMITIVES[schema], None)
            return self._by_name(schema, namespace, path)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.read(kind, namespace, path)
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, path)
            case "array":
                inner = self.read(schema["items"], namespace, f"{path}[]")
                return Reading(types.ArrayType(inner.spark_type), _each(inner.convert))
            case "map":
                inner = self.read(schema["values"], namespace, f"{path}{{}}")
                return Reading(
                    types.MapType(types.StringType(), inner.spark_type), _each_value(inner.convert)
                )
            case "enum":
                self._define(schema, namespace)
                return Reading(types.StringType(), None)
            case "fixed" | "bytes":
                if kind == "fixed":
                    self._define(schema, namespace)
                return _decimal(schema) or Reading(types.BinaryType(), None)
            case _:
                logical = str(schema.get("logicalType"))
                if (moment := _MOMENTS.get((kind, logical))) is not None:
                    return Reading(*moment)
                return self.read(kind, namespace, path)

    def _define(self, schema: Schema, namespace: str) -> tuple[str, str]:
        space = schema.get("namespace", namespace)
        name = schema["name"] if "." in schema["name"] or not space else f"{space}.{schema['name']}"
        self._named[name] = schema
        return name, name.rpartition(".")[0]

    def _by_name(self, name: str, namespace: str, path: str) -> Reading:
        for full in (name, f"{namespace}.{name}"):
            if full in self._open:
                raise ValueError(f"The Avro type {full} holds itself ({path}). Spark has no recursive types.")
            if full in self._named:
                return self.read(self._named[full], full.rpartition(".")[0], path)
        raise ValueError(f"The Avro type {name} ({path or 'at the top'}) is not defined.")

    def _record(self, schema: Schema, namespace: str, path: str) -> Reading:
        name, space = self._define(schema, namespace)
        self._open.append(name)
        parts = {
            field["name"]: self.read(field["type"], space, f"{path}.{field['name']}".lstrip("."))
            for field in schema["fields"]
        }
        self._open.remove(name)
        fields = [types.StructField(name, part.spark_type) for name, part in parts.items()]
        conversions = {name: part.convert for name, part in parts.items() if part.convert is not None}
        return Reading(types.StructType(fields), _fields(conversions))

    def _union(self, branches: list[Schema], namespace: str, path: str) -> Reading:
        kept = [branch for branch in branches if branch != "null"]
        if len(kept) == 1:
            inner = self.read(kept[0], namespace, path)
            return Reading(inner.spark_type, _unless_null(inner.convert))
        for wide, names in (("long", {"int", "long"}), ("double", {"float", "double"})):
            if all(isinstance(branch, str) and branch in names for branch in kept) and kept:
                return Reading(_PRIMITIVES[wide], None)
        raise ValueError(
            f"The Avro union {json.dumps(branches)} ({path or 'at the top'}) has no Spark type. "
            "Use null and one other type, or numbers of one kind."
        )


def _decimal(schema: Schema) -> Reading | None:
    if schema.get("logicalType") != "decimal" or schema["precision"] > _DECIMAL_DIGITS_MAX:
        return None
    scale = schema.get("scale", 0)

    def from_bytes(value: bytes) -> Decimal:
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)

    return Reading(types.DecimalType(schema["precision"], scale), from_bytes)


def _unless_null(convert: Conversion) -> Conversion:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _each(convert: Conversion) -> Conversion:
    return None if convert is None else lambda values: [convert(value) for value in values]


def _each_value(convert: Conversion) -> Conversion:
    return (
        None if convert is None else lambda values: {name: convert(value) for name, value in values.items()}
    )


def _fields(conversions: Mapping[str, Callable[[Any], Any]]) -> Conversion:
    if not conversions:
        return None

    def convert(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, **{name: change(record[name]) for name, change in conversions.items()}}

    return convert
