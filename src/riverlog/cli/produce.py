"""`riverlog produce`: lines of text or JSON in, records out.

Keys are placed by murmur2 as Kafka's Java client places them; librdkafka's own default (CRC-32) would send
the same key elsewhere than every other client does.
"""

import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riverlog.cli.connection import Connection, connected
from riverlog.cli.delivery import Delivery
from riverlog.cli.failures import usage
from riverlog.cli.interrupts import serve
from riverlog.cli.options import TopicArgument
from riverlog.cli.record_json import Headers, InputRecord, decode_record
from riverlog.cli.record_lines import LineSyntax, parse_headers, unescape
from riverlog.cli.record_source import read_records

if TYPE_CHECKING:
    from confluent_kafka import Producer

app = typer.Typer(add_completion=False)

# A batch is still bounded by batch.size; this only lets the broker be the judge of a large record.
LARGEST_RECORD_BYTES = 1_000_000_000
POLL_EVERY_RECORDS = 256
POLL_S = 0.1
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


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"


@app.command()
@connected
def produce(
    connection: Connection,
    topic: TopicArgument,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", exists=True, dir_okay=False, help="Read this instead of stdin."),
    ] = None,
    input_format: Annotated[
        InputFormat,
        typer.Option("-i", "--input", help="Lines of text, or JSON lines as `consume -o json` prints."),
    ] = InputFormat.LINES,
    key_separator: Annotated[
        str | None, typer.Option("-K", "--key-separator", metavar="SEP", help="A line is KEY SEP VALUE.")
    ] = None,
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
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="How to compress batches.")
    ] = Compression.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Who must have a record before it counts.")] = Acks.ALL,
    idempotent: Annotated[
        bool,
        typer.Option("--idempotent/--no-idempotent", help="Never write a record twice, even on a retry."),
    ] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, metavar="N", help="At most N records a second.")
    ] = None,
) -> None:
    """Produce records from stdin or a file, one per line.

    Keys are placed by murmur2, as Kafka's Java client does.

    Examples:
      echo hello | riverlog produce greetings
      riverlog produce orders -K : -f orders.txt -z lz4
      echo 'gone:NULL' | riverlog produce users -K : --null NULL
      riverlog consume a -o json --exit-at-end | riverlog produce b -i json
    """
    common = parse_headers(",".join(header or []).encode())
    syntax = LineSyntax(_bytes(key_separator), _bytes(null), headers, common)
    if input_format is InputFormat.JSON and (key_separator or headers or null is not None):
        raise usage("--key-separator, --headers and --null are for lines of text, not for --input json")
    if idempotent and acks is not Acks.ALL:
        raise usage("--idempotent needs --acks all")
    parse = _json_parser(common) if input_format is InputFormat.JSON else syntax.parse
    connection.metadata()
    producer = connection.producer(_settings(connection, compression, acks, idempotent))
    delivery = Delivery(connection, topic)
    try:
        try:
            _send_all(producer, delivery, read_records(file, parse), partition, rate)
        finally:
            _wait_for_deliveries(producer, connection.timeout_s + DELIVERY_GRACE_S)
    except KeyboardInterrupt:
        # Also one that cut the waiting short; the next one ends it for good.
        _wait_for_deliveries(producer, connection.timeout_s + DELIVERY_GRACE_S)
        raise
    finally:
        delivery.report()
    delivery.raise_if_failed()


def _settings(
    connection: Connection, compression: Compression, acks: Acks, idempotent: bool
) -> dict[str, Any]:
    return {
        "partitioner": "murmur2_random",
        "compression.type": compression.value,
        "acks": acks.value,
        "enable.idempotence": idempotent,
        "message.max.bytes": LARGEST_RECORD_BYTES,
        "message.timeout.ms": max(1000, int(connection.timeout_s * 1000)),
        "topic.metadata.propagation.max.ms": max(1000, int(connection.timeout_s * 1000)),
        "linger.ms": 5,
    }


def _send_all(
    producer: "Producer",
    delivery: Delivery,
    records: Iterator[InputRecord],
    partition: int | None,
    rate: float | None,
) -> None:
    started = time.monotonic()
    for number, record in enumerate(records):
        if rate is not None:
            _serve_until(producer, started + number / rate)
        elif number % POLL_EVERY_RECORDS == 0:
            serve(producer, 0)
        _send(producer, delivery, record, partition)
        if delivery.is_hopeless:
            return


def _send(producer: "Producer", delivery: Delivery, record: InputRecord, partition: int | None) -> None:
    chosen = partition if partition is not None else record.partition
    while True:
        try:
            producer.produce(
                delivery.topic,
                record.value,
                record.key,
                -1 if chosen is None else chosen,
                on_delivery=delivery.settle,
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
            )
        except BufferError:
            serve(producer, POLL_S)
        else:
            delivery.sent += 1
            return


def _wait_for_deliveries(producer: "Producer", seconds: float) -> None:
    """Until nothing is under way. Every record has its own deadline, so this ends."""
    deadline = time.monotonic() + seconds
    while len(producer) and time.monotonic() < deadline:
        serve(producer, POLL_S)


def _serve_until(producer: "Producer", moment: float) -> None:
    while (left_s := moment - time.monotonic()) > 0:
        serve(producer, min(left_s, POLL_S))
    serve(producer, 0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else unescape(text).encode()


def _json_parser(common: Headers) -> Callable[[bytes], InputRecord]:
    def parse(line: bytes) -> InputRecord:
        record = decode_record(line)
        return InputRecord(
            record.key, record.value, common + record.headers, record.partition, record.timestamp_ms
        )

    return parse
