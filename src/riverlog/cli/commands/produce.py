"""`riverlog produce`: lines of text or JSON in, records out.

Keys are placed by murmur2 as Kafka's Java client places them; librdkafka's own default (CRC-32) would send
the same key elsewhere than every other client does.
"""

import sys
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from riverlog.cli.asking.cluster import partitions_of
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.failures import usage
from riverlog.cli.old_letters import still_taking
from riverlog.cli.options import TopicArgument
from riverlog.cli.records.by_schema import Encoder, by_schema
from riverlog.cli.records.delivery import Delivery
from riverlog.cli.records.json_form import (
    Headers,
    InputRecord,
    RecordSyntaxError,
    decode_record,
    decode_value,
)
from riverlog.cli.records.lines import LineSyntax, parse_headers, unescape
from riverlog.cli.records.one_transaction import in_one_transaction
from riverlog.cli.records.sending import send_all, wait_for_deliveries
from riverlog.cli.records.source import read_records
from riverlog.cli.schema_options import RegistryOption, registry_at

if TYPE_CHECKING:
    from confluent_kafka import Producer

app = typer.Typer(add_completion=False)

# A batch is still bounded by batch.size; this only lets the broker be the judge of a large record.
LARGEST_RECORD_BYTES = 1_000_000_000
DELIVERY_GRACE_S = 5


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    NONE = "0"
    LEADER = "1"
    ALL = "all"
    ALL_AS_A_NUMBER = "-1"


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"
    JSON_VALUES = "json-values"


@app.command(cls=still_taking(file="-f"))
@connected
def produce(
    connection: Connection,
    topic: TopicArgument,
    file: Annotated[
        Path | None,
        typer.Option("--file", exists=True, dir_okay=False, help="Read this instead of stdin."),
    ] = None,
    input_format: Annotated[
        InputFormat,
        typer.Option(
            "-i",
            "--input",
            help="Lines of text, JSON lines as `consume -o json` prints, or JSON lines that are values.",
        ),
    ] = InputFormat.LINES,
    key_separator: Annotated[
        str | None, typer.Option("-K", "--key-separator", metavar="SEP", help="A line is KEY SEP VALUE.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("-k", "--key", metavar="KEY", help="The key of every record.")
    ] = None,
    delimiter: Annotated[
        str, typer.Option("-D", "--delimiter", metavar="SEP", help="What ends a record; \\0 and \\xHH too.")
    ] = "\\n",
    whole: Annotated[
        bool, typer.Option("--whole", help="All of stdin or of the file is one record.")
    ] = False,
    headers: Annotated[
        bool, typer.Option("--headers", help="A line begins with NAME=VALUE,NAME=VALUE and a TAB.")
    ] = False,
    header: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header for every record."),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", metavar="TEXT", help="A key or value of this text is null (tombstone)."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", min=0, help="Send to this partition, whatever the key.")
    ] = None,
    keep_partitions: Annotated[
        bool,
        typer.Option(
            "--keep-partitions/--ignore-partitions",
            help="With --input json: send to the partition that a record names, or place it by its key.",
        ),
    ] = True,
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="How to compress batches.")
    ] = Compression.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Who must have a record before it counts.")] = Acks.ALL,
    idempotent: Annotated[
        bool,
        typer.Option("--idempotent/--no-idempotent", help="Never write a record twice, even on a retry."),
    ] = False,
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="In one transaction: all records are seen, or none."),
    ] = False,
    places: Annotated[
        bool, typer.Option("--offsets", help="Print partition and offset of each record that has arrived.")
    ] = False,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema",
            metavar="SIDE=FORMAT[:WHICH]",
            help="Keys or values are JSON, and are sent by a schema of a registry: key=avro, value=json,"
            " value=protobuf. It is the newest of the subject TOPIC-key or TOPIC-value, or WHICH: its"
            " number, or a file, whose schema is registered. value=protobuf#NAME is a message that is not"
            " the first one."
            " May be repeated.",
        ),
    ] = None,
    schema_registry: RegistryOption = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Say at the end how many bytes were sent, and how fast.")
    ] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, metavar="N", help="At most N records a second.")
    ] = None,
) -> None:
    """Produce records from stdin or a file, one per line.

    Keys are placed by murmur2, as Kafka's Java client does.

    Examples:
      echo hello | riverlog produce greetings
      riverlog produce orders -K : --file orders.txt -z lz4
      echo 'gone:NULL' | riverlog produce users -K : --null NULL
      riverlog produce documents --key readme --whole --offsets < README.md
      riverlog produce orders --schema value=avro:order.avsc --schema-registry http://127.0.0.1:8081
      find . -print0 | riverlog produce names --delimiter '\\0' --transactional
      riverlog consume a --from start -e -o json | riverlog produce b -i json --ignore-partitions
    """
    common = parse_headers(",".join(header or []).encode())
    syntax = LineSyntax(_bytes(key_separator), _bytes(key), _bytes(null), headers, common)
    if input_format is not InputFormat.LINES and (key_separator or headers or null is not None):
        raise usage(
            f"--key-separator, --headers and --null are for lines of text, not --input {input_format}"
        )
    if key is not None and (key_separator is not None or input_format is not InputFormat.LINES):
        raise usage("--key is for lines without keys of their own")
    if (idempotent or transactional) and acks not in (Acks.ALL, Acks.ALL_AS_A_NUMBER):
        raise usage("--idempotent and --transactional need --acks all")
    connection.metadata()
    encoders = _encoders(connection, topic, schema or [], schema_registry)
    parse = _parser(connection, topic, input_format, syntax, keep_partitions, frozenset(encoders))
    settings = _settings(connection, compression, acks, idempotent)
    if transactional:
        settings["transactional.id"] = f"riverlog-cli-{uuid4()}"
    producer = connection.producer(settings)
    delivery = Delivery(connection, topic, shows_places=places)
    records = read_records(
        file,
        None if whole else unescape(delimiter).encode(),
        by_schema(parse, encoders) if encoders else parse,
    )
    transaction = in_one_transaction(connection, producer, delivery) if transactional else nullcontext()
    with transaction:
        _send(connection, producer, delivery, lambda: send_all(producer, delivery, records, partition, rate))
    if statistics:
        delivery.report_statistics()


