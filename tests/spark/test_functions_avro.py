"""Avro values by a given schema and in the wire format of a schema registry, which really answers."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession, types
from pyspark.sql import functions as sf

from riverlog.spark import decode
from riverlog.spark.functions.avro_schema import load, reading_of
from riverlog.spark.functions.registry import Registry, RegistryUnreachableError, SchemaUnknownError
from tests.spark.records import records
from tests.spark.schema_registry import ServedRegistry, serving_registry

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {
            "name": "weights",
            "type": {
                "type": "array",
                "items": {
                    "type": "fixed",
                    "name": "Weight",
                    "size": 4,
                    "logicalType": "decimal",
                    "precision": 6,
                    "scale": 3,
                },
            },
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": ["null", "State"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "number", "type": ["null", "int", "long"]},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {
            "name": "buyer",
            "type": {"type": "record", "name": "Buyer", "fields": [{"name": "name", "type": "string"}]},
        },
    ],
}
DATUM: dict[str, Any] = {
    "id": 7,
    "note": "now",
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "seen": datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
    "local": datetime(2026, 3, 1, 12),
    "day": date(1969, 12, 31),
    "price": Decimal("-12.34"),
    "weights": [Decimal("1.500"), Decimal("-0.001")],
    "state": "PAID",
    "before": "NEW",
    "hash": b"\x01\x02",
    "counts": {"a": 1},
    "number": 2**40,
    "clock": 1234,
    "buyer": {"name": "Ada"},
}


def encoded(schema: dict[str, Any], datum: object) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), datum)
    return stream.getvalue()


def in_wire_format(schema_id: int, schema: dict[str, Any], datum: object) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + encoded(schema, datum)


PLAIN_CLOCK = json.loads(json.dumps(ORDER).replace(', "logicalType": "time-millis"', ""))
VALUE = encoded(PLAIN_CLOCK, DATUM)


def test_every_kind_of_avro_field_arrives_with_its_spark_type(spark: SparkSession) -> None:
    decoded = decode(records(spark, [VALUE]), "avro", schema=json.dumps(ORDER))
    at_us, seen_us = (sf.unix_micros(f"decoded.{name}").alias(f"{name}_us") for name in ("at", "seen"))

    [row] = decoded.good.select("decoded.*", at_us, seen_us).collect()

    assert row.at_us == DATUM["at"].timestamp() * 1_000_000
    assert row.seen_us == row.at_us + 123456
    plain = {name: value for name, value in DATUM.items() if name not in ("at", "seen", "buyer")}
    assert {name: row[name] for name in plain} == plain
    assert row.buyer.asDict() == {"name": "Ada"}
    assert decoded.dead.count() == 0


def test_values_that_are_not_of_the_schema_are_dead_letters(spark: SparkSession) -> None:
    too_precise = encoded(
        {"type": "record", "name": "P", "fields": [{"name": "p", "type": "bytes"}]}, {"p": b"\x7f" * 8}
    )
    schema = {
        "type": "record",
        "name": "P",
        "fields": [
            {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0}}
        ],
    }
    good = encoded(schema, {"p": Decimal(12)})
    values = [good, b"", good[:-1], good + b"x", too_precise, b"\x02", None]

    decoded = decode(records(spark, values), "avro", schema=schema)

    assert [row.decoded.p for row in decoded.good.collect()] == [Decimal(12)]
    reasons = {row.offset: row.error for row in decoded.dead.collect()}
    assert sorted(reasons) == [1, 2, 3, 4, 5, 6]
    assert all(reasons[offset].startswith("the value is not Avro of the schema") for offset in (1, 2, 5))
    assert reasons[3] == "the value has 1 bytes after the Avro datum"
    assert reasons[4].startswith("the value does not fit the schema")
    assert reasons[6] == "the record has no value"


@pytest.fixture
def registry() -> Iterator[ServedRegistry]:
    with serving_registry() as served:
        yield served


def test_the_wire_format_resolves_each_writers_schema_to_the_readers(
    spark: SparkSession, registry: ServedRegistry
) -> None:
    old = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "int"}]}
    new = {
        "type": "record",
        "name": "E",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            {"name": "n", "type": "long"},
        ],
    }
    old_id, new_id = registry.add(old), registry.add(new, subject="events-value")
    foreign_id = registry.add({}, schemaType="PROTOBUF")
    values = [
        in_wire_format(old_id, old, {"n": 1}),
        *(in_wire_format(new_id, new, {"n": n, "at": 5000}) for n in range(2, 40)),
        in_wire_format(77, new, {"n": 3, "at": 0}),
        in_wire_format(foreign_id, new, {"n": 3, "at": 0}),
        encoded(new, {"n": 3, "at": 5000}),
        b"\x00\x00",
    ]

    rows = records(spark, values).coalesce(1)
    decoded = decode(rows, "avro", registry=registry.address, subject="events-value")

    # Not sorted by Spark, which would run the decoding once more to sample it.
    good = decoded.good.select("decoded.n", sf.unix_millis("decoded.at").alias("at")).collect()
    assert sorted(tuple(row) for row in good) == [(1, 0), *((n, 5000) for n in range(2, 40))]
    latest = "/subjects/events-value/versions/latest"
    assert sorted(registry.asked) == [*(f"/schemas/ids/{number}" for number in (1, 2, 3, 77)), latest]
    assert {row.offset: row.error for row in decoded.dead.collect()} == {
        39: "the registry does not know the schema id 77",
        40: f"the schema id {foreign_id} in the registry is PROTOBUF, not Avro",
        41: "the value does not begin with a schema id of a registry",
        42: "the value does not begin with a schema id of a registry",
    }


def test_a_registry_that_is_away_fails_the_query_instead_of_making_dead_letters(spark: SparkSession) -> None:
    rows = records(spark, [in_wire_format(1, PLAIN_CLOCK, DATUM)])
    decoded = decode(rows, "avro", schema=ORDER, registry="http://127.0.0.1:9")

    with pytest.raises(PythonException, match=r"http://127.0.0.1:9 did not give the schema id 1.*refused"):
        decoded.rows.collect()


def test_a_registry_is_asked_again_after_a_fault_and_not_after_a_refused_login(
    registry: ServedRegistry,
) -> None:
    schema_id = registry.add("string")
    client = Registry(registry.address.replace("//", "//me:s%40cret@"))
    registry.failures = [503]

    assert client.schema(schema_id) == '"string"'
    assert client.schema(schema_id) == '"string"'
    assert len(registry.asked) == 2
    assert registry.logins[0] == "Basic bWU6c0BjcmV0"
    registry.failures = [401, 401]
    with pytest.raises(RegistryUnreachableError, match="HTTP 401") as refused:
        client.latest("x")
    assert "cret" not in str(refused.value)
    assert len(registry.asked) == 3


def test_what_a_registry_does_not_know_is_asked_once_for_many_records(registry: ServedRegistry) -> None:
    client = Registry(registry.address)
    for _ in range(3):
        with pytest.raises(SchemaUnknownError, match="does not know the schema id 5"):
            client.schema(5)
    assert len(registry.asked) == 1


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": ["int", "string"]}, r"union \[\"int\", \"string\"\] \(\[\]\)"),
        (
            {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]},
            r"N holds itself \(next\)",
        ),
        ({"type": "record", "name": "N", "fields": [{"name": "a", "type": "Missing"}]}, "Missing"),
    ],
)
def test_a_schema_without_a_spark_type_is_refused_with_the_place(schema: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        reading_of(schema)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not an http or https address"):
        Registry("localhost:8081")


def test_a_bare_name_is_a_schema() -> None:
    assert reading_of(load("string")).spark_type == types.StringType()
