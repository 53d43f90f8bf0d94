"""Values become columns; what does not fit becomes a dead letter that says why, and nothing is lost."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from riverlog.spark import Decoded, dead_letters_as_records, decode
from tests.spark.records import START, records

SCHEMA = (
    "id BIGINT NOT NULL, region STRING, cents INT, at TIMESTAMP, buyer STRUCT<name: STRING NOT NULL>, "
    "items ARRAY<STRUCT<sku: STRING NOT NULL, n: INT>>, tags MAP<STRING, INT>"
)


def errors(decoded: Decoded) -> dict[bytes | None, str]:
    return {
        None if row.value is None else bytes(row.value): row.error
        for row in decoded.dead.select("value", "error").collect()
    }


def test_json_values_become_a_struct_beside_the_columns_of_the_record(spark: SparkSession) -> None:
    value = (
        b' {"id": 7, "region": "eu", "at": "2026-03-01T10:00:00Z", "buyer": {"name": "Ada"},'
        b' "items": [{"sku": "x", "n": 2}], "tags": {"a": 1}, "unknown": true} '
    )
    decoded = decode(records(spark, [value]), schema=SCHEMA)

    [row] = decoded.good.select("*", sf.unix_millis("decoded.at").alias("at_ms")).collect()

    assert (row.decoded.id, row.decoded.region, row.decoded.cents) == (7, "eu", None)
    assert row.at_ms == datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp() * 1000
    assert row.decoded.buyer.name == "Ada"
    assert row.decoded["items"][0].asDict() == {"sku": "x", "n": 2}
    assert row.decoded.tags == {"a": 1}
    assert (bytes(row.key), bytes(row.value), row.topic, row.partition, row.offset) == (
        b"k",
        value,
        "orders",
        2,
        0,
    )
    assert "error" not in decoded.good.columns
    assert decoded.dead.count() == 0


JSON_FAULTS = {
    b"nonsense": "the value is not well-formed JSON",
    b'{"id": 1': "the value is not well-formed JSON",
    b'{"id": 1} trailing': "the value is not one JSON object",
    b'{"id": 1}{"id": 2}': "the value is not one JSON object",
    b'{"id": 1}, {"id": 2}': "the value is not one JSON object",
    b'[{"id": 1}]': "the value is not one JSON object",
    b'"text"': "the value is not one JSON object",
    b"": "the value is not well-formed JSON",
    b'{"id": "x"}': "the field id is not bigint: x",
    b'{"id": 1, "cents": 4.5}': "the field cents is not int: 4.5",
    b'{"id": 1, "cents": 99999999999}': "the field cents is not int: 99999999999",
    b'{"id": 1, "at": "noon"}': "the field at is not timestamp: noon",
    b'{"id": 1, "tags": {"a": "b"}}': 'the field tags is not map<string,int>: {"a":"b"}',
    b'{"region": "eu"}': "the field id is missing or null",
    b'{"id": null}': "the field id is missing or null",
    b'{"id": 1, "buyer": {}}': "the field buyer.name is missing or null",
    b'{"id": 1, "items": [{"sku": "x"}, {"n": 1}]}': "the field items[].sku is missing or null",
    b'{"id": 1, "region": "\xff"}': "the value is not UTF-8",
    None: "the record has no value",
}


def test_each_fault_in_json_is_a_dead_letter_with_its_own_reason(spark: SparkSession) -> None:
    good = [b'{"id": 1}', b'{"id": 2, "buyer": null, "items": null}']
    decoded = decode(records(spark, [*JSON_FAULTS, *good]), schema=SCHEMA)

    assert errors(decoded) == JSON_FAULTS
    assert [row.decoded.id for row in decoded.good.collect()] == [1, 2]


def test_csv_values_are_told_apart_from_lines_that_do_not_fit(spark: SparkSession) -> None:
    schema = "id BIGINT NOT NULL, `a name` STRING, cents DOUBLE"
    faults = {
        b"x;eu;1": "the field id is not bigint: x",
        b"1;eu": "the value does not have 3 fields",
        b"1;eu;2;3": "the value does not have 3 fields",
        b";eu;1": "the field id is missing or null",
        b"1;\xff;1": "the value is not UTF-8",
    }
    rows = records(spark, [b'1;"e;u";2.5', b"2;;", *faults])
    decoded = decode(rows, "csv", schema=schema, options={"sep": ";"}, into="order")

    assert errors(decoded) == faults
    assert [tuple(row.order) for row in decoded.good.collect()] == [(1, "e;u", 2.5), (2, None, None)]


def test_raw_values_stay_bytes_or_must_be_text(spark: SparkSession) -> None:
    rows = records(spark, [b"caf\xc3\xa9", b"\xff"])

    as_bytes = decode(rows, "raw")
    as_text = decode(rows, "raw", options={"encoding": "utf-8"})

    assert [bytes(row.decoded) for row in as_bytes.good.collect()] == [b"caf\xc3\xa9", b"\xff"]
    assert [row.decoded for row in as_text.good.collect()] == ["café"]
    assert errors(as_text) == {b"\xff": "the value is not UTF-8"}


def test_tombstones_are_kept_when_asked_for(spark: SparkSession) -> None:
    decoded = decode(records(spark, [None, b'{"id": 1}']), schema="id INT NOT NULL", tombstones="keep")

    assert [row.decoded for row in decoded.good.orderBy("offset").collect()] == [None, (1,)]
    assert decoded.dead.count() == 0


def test_a_dead_letter_keeps_all_that_the_record_came_with(spark: SparkSession) -> None:
    rows = records(spark, [b"?"], headers=[("trace", b"\x01"), ("trace", None)])
    [row] = decode(rows, schema="id INT").dead.select("*", sf.unix_millis("timestamp").alias("ms")).collect()

    assert (row.error, bytes(row.key), bytes(row.value)) == ("the value is not well-formed JSON", b"k", b"?")
    assert [tuple(header) for header in row.headers] == [("trace", b"\x01"), ("trace", None)]
    assert (row.topic, row.partition, row.offset) == ("orders", 2, 0)
    assert row.ms == START.timestamp() * 1000


def test_dead_letters_as_records_carry_the_reason_in_headers(spark: SparkSession) -> None:
    rows = records(spark, [b"?"], headers=[("trace", b"\x01")])
    dead = decode(rows, schema="id INT").dead

    [row] = dead_letters_as_records(dead, topic="dead").collect()

    assert (bytes(row.key), bytes(row.value), row.topic) == (b"k", b"?", "dead")
    assert {header.key: bytes(header.value) for header in row.headers} == {
        "trace": b"\x01",
        "dead-letter.error": b"the value is not well-formed JSON",
        "dead-letter.topic": b"orders",
        "dead-letter.partition": b"2",
        "dead-letter.offset": b"0",
        "dead-letter.timestamp": str(int(START.timestamp() * 1000)).encode(),
    }


def test_records_read_without_headers_make_dead_letters_too(spark: SparkSession) -> None:
    dead = decode(records(spark, [b"?"]).drop("headers"), schema="id INT").dead

    [row] = dead_letters_as_records(dead).collect()

    assert dead.first()["headers"] is None  # type: ignore[index]
    assert row.headers[0].key == "dead-letter.error"
    assert "topic" not in row


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"format": "xml"}, "json, avro, csv or raw"),
        ({"format": "json"}, "needs `schema`"),
        ({"format": "raw", "schema": "id INT"}, "has no schema"),
        ({"format": "raw", "options": {"encoding": "latin-1"}}, "utf-8"),
        ({"format": "raw", "options": {"sep": ";"}}, "has no option sep"),
        ({"format": "json", "schema": "id INT", "registry": "http://x"}, "for the format avro"),
        ({"format": "avro"}, "`registry` and `subject`"),
        ({"format": "json", "schema": "id INT", "options": {"mode": "FAILFAST"}}, "mode cannot be set"),
        ({"format": "json", "schema": "id INT", "into": "error"}, "another name"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    spark: SparkSession, arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        decode(records(spark, []), **arguments)  # type: ignore[arg-type]
