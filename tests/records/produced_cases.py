"""Produced bytes, good and bad, with the answer that Apache Kafka 4.3.1 gave to each as a Produce v9 frame.

`verdict` is the error code; `bad_records` the indices in `record_errors`; `strict` marks the few where we
refuse on purpose what Kafka takes (docs/adr/0004-validate-batches-whole.md says why).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cramjam

from riverlog.model.config.log_config import TimestampType
from riverlog.model.errors import ErrorCode
from riverlog.records.batch import HEADER_BYTES, read_header, set_crc, write_header
from riverlog.records.builder import ControlType, NewRecord, build_batch, build_control_batch
from riverlog.records.compression import Codec, compress
from riverlog.records.rules import BatchRules

HOUR_MS = 3_600_000
CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
MISTIMED = ErrorCode.INVALID_TIMESTAMP
OK = ErrorCode.NONE

TOPICS = {
    "plain": BatchRules(),
    "compacted": BatchRules(compacted=True),
    "append-time": BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
    "compacted-append-time": BatchRules(compacted=True, timestamp_type=TimestampType.LOG_APPEND_TIME),
    "no-older-than-1h": BatchRules(timestamp_before_max_ms=HOUR_MS),
    "lz4": BatchRules(codec=Codec.LZ4),
    "uncompressed": BatchRules(codec=Codec.NONE),
    "small": BatchRules(max_batch_bytes=300),
    "small-uncompressed": BatchRules(max_batch_bytes=300, codec=Codec.NONE),
}
TOPIC_CONFIGS = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted-append-time": {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
    "no-older-than-1h": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "lz4": {"compression.type": "lz4"},
    "uncompressed": {"compression.type": "uncompressed"},
    "small": {"max.message.bytes": "300"},
    "small-uncompressed": {"max.message.bytes": "300", "compression.type": "uncompressed"},
}


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    data: bytes
    verdict: ErrorCode
    topic: str = "plain"
    bad_records: tuple[int, ...] = ()
    needs_records: bool = False  # refused only because of a record, so only when records are read
    strict: bool = False


def batch(now_ms: int, codec: Codec = Codec.NONE, records: list[NewRecord] | None = None) -> bytearray:
    if records is None:
        records = [(now_ms, b"k%d" % i, b"v%d" % i, [("h", b"x")]) for i in range(3)]
    return bytearray(build_batch(records, codec=codec))


def edited(data: bytearray | bytes, **fields: Any) -> bytes:
    """Header fields changed and the CRC made right again."""
    changed = bytearray(data)
    fields.setdefault("size_bytes", len(changed))
    write_header(changed, 0, read_header(changed)._replace(**fields))
    return bytes(changed)


def with_length(data: bytearray, length: int) -> bytes:
    """Another length field, and the old CRC."""
    return bytes(data[:8] + struct.pack(">i", length) + data[12:])


def with_area(now_ms: int, area: bytes, count: int, codec: Codec) -> bytes:
    """A batch around a hand-made records area."""
    data = batch(now_ms)[:HEADER_BYTES] + compress(codec, area)
    return edited(data, record_count=count, last_offset_delta=count - 1, attributes=int(codec))


def zigzag(value: int) -> bytes:
    raw = (value << 1 ^ value >> 63) & (1 << 64) - 1
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    return bytes(out + bytes([raw]))


def body(
    *,
    attributes: int = 0,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = b"\2k",
    headers: bytes = b"\0",
) -> bytes:
    return bytes([attributes]) + timestamp + offset + key + b"\2v" + headers


def record(content: bytes) -> bytes:
    return zigzag(len(content)) + content


def cases(now_ms: int) -> Iterator[Case]:
    yield from framing_cases(now_ms)
    yield from header_cases(now_ms)
    for codec in Codec:
        yield from compressed_cases(now_ms, codec)
        yield from record_cases(now_ms, codec)
        yield from timestamp_cases(now_ms, codec)
        yield from key_cases(now_ms, codec)


def framing_cases(now_ms: int) -> Iterator[Case]:
    good = batch(now_ms)
    yield Case("good", bytes(good), OK)
    yield Case("bad CRC", bytes(good[:-1]) + b"q", CORRUPT)
    for magic, verdict in ((0, INVALID), (1, INVALID), (3, CORRUPT), (-1, CORRUPT), (127, CORRUPT)):
        yield Case(f"magic {magic}", edited(good, magic=magic), verdict)
    for size in (0, 16, 17, HEADER_BYTES, len(good) - 1):
        yield Case(f"cut to {size} bytes", bytes(good[:size]), INVALID)
    for length in (-1, 0, 13, 14, 20, 48, 49, 50, len(good) - 13):
        yield Case(f"length {length}", with_length(good, length), CORRUPT)
    yield Case("length one too great", with_length(good, len(good) - 11), INVALID)
    for length, first, second in (((1 << 31) - 1, UNKNOWN, UNKNOWN), ((1 << 31) - 13, INVALID, OK)):
        yield Case(f"length {length}", with_length(good, length), first)
        yield Case(f"second length {length}", bytes(good + with_length(good, length)), second)
    for size, verdict in ((26, UNKNOWN), (50, UNKNOWN), (51, CORRUPT), (60, CORRUPT)):
        short = bytearray(with_length(good[:size], size - 12))
        yield Case(f"batch of {size} bytes", bytes(short), verdict)
        yield Case(f"batch of {size} bytes and 10 more", bytes(short + bytes(10)), verdict)
    cut = good[:-1]
    cut[8:12] = struct.pack(">i", len(cut) - 12)
    set_crc(cut, 0)
    yield Case("last record cut, CRC right", bytes(cut), INVALID, needs_records=True)
    yield Case("5 bytes behind", bytes(good + b"abcde"), OK)
    yield Case("17 zero bytes behind", bytes(good + bytes(17)), CORRUPT)
    yield Case("100 bytes of ff behind", bytes(good + b"\xff" * 100), CORRUPT)
    yield Case("cut batch behind", bytes(good + good[:-2]), OK)
    yield Case("two batches", bytes(good + good), INVALID)
    yield Case("second batch of magic 3", bytes(good) + edited(good, magic=3), CORRUPT)
    large = batch(now_ms, records=[(now_ms, b"k", b"v" * 1000, ())])
    yield Case("too large", bytes(large), ErrorCode.MESSAGE_TOO_LARGE, "small")
    yield Case("too large, bad CRC", bytes(large[:-1]) + b"q", ErrorCode.MESSAGE_TOO_LARGE, "small")
    yield Case("too large, base offset 5", edited(large, base_offset=5), INVALID, "small")
    packed = batch(now_ms, Codec.GZIP, [(now_ms, b"k", b"v" * 1000, ())])
    yield Case("large when plain", bytes(packed), OK, "small")
    yield Case("too large when plain", bytes(packed), ErrorCode.MESSAGE_TOO_LARGE, "small-uncompressed")


def header_cases(now_ms: int) -> Iterator[Case]:
    good = batch(now_ms)
    for count in (2, 4, 0, -1):
        yield Case(f"count {count} of 3", edited(good, record_count=count), INVALID)
    yield Case("count 0, delta -1", edited(good, record_count=0, last_offset_delta=-1), INVALID)
    yield Case("delta -1", edited(good, last_offset_delta=-1), INVALID)
    for codec in (5, 6, 7):
        yield Case(f"codec {codec}", edited(good, attributes=codec), UNKNOWN)
    yield Case("codec 5 and a wrong count", edited(good, attributes=5, record_count=9), UNKNOWN)
    yield Case("codec 5 and base offset 5", edited(good, attributes=5, base_offset=5), INVALID)
    yield Case("control bit", edited(good, attributes=0x20), INVALID)
    marker = build_control_batch(
        ControlType.COMMIT, timestamp_ms=now_ms, producer_id=1, producer_epoch=0, coordinator_epoch=0
    )
    yield Case("control marker", edited(marker, attributes=0x20), INVALID)
    for sequence in (-1, -2):
        data = edited(good, producer_id=5, producer_epoch=0, base_sequence=sequence)
        yield Case(f"producer with sequence {sequence}", data, INVALID)
    yield Case("producer id -2", edited(good, producer_id=-2), OK)
    yield Case("epoch and sequence, no producer", edited(good, producer_epoch=3, base_sequence=0), OK)
    for offset in (5, -1):
        yield Case(f"base offset {offset}", edited(good, base_offset=offset), INVALID)
    yield Case("base offset 5, bad CRC", edited(good, base_offset=5)[:-1] + b"q", INVALID)
    yield Case("leader epoch 9", edited(good, leader_epoch=9), OK)
    yield Case("log-append-time bit", edited(good, attributes=8), OK)
    yield Case("log-append-time bit", edited(good, attributes=8), MISTIMED, "append-time", (0, 1, 2))
    for attributes in (0x40, 0x100, -0x8000):
        yield Case(f"attributes {attributes}", edited(good, attributes=attributes), OK)


def compressed_cases(now_ms: int, codec: Codec) -> Iterator[Case]:
    name = codec.name.lower()
    good = batch(now_ms, codec)
    for topic in ("plain", "lz4", "uncompressed", "compacted", "append-time"):
        yield Case(f"{name}: good", bytes(good), OK, topic)
        for count in (2, 4):
            data = edited(good, record_count=count, last_offset_delta=count - 1)
            yield Case(f"{name}: {count} of 3 records", data, INVALID, topic, needs_records=True)
    if codec is Codec.NONE:
        verdicts = {"garbage": INVALID, "empty": INVALID, "cut": INVALID, "tail": INVALID}
    else:
        verdicts = {"garbage": UNKNOWN, "empty": UNKNOWN, "cut": UNKNOWN, "tail": UNKNOWN}
    if codec is Codec.ZSTD:
        verdicts["empty"] = INVALID
    if codec in (Codec.GZIP, Codec.LZ4):
        verdicts["tail"] = OK
    areas: dict[str, bytes | bytearray] = {
        "garbage": b"garbage" * 4,
        "empty": b"",
        "cut": good[61:-5],
        "tail": good[61:] + b"tail",
    }
    for kind, area in areas.items():
        verdict = verdicts[kind]
        data = edited(good[:61] + area)
        yield Case(f"{name}: {kind} area", data, verdict, needs_records=True, strict=verdict is OK)
    if codec is Codec.GZIP:
        members = compress(codec, record(body())) + compress(codec, record(body(offset=b"\2")))
        data = edited(good[:61] + members, record_count=2, last_offset_delta=1)
        yield Case("gzip: two members", data, OK)
    if codec is Codec.SNAPPY:
        raw = bytes(cramjam.snappy.compress_raw(record(body())))
        yield Case("snappy: raw", edited(good[:61] + raw, record_count=1, last_offset_delta=0), OK)
    if codec is Codec.LZ4:
        for linked, verdict in ((True, UNKNOWN), (False, OK)):
            writer = cramjam.lz4.Compressor(level=1, content_checksum=True, block_linked=linked)
            writer.compress(record(body()))
            data = edited(good[:61] + bytes(writer.finish()), record_count=1, last_offset_delta=0)
            yield Case(f"lz4: linked={linked}, content checksum", data, verdict, needs_records=True)


def record_cases(now_ms: int, codec: Codec) -> Iterator[Case]:
    name = codec.name.lower()

    def case(
        what: str, area: bytes, verdict: ErrorCode, count: int = 1, topic: str = "plain", strict: bool = False
    ) -> Case:
        data = with_area(now_ms, area, count, codec)
        return Case(f"{name}: {what}", data, verdict, topic, needs_records=True, strict=strict)

    yield case("one record", record(body()), OK)
    yield case("header key not UTF-8", record(body(headers=b"\2\4\xff\xfe\2x")), OK)
    yield case("header without key", record(body(headers=b"\2\1\2x")), INVALID)
    for count in (-1, 5, (1 << 31) - 1):
        yield case(f"header count {count}", record(body(headers=zigzag(count))), INVALID)
    yield case("key length -2", record(body(key=b"\3")), OK)
    yield case("attributes ff", record(body(attributes=0xFF)), OK)
    yield case("one byte left in the record", zigzag(len(body()) + 1) + body() + b"z", INVALID)
    yield case("key longer than the record", record(body(key=zigzag(100) + b"k")), INVALID)
    yield case("key of 2^40 bytes", record(body(key=zigzag(1 << 40) + b"k")), INVALID)
    yield case("timestamp of 11 bytes", record(body(timestamp=b"\xff" * 10 + b"\0")), INVALID)
    yield case("number longer than needed", record(body(offset=b"\x80\0")), OK)
    # In a compressed batch Kafka does not look at a record's length, though its consumers need it.
    for length in (len(body()) - 1, -1, 0, (1 << 31) - 1):
        verdict = INVALID if codec is Codec.NONE else OK
        yield case(f"record length {length}", zigzag(length) + body(), verdict, strict=verdict is OK)
    for deltas in ((1,), (-1,), (0, 0), (1, 0), (0, 5)):
        area = b"".join(record(body(offset=zigzag(delta))) for delta in deltas)
        for topic in ("plain", "compacted", "lz4", "uncompressed"):
            rewritten = TOPICS[topic].codec not in (None, codec)
            verdict = OK if codec is Codec.NONE or rewritten else UNKNOWN
            yield case(f"offset deltas {deltas}", area, verdict, len(deltas), topic)


def timestamp_cases(now_ms: int, codec: Codec) -> Iterator[Case]:
    name = codec.name.lower()

    def data(*timestamps_ms: int) -> bytes:
        return bytes(batch(now_ms, codec, [(at, b"k", b"v", ()) for at in timestamps_ms]))

    late, old, bounded = now_ms + 2 * HOUR_MS, now_ms - 2 * HOUR_MS, "no-older-than-1h"
    yield Case(f"{name}: second in the future", data(now_ms, late, now_ms), MISTIMED, bad_records=(1,))
    yield Case(f"{name}: two in the future", data(late, now_ms, late), MISTIMED, bad_records=(0, 2))
    yield Case(f"{name}: first too old", data(old, now_ms), MISTIMED, bounded, (0,))
    yield Case(f"{name}: second too old", data(now_ms, old, now_ms), MISTIMED, bounded, (1,))
    yield Case(f"{name}: in the future", data(now_ms, late), OK, "append-time")
    for timestamp_ms in (0, -1, -5):
        yield Case(f"{name}: timestamp {timestamp_ms}", data(timestamp_ms), OK)
    yield Case(f"{name}: no timestamp", data(-1), OK, bounded)
    good = data(now_ms, now_ms)
    yield Case(f"{name}: claims the future", edited(good, max_timestamp_ms=late), OK)
    yield Case(f"{name}: claims no timestamp", edited(good, max_timestamp_ms=-1), OK)
    yield Case(f"{name}: claims the past", edited(good, max_timestamp_ms=old), OK, bounded)
    wrapped = with_area(now_ms, record(body(timestamp=zigzag(-(1 << 63)))), 1, codec)
    yield Case(f"{name}: delta -2^63", wrapped, MISTIMED, bad_records=(0,), needs_records=True)


def key_cases(now_ms: int, codec: Codec) -> Iterator[Case]:
    name = codec.name.lower()

    def data(*records: tuple[int, bytes | None]) -> bytes:
        return bytes(batch(now_ms, codec, [(at, key, b"v", ()) for at, key in records]))

    late = now_ms + 2 * HOUR_MS
    keyless = data((now_ms, b"k"), (now_ms, None), (now_ms, b"k"), (now_ms, None))
    yield Case(f"{name}: no keys", keyless, INVALID, "compacted", (1, 3))
    yield Case(f"{name}: no keys", keyless, OK)
    yield Case(f"{name}: empty key", data((now_ms, b"")), OK, "compacted")
    both = data((late, None), (late, b"k"))
    yield Case(f"{name}: no key, then the future", both, MISTIMED, "compacted", (0, 1))
    both = data((late, b"k"), (now_ms, None))
    yield Case(f"{name}: the future, then no key", both, MISTIMED, "compacted", (0, 1))
    stamped = edited(data((now_ms, None), (now_ms, b"k")), attributes=8 | codec)
    yield Case(f"{name}: no key, broker's time", stamped, MISTIMED, "compacted-append-time", (0, 1))
    yield Case(f"{name}: no key, broker's time", stamped, INVALID, "compacted", (0,))
    area = record(body(key=b"\1")) + record(body(offset=zigzag(5)))
    gap = with_area(now_ms, area, 2, codec)
    yield Case(f"{name}: no key, wrong offset", gap, INVALID, "compacted", (0,))
