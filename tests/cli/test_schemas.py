"""`produce` and `consume` by the schemas of a registry: Avro, Protobuf and JSON, and what goes wrong."""

import base64
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # type: ignore[import-untyped]

from riverlog.cli.failures import ExitCode
from tests.cli.running import CommandLine, Outcome
from tests.cli.schema_registry import SchemaRegistry, serving

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "item", "type": "string"},
        {"name": "count", "type": "long", "default": 1},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
JSON_ORDER = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["item"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with serving() as registry:
        yield registry


@pytest.fixture
def cli(riverlog: CommandLine) -> CommandLine:
    return riverlog


@pytest.fixture
def topic(cli: CommandLine) -> str:
    return cli.topic()


def proto_file(name: str = "orders.proto") -> FileDescriptorProto:
    """message Order {string item = 1; int64 count = 2; Line line = 3; Timestamp at = 4; message Line {…}} and
    message Refund {string reason = 1;}"""
    file = FileDescriptorProto(name=name, package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    order.field.add(name="item", number=1, type=9, label=1, json_name="item")
    order.field.add(name="unit_count", number=2, type=3, label=1, json_name="unitCount")
    order.field.add(name="line", number=3, type=11, label=1, type_name=".shop.Order.Line", json_name="line")
    order.field.add(
        name="at", number=4, type=11, label=1, type_name=".google.protobuf.Timestamp", json_name="at"
    )
    order.nested_type.add(name="Line").field.add(name="text", number=1, type=9, label=1, json_name="text")
    file.message_type.add(name="Refund").field.add(
        name="reason", number=1, type=9, label=1, json_name="reason"
    )
    return file


def compiled(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def message_class(name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    from google.protobuf import timestamp_pb2

    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(proto_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def produce(
    cli: CommandLine, registry: SchemaRegistry, *arguments: str, stdin: str, code: int = 0
) -> Outcome:
    return cli("produce", *arguments, "--schema-registry", registry.url, stdin=stdin, code=code)


def consume(cli: CommandLine, registry: SchemaRegistry, topic: str, *options: str, code: int = 0) -> Outcome:
    arguments = ("consume", topic, "--from", "start", "-e", "--schema-registry", registry.url, *options)
    return cli(*arguments, code=code)


def raw_values(cli: CommandLine, topic: str) -> list[bytes]:
    lines = cli.consume(topic, "-f", "%s{base64}\\n").stdout.splitlines()
    return [base64.b64decode(line) for line in lines]


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def send(cli: CommandLine, topic: str, *values: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": cli.bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def test_avro_that_is_produced_is_read_by_other_clients_and_by_consume(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(ORDER))
    produce(
        cli,
        registry,
        topic,
        "--schema",
        f"value=avro:{file}",
        stdin='{"item": "apples", "count": 3}\n{"item": "pears", "note": "ripe"}\n',
    )
    client = SchemaRegistryClient({"url": registry.url})
    read = AvroDeserializer(client)
    assert [read(value, context(topic)) for value in raw_values(cli, topic)] == [
        {"item": "apples", "count": 3, "note": None},
        {"item": "pears", "count": 1, "note": "ripe"},
    ]
    shown = consume(cli, registry, topic, "--schema", "value=avro").json_lines
    assert shown == [
        {"item": "apples", "count": 3, "note": None},
        {"item": "pears", "count": 1, "note": "ripe"},
    ]


def test_avro_of_another_client_is_consumed_and_copied_byte_for_byte(
    cli: CommandLine, registry: SchemaRegistry, topic: str
) -> None:
    schema = {
        "type": "record",
        "name": "Everything",
        "fields": [
            {"name": "raw", "type": "bytes"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "tags", "type": {"type": "map", "values": ["null", "int", "string"]}},
            {"name": "next", "type": ["null", "Everything"], "default": None},
            {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        ],
    }
    write = AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(schema))
    inner = {"raw": b"", "at": 0, "price": b"\x01", "tags": {}, "next": None, "four": b"abcd"}
    document = {
        **inner,
        "raw": b"\x00\xff\xe9",
        "at": 1_700_000_000_000,
        "tags": {"a": 1, "b": "two", "c": None},
        "next": inner,
    }
    send(cli, topic, write(document, context(topic)), None)
    [shown, deleted] = consume(cli, registry, topic, "--schema", "value=avro", "-o", "json").json_lines
    assert shown["value"]["raw"] == "\x00ÿé"
    assert shown["value"]["at"] == 1_700_000_000_000
    assert shown["value"]["next"]["four"] == "abcd"
    assert deleted["value"] is None
    copy = cli.topic()
    text = consume(cli, registry, topic, "--schema", "value=avro", "-o", "json").stdout
    number = registry.subjects[f"{topic}-value"][0]
    produce(cli, registry, copy, "-i", "json", "--schema", f"value=avro:{number}", stdin=text)
    assert raw_values(cli, copy) == raw_values(cli, topic)


def test_schemas_that_refer_to_others(cli: CommandLine, registry: SchemaRegistry, topic: str) -> None:
    registry.register(
        "line", json.dumps({"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]})
    )
    outer = {
        "type": "record",
        "name": "shop.Sheet",
        "fields": [{"name": "lines", "type": {"type": "array", "items": "shop.Line"}}],
    }
    used = [{"name": "shop.Line", "subject": "line", "version": 1}]
    registry.register(f"{topic}-value", json.dumps(outer), references=used)
    produce(cli, registry, topic, "--schema", "value=avro", stdin='{"lines": [{"n": 1}, {"n": 2}]}\n')
    assert consume(cli, registry, topic, "--schema", "value=avro").json_lines == [
        {"lines": [{"n": 1}, {"n": 2}]}
    ]

    registry.register("json-line", json.dumps({"type": "integer"}), "JSON")
    used = [{"name": "line.json", "subject": "json-line", "version": 1}]
    sheet = {"type": "array", "items": {"$ref": "line.json"}}
    number = registry.register("json-sheet", json.dumps(sheet), "JSON", used)
    other = cli.topic()
    produce(cli, registry, other, "--schema", f"value=json:{number}", stdin="[1, 2]\n")
    failed = produce(cli, registry, other, "--schema", f"value=json:{number}", stdin='[1]\n["x"]\n', code=1)
    assert "line 2: the value does not fit" in failed.stderr


def test_json_is_held_to_its_schema(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps(JSON_ORDER))
    options = (topic, "-K", "=", "--schema", f"value=json:{file}")
    produce(cli, registry, *options, stdin='a={"item": "apples"}\n')
    failed = produce(cli, registry, *options, stdin='b={"item": "x"}\nc={"item": 7}\n', code=1)
    assert "stdin, line 2: the value does not fit schema" in failed.stderr
    assert "it.item: 7 is not of type 'string'" in failed.stderr
    write = JSONSerializer(json.dumps(JSON_ORDER), SchemaRegistryClient({"url": registry.url}))
    send(cli, topic, write({"item": "plums", "count": 2}, context(topic)))
    shown = consume(cli, registry, topic, "--schema", "value=json", "-f", "%k %s\\n").stdout
    assert shown == 'a {"item":"apples"}\nb {"item":"x"}\n {"item":"plums","count":2}\n'


def test_protobuf_to_and_from_other_clients(cli: CommandLine, registry: SchemaRegistry, topic: str) -> None:
    order, refund, line = (message_class(f"shop.{name}") for name in ("Order", "Refund", "Order.Line"))
    client = SchemaRegistryClient({"url": registry.url})
    plain = {"use.deprecated.format": False}
    sent = [
        order(item="apples", unit_count=3, line={"text": "x"}),
        refund(reason="rotten"),
        line(text="alone"),
    ]
    for message in sent:
        write = ProtobufSerializer(type(message), client, plain)
        send(cli, topic, write(message, context(topic)))
    assert consume(cli, registry, topic, "--schema", "value=protobuf").json_lines == [
        {"item": "apples", "unit_count": "3", "line": {"text": "x"}},
        {"reason": "rotten"},
        {"text": "alone"},
    ]
    other = cli.topic()
    number = registry.register(f"{other}-value", compiled(proto_file()), "PROTOBUF")
    at = "2026-01-31T12:00:00Z"
    produce(cli, registry, other, "--schema", "value=protobuf", stdin=f'{{"item": "pears", "at": "{at}"}}\n')
    by_name = f"value=protobuf:{number}#shop.Refund"
    produce(cli, registry, other, "--schema", by_name, stdin='{"reason": "late"}\n')
    first, second = raw_values(cli, other)
    assert ProtobufDeserializer(order, plain, client)(first, context(other)).item == "pears"
    assert ProtobufDeserializer(refund, plain, client)(second, context(other)).reason == "late"
    shown = consume(cli, registry, other, "--schema", "value=protobuf").json_lines
    assert shown == [{"item": "pears", "at": at}, {"reason": "late"}]
    failed = produce(cli, registry, other, "--schema", "value=protobuf", stdin='{"itm": "x"}\n', code=1)
    assert 'no field named "itm"' in failed.stderr
    failed = produce(cli, registry, other, "--schema", "value=protobuf#shop.Nothing", stdin="{}\n", code=1)
    assert "has no message 'shop.Nothing', only shop.Order, shop.Order.Line, shop.Refund" in failed.stderr


PROTO_TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";

message Order {  // As `proto_file`, but for people.
  message Line { string text = 1; }
  string item = 1;
  int64 unit_count = 2;
  Line line = 3;
  google.protobuf.Timestamp at = 4;
  repeated string tags = 5;
}
message Refund { string reason = 1; }
"""


def test_the_text_of_a_protobuf_schema_is_registered_and_used(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "orders.proto"
    file.write_text(PROTO_TEXT)
    sent = {"item": "pears", "unit_count": "3", "line": {"text": "x"}, "at": "2026-01-31T12:00:00Z"}
    with_tags = {**sent, "tags": ["a", "b"]}
    produce(cli, registry, topic, "--schema", f"value=protobuf:{file}", stdin=json.dumps(with_tags))
    produce(
        cli, registry, topic, "--schema", f"value=protobuf:{file}#shop.Refund", stdin='{"reason": "late"}'
    )

    [number] = registry.subjects[f"{topic}-value"]
    assert registry.schemas[number - 1]["schema"] == PROTO_TEXT
    assert consume(cli, registry, topic, "--schema", "value=protobuf").json_lines == [
        with_tags,
        {"reason": "late"},
    ]
    [first, _] = raw_values(cli, topic)
    client = SchemaRegistryClient({"url": registry.url})
    read = ProtobufDeserializer(message_class("shop.Order"), {"use.deprecated.format": False}, client)
    order = read(first, context(topic))
    assert (order.item, order.unit_count, order.line.text) == ("pears", 3, "x")


def test_the_text_of_a_protobuf_schema_that_is_none_is_told(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "orders.proto"
    file.write_text("message Order { string item }")
    failed = produce(cli, registry, topic, "--schema", f"value=protobuf:{file}", stdin="{}\n", code=1)
    assert f"refuses the schema for {topic}-value: Invalid schema" in failed.stderr
    assert f"{topic}-value" not in registry.subjects


def test_keys_have_schemas_too(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "key.avsc").write_text('"string"')
    (tmp_path / "value.json").write_text('{"type": "integer"}')
    schemas = ("--schema", f"key=avro:{tmp_path}/key.avsc", "--schema", f"value=json:{tmp_path}/value.json")
    produce(cli, registry, topic, "-K", "=", *schemas, stdin='"a"=1\n')
    produce(cli, registry, topic, "-i", "json", *schemas, stdin='{"key": "b", "value": 2}\n')
    both = ("--schema", "key=avro", "--schema", "value=json")
    assert consume(cli, registry, topic, *both, "-f", "%k %s %K\\n").stdout == '"a" 1 7\n"b" 2 7\n'
    assert sorted(registry.subjects.keys() & {f"{topic}-key", f"{topic}-value"}) == [
        f"{topic}-key",
        f"{topic}-value",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"item": 5}', "shop.Order.item is <5> of type <class 'int'> expected string"),
        ('{"count": 5}', "it has no 'item'"),
        ('{"item": "x", "cuont": 5}', "it has 'cuont', which shop.Order does not have"),
        ('{"item": "x", "note": 5}', "it.note fits no branch of a union"),
        ('{"item": "x", "count": 1.5}', "expected long"),
        ('["x"]', "it is no object, as shop.Order is"),
        ("apples", "is not JSON"),
    ],
)
def test_what_does_not_fit_is_an_error_of_its_line(
    cli: CommandLine, registry: SchemaRegistry, topic: str, line: str, reason: str
) -> None:
    registry.register(f"{topic}-value", json.dumps(ORDER))
    failed = produce(
        cli, registry, topic, "--schema", "value=avro", stdin=f'{{"item": "good"}}\n{line}\n', code=1
    )
    assert "stdin, line 2: the value " in failed.stderr
    assert reason in failed.stderr
    assert "1 of 1 records delivered" in failed.stderr
    assert len(raw_values(cli, topic)) == 1


def test_a_record_without_the_framing_is_named_with_its_place(
    cli: CommandLine, registry: SchemaRegistry, topic: str
) -> None:
    registry.register(f"{topic}-value", json.dumps(ORDER))
    produce(cli, registry, topic, "--schema", "value=avro", stdin='{"item": "good"}\n')
    send(cli, topic, b'{"item": "plain"}')
    failed = consume(cli, registry, topic, "--schema", "value=avro", code=1)
    assert json.loads(failed.stdout)["item"] == "good", "what came before it is printed"
    assert f"{topic}-0 at offset 1: the value is not in the framing of a registry" in failed.stderr
    assert "0x7b, not 0x00" in failed.stderr
    send(cli, topic, b"\0\0")
    failed = consume(cli, registry, topic, "--schema", "value=avro", "--from", "2", code=1)
    assert "it has 2 bytes, fewer than five" in failed.stderr


def test_unknown_numbers_other_formats_and_damage(
    cli: CommandLine, registry: SchemaRegistry, topic: str
) -> None:
    number = registry.register(f"{topic}-value", json.dumps(ORDER))
    send(cli, topic, struct.pack(">bI", 0, 77_777) + b"\x02a\x02\x00")
    failed = consume(cli, registry, topic, "--schema", "value=avro", code=ExitCode.NOT_FOUND)
    assert (
        f"{topic}-0 at offset 0: the schema registry at {registry.url} has no schema 77777" in failed.stderr
    )
    other = cli.topic()
    send(cli, other, struct.pack(">bI", 0, number) + b"\x06ab")
    failed = consume(cli, registry, other, "--schema", "value=avro", code=1)
    assert f"the value names schema {number}, but was not written by it" in failed.stderr
    failed = consume(cli, registry, other, "--schema", "value=protobuf", code=1)
    assert f"schema {number} is avro, not protobuf" in failed.stderr
    assert "--schema …=avro" in failed.stderr


def test_a_group_does_not_commit_what_could_not_be_read(
    cli: CommandLine, registry: SchemaRegistry, topic: str
) -> None:
    registry.register(f"{topic}-value", json.dumps(ORDER))
    produce(cli, registry, topic, "--schema", "value=avro", stdin='{"item": "good"}\n')
    send(cli, topic, b"bad")
    group = f"group-{topic}"
    consume(cli, registry, topic, "--schema", "value=avro", "-g", group, code=1)
    [row] = cli("group", "describe", group, "-o", "json").json[0]["partitions"]
    assert (row["offset"], row["lag"]) == (1, 1)


def test_the_registry_that_is_away_unknown_or_no_registry(
    cli: CommandLine, registry: SchemaRegistry, topic: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{unused.getsockname()[1]}"
    arguments = ("produce", topic, "--schema", "value=avro", "--schema-registry")
    failed = cli(*arguments, away, stdin="{}\n", code=ExitCode.CONNECTION)
    assert f"the schema registry at {away} cannot be reached" in failed.stderr
    failed = cli(*arguments, registry.url, stdin="{}\n", code=ExitCode.NOT_FOUND)
    assert f"has no subject {topic}-value" in failed.stderr
    assert "--schema SIDE=FORMAT:FILE" in failed.stderr
    failed = cli(*arguments, f"{registry.url}/elsewhere", stdin="{}\n", code=1)
    assert "is no schema registry (HTTP status 404)" in failed.stderr
    failed = cli(*arguments, "registry.example", stdin="{}\n", code=ExitCode.USAGE)
    assert "Invalid url" in failed.stderr
    failed = cli("produce", topic, "--schema", "value=avro", stdin="{}\n", code=ExitCode.USAGE)
    assert "--schema-registry http://HOST:PORT" in failed.stderr
    assert raw_values(cli, topic) == []


def test_credentials_of_the_registry(cli: CommandLine, topic: str) -> None:
    with serving() as registry:
        registry.register(f"{topic}-value", json.dumps(ORDER))
        registry.password = base64.b64encode(b"me:secret").decode()
        arguments = ("produce", topic, "--schema", "value=avro", "--schema-registry", registry.url)
        failed = cli(*arguments, stdin="{}\n", code=ExitCode.AUTHENTICATION)
        assert "-X schema.registry.basic.auth.user.info=USER:PASSWORD" in failed.stderr
        allowed = ("-X", "schema.registry.basic.auth.user.info=me:secret")
        cli(*arguments, *allowed, stdin='{"item": "x"}\n')
        in_url = registry.url.replace("//", "//me:secret@")
        shown = cli(
            "consume", topic, "--from", "start", "-e", "--schema", "value=avro", "--schema-registry", in_url
        )
        assert shown.json["item"] == "x"
        registry.password = "changed"
        failed = cli(
            "consume",
            topic,
            "--from",
            "start",
            "-e",
            "--schema",
            "value=avro",
            "--schema-registry",
            in_url,
            code=3,
        )
        assert "secret" not in failed.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("avro", "says neither key= nor value="),
        ("value=thrift", "has no format 'thrift'"),
        ("value=avro#X", "only protobuf has messages"),
        ("value=avro:no-such-file", "there is no file no-such-file"),
    ],
)
def test_choices_that_mean_nothing(cli: CommandLine, text: str, said: str) -> None:
    failed = cli("produce", "t", "--schema", text, "--schema-registry", "http://x", code=ExitCode.USAGE)
    assert said in failed.stderr
    twice = ("--schema", "value=avro", "--schema", "value=json")
    assert "twice" in cli("consume", "t", *twice, code=ExitCode.USAGE).stderr


def test_a_schema_that_is_none_is_refused(
    cli: CommandLine, registry: SchemaRegistry, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "order.avsc"
    file.write_text("record Order")
    failed = produce(cli, registry, topic, "--schema", f"value=avro:{file}", stdin="{}\n", code=1)
    assert f"refuses the schema for {topic}-value: Invalid schema" in failed.stderr
    number = registry.register(f"{topic}-value", '{"type": "recrod"}')
    failed = produce(cli, registry, topic, "--schema", "value=avro", stdin="{}\n", code=1)
    assert f"schema {number} is no Avro schema" in failed.stderr


def test_a_schema_is_asked_for_once(cli: CommandLine, topic: str) -> None:
    with serving() as registry:
        registry.register(f"{topic}-value", json.dumps(ORDER))
        produce(cli, registry, topic, "--schema", "value=avro", stdin='{"item": "x"}\n' * 50)
        assert registry.requests == [f"GET /subjects/{topic}-value/versions/latest"]
        registry.requests.clear()
        assert len(consume(cli, registry, topic, "--schema", "value=avro").json_lines) == 50
        assert registry.requests == ["GET /schemas/ids/1"]