def _encoders(
    connection: Connection, topic: str, schemas: list[str], registry: str | None
) -> dict[str, Encoder]:
    from riverlog.cli.schemas.choice import parse_choices

    choices = parse_choices(schemas)
    if not choices:
        return {}
    from riverlog.cli.schemas.sides import encoders

    found = encoders(registry_at(connection, registry), choices, topic)
    return {side.value: encode for side, encode in found.items()}


def _send(connection: Connection, producer: "Producer", delivery: Delivery, send: Callable[[], None]) -> None:
    """Send, wait for what is under way, also after an interrupt, and say what became of it."""
    try:
        try:
            send()
        finally:
            wait_for_deliveries(producer, connection.timeout_s + DELIVERY_GRACE_S)
    except KeyboardInterrupt:
        # Also one that cut the waiting short; the next one ends it for good.
        wait_for_deliveries(producer, connection.timeout_s + DELIVERY_GRACE_S)
        raise
    finally:
        delivery.report(ends_otherwise=sys.exception() is not None)
    delivery.raise_if_failed()


def _settings(
    connection: Connection, compression: Compression, acks: Acks, idempotent: bool
) -> dict[str, Any]:
    return {
        "partitioner": "murmur2_random",
        "compression.type": compression.value,
        "acks": acks.value,
        **({"enable.idempotence": True} if idempotent else {}),
        "message.max.bytes": LARGEST_RECORD_BYTES,
        "message.timeout.ms": max(1000, int(connection.timeout_s * 1000)),
        "topic.metadata.propagation.max.ms": max(1000, int(connection.timeout_s * 1000)),
        "linger.ms": 5,
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else unescape(text).encode()


def _parser(
    connection: Connection,
    topic: str,
    input_format: InputFormat,
    syntax: LineSyntax,
    keep_partitions: bool,
    documents: Collection[str],
) -> Callable[[bytes], InputRecord]:
    match input_format:
        case InputFormat.LINES:
            return syntax.parse
        case InputFormat.JSON:
            placement = _placement(connection, topic, keep_partitions)
            return _json_parser(syntax.common_headers, documents, *placement)
        case InputFormat.JSON_VALUES:
            return lambda line: replace(decode_value(line), headers=syntax.common_headers)


def _json_parser(
    common: Headers, documents: Collection[str], keep_partitions: bool, present: Collection[int] | None
) -> Callable[[bytes], InputRecord]:
    def parse(line: bytes) -> InputRecord:
        record = decode_record(line, documents)
        partition = record.partition if keep_partitions else None
        if partition is not None and present is not None and partition not in present:
            raise RecordSyntaxError(
                f"the topic has no partition {partition}, only 0 to {len(present) - 1}",
                remedy="--ignore-partitions places records by their keys; it and what follows were not sent",
            )
        return replace(record, headers=common + record.headers, partition=partition)

    return parse


def _placement(
    connection: Connection, topic: str, keep_partitions: bool
) -> tuple[bool, Collection[int] | None]:
    """Whether records keep their partitions, and which the topic has; None when it is not there yet."""
    if not keep_partitions or topic not in connection.metadata().topics:
        return keep_partitions, None
    return True, partitions_of(connection, topic)
