"""The options and columns of the sink, as Spark's Kafka connector names them, read into values and checked.

Pure. What is wrong is an `OptionError` of one line that names the option or column and what to do.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
)

from riverlog.client.cluster import ClientSettings
from riverlog.client.core.producing import IN_FLIGHT_MAX
from riverlog.client.writing import WriteSettings
from riverlog.records.compression import Codec
from riverlog.spark.connection import Connection, OptionError, check_names, connection_of, whole_number

KAFKA_KEYS: Final = frozenset(
    {
        "acks",
        "batch.size",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "linger.ms",
        "buffer.memory",
        "delivery.timeout.ms",
        "transaction.timeout.ms",
    }
)
_BATCH_BYTES: Final = 1_000_000
"""Below the largest batch that a broker takes by default; Kafka's own 16 KB are for many small senders."""
_RECORD_BYTES_MAX: Final = 1_048_576
_GUARANTEE: Final = "deliveryGuarantee"
_ACCEPTED: Final = "acceptLostEpoch"
_CHECKPOINT: Final = "checkpointlocation"
_NAMES: Final = ("topic", _GUARANTEE, "writeId", _ACCEPTED, "checkpointLocation")
_TAG_LETTERS: Final = 10
_LEVELS: Final = {Codec.GZIP: "gzip", Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}
_ALL_ACKS: Final = ("all", "-1")


class Guarantee(Enum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    client: ClientSettings
    topic: str | None
    """Where every row goes; None: where its column `topic` says."""
    guarantee: Guarantee
    write_id: str | None
    """Names a batch write, so that running it again does nothing."""
    writing: WriteSettings
    is_idempotent: bool
    batch_bytes: int
    record_bytes_max: int
    codec: Codec
    level: int | None
    transaction_timeout_ms: int | None
    """Asked for where a transaction cannot be left open for ever; None: the longest allowed."""
    accepted_epoch: int | None
    """An epoch of which somebody knows that rows are missing, and wants the query to go on."""
    tag: str | None
    """Stands for all options of a stream, its checkpoint among them; None where they do not name one."""


def sink_options(options: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    lower = {key.lower(): value for key, value in options.items()}
    check_names(lower, _NAMES, "sink")
    connection = connection_of(lower, KAFKA_KEYS)
    guarantee = _guarantee(lower)
    write_id = lower.get("writeid")
    if write_id is not None and (is_stream or not write_id.strip()):
        problem = "names a batch write" if is_stream else "is empty"
        raise OptionError("writeId", problem, "leave it out: a stream is known by its checkpoint")
    if write_id is not None and guarantee is Guarantee.AT_LEAST_ONCE:
        raise OptionError("writeId", "is of no use with at-least-once", "use deliveryGuarantee=exactly-once")
    accepted = lower.get(_ACCEPTED.lower())
    acks, is_idempotent = _acks(connection, guarantee)
    codec, level = _compression(connection)
    in_flight = connection.number("max.in.flight.requests.per.connection", IN_FLIGHT_MAX, 1)
    return SinkOptions(
        client=connection.settings,
        topic=lower.get("topic"),
        guarantee=guarantee,
        write_id=write_id,
        writing=WriteSettings(acks, min(in_flight, IN_FLIGHT_MAX)),
        is_idempotent=is_idempotent,
        batch_bytes=connection.number("batch.size", _BATCH_BYTES, 1),
        record_bytes_max=connection.number("max.request.size", _RECORD_BYTES_MAX, 1),
        codec=codec,
        level=level,
        transaction_timeout_ms=connection.number("transaction.timeout.ms", 0, 1) or None,
        tag=_tag(lower) if is_stream else None,
        accepted_epoch=None if accepted is None else whole_number(_ACCEPTED, accepted, 0),
    )


def _tag(lower: Mapping[str, str]) -> str | None:
    if _CHECKPOINT not in lower:
        return None
    return hashlib.sha256(repr(sorted(lower.items())).encode()).hexdigest()[:_TAG_LETTERS]


def check_columns(schema: StructType, topic: str | None) -> None:
    """The same columns with the same types as Spark's connector; others are left aside."""
    types: dict[str, DataType] = {field.name.lower(): field.dataType for field in schema.fields}
    if "value" not in types:
        raise OptionError("value", "this column is missing", "select a column of bytes or text as value")
    if topic is None and "topic" not in types:
        raise OptionError("topic", "is missing", "give the option topic, or a column topic")
    for name in ("key", "value"):
        if name in types and not isinstance(types[name], (StringType, BinaryType)):
            raise _wrong_type(name, types[name], "string or binary")
    if "topic" in types and not isinstance(types["topic"], StringType):
        raise _wrong_type("topic", types["topic"], "string")
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise _wrong_type("partition", types["partition"], "int")
    if "headers" in types and not _is_headers(types["headers"]):
        raise _wrong_type("headers", types["headers"], "array<struct<key:string,value:binary>>")


def _wrong_type(name: str, found: DataType, wanted: str) -> OptionError:
    return OptionError(name, f"this column is {found.simpleString()}", f"cast it to {wanted}")


def _is_headers(found: DataType) -> bool:
    if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
        return False
    fields = found.elementType.fields
    return [(each.name, type(each.dataType)) for each in fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def _guarantee(lower: Mapping[str, str]) -> Guarantee:
    given = lower.get(_GUARANTEE.lower(), Guarantee.EXACTLY_ONCE.value)
    for each in Guarantee:
        if given.lower() == each.value:
            return each
    known = " or ".join(each.value for each in Guarantee)
    raise OptionError(_GUARANTEE, f"{given!r} is not known", f"use {known}")


def _acks(connection: Connection, guarantee: Guarantee) -> tuple[int, bool]:
    acks = connection.text("acks", "all", ("all", "-1", "1", "0"))
    wants_idempotence = connection.flag("enable.idempotence", acks in _ALL_ACKS)
    if acks == "0":
        raise OptionError("kafka.acks", "0 would lose rows unnoticed", "use all, or 1 with at-least-once")
    if guarantee is Guarantee.EXACTLY_ONCE and not (acks in _ALL_ACKS and wants_idempotence):
        option = "kafka.enable.idempotence" if acks in _ALL_ACKS else "kafka.acks"
        raise OptionError(
            option, "is not enough for exactly-once", "leave it out, or use deliveryGuarantee=at-least-once"
        )
    if acks == "1" and wants_idempotence:
        raise OptionError(
            "kafka.acks", "an idempotent producer needs all", "set kafka.enable.idempotence to false"
        )
    return (-1 if acks in _ALL_ACKS else 1), wants_idempotence


def _compression(connection: Connection) -> tuple[Codec, int | None]:
    codecs = {codec.name.lower(): codec for codec in Codec}
    codec = codecs[connection.text("compression.type", "none", tuple(codecs))]
    key = f"compression.{_LEVELS[codec]}.level" if codec in _LEVELS else None
    if key is None or key not in connection.properties:
        return codec, None
    return codec, connection.number(key, 0, -(1 << 17))
