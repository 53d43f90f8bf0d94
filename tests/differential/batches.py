"""Record batches, written from a description and read back into one, by code that shares nothing with ours.

A description is what a sequence holds and a recording shows::

    {"records": [{"key": "k", "value": "v", "timestamp": 1000, "headers": [["name", "value"]]}],
     "codec": "gzip", "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}

Every field of the batch header can be forced to a wrong value (``"force": {"magic": 1}``), and the
checksum is computed afterwards unless it is forced itself, so that one lie is told at a time.

Reading back decompresses: two brokers that recompress alike may differ in the compressed bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import cramjam
import crc32c

Json = Any

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_HEADER = struct.Struct(">qiibIhiqqqhii")
_FIELDS = (
    "base_offset",
    "batch_length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
_AFTER_CRC = 21
_LENGTH_AND_OFFSET = 12


def build(description: Mapping[str, Json]) -> bytes:
    records = description.get("records", [])
    first = records[0].get("timestamp", 1000) if records else -1
    section = b"".join(_record(index, first, record) for index, record in enumerate(records))
    section = bytes.fromhex(description["section"]) if "section" in description else section
    codec = CODECS.index(description.get("codec", "none"))
    body = compress(codec, section)
    values = {
        "base_offset": description.get("base_offset", 0),
        "batch_length": _HEADER.size - _LENGTH_AND_OFFSET + len(body),
        "leader_epoch": description.get("leader_epoch", -1),
        "magic": 2,
        "crc": 0,
        "attributes": codec | description.get("attributes", 0),
        "last_offset_delta": len(records) - 1,
        "base_timestamp": first,
        "max_timestamp": max((record.get("timestamp", 1000) for record in records), default=-1),
        "producer_id": description.get("producer_id", -1),
        "producer_epoch": description.get("producer_epoch", -1),
        "base_sequence": description.get("base_sequence", -1),
        "record_count": len(records),
    }
    forced = description.get("force", {})
    assert forced.keys() <= values.keys(), forced
    values |= forced
    header = _HEADER.pack(*(values[name] for name in _FIELDS))
    if "crc" not in forced:
        checksum = crc32c.crc32c(header[_AFTER_CRC:] + body)
        header = header[: _AFTER_CRC - 4] + struct.pack(">I", checksum) + header[_AFTER_CRC:]
    return header + body


def render(data: bytes) -> tuple[list[Json], int]:
    """The batches of a fetch reply, and how many bytes of an incomplete one follow them."""
    batches: list[Json] = []
    position = 0
    while position < len(data):
        batch = _render_one(data, position)
        if batch is None:
            break
        size, described = batch
        batches.append(described)
        position += size
    return batches, len(data) - position


def compress(codec: int, data: bytes) -> bytes:
    match codec:
        case 1:
            return _gzip(data)
        case 2:
            return bytes(cramjam.snappy.compress_raw(data))
        case 3:
            return _lz4(data)
        case 4:
            return bytes(cramjam.zstd.compress(data))
        case _:
            return data


def _gzip(data: bytes) -> bytes:
    packed = bytearray(bytes(cramjam.gzip.compress(data)))
    packed[4:8] = bytes(4)  # the time of compression would change each recording
    return bytes(packed)


def _lz4(data: bytes) -> bytes:
    """A frame of independent blocks of at most 64 KiB, the only kind that Java clients read."""
    frame = bytearray.fromhex("04224d18" + "6040" + "82")
    for start in range(0, len(data), 1 << 16):
        block = data[start : start + (1 << 16)]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        stored = len(packed) >= len(block)
        frame += struct.pack("<I", len(block) | 1 << 31 if stored else len(packed)) + (
            block if stored else packed
        )
    return bytes(frame + bytes(4))


def _decompress(codec: int, data: bytes) -> bytes:
    match codec:
        case 1:
            return bytes(cramjam.gzip.decompress(data))
        case 2 if data[:8] == b"\x82SNAPPY\x00":
            return _xerial(data)
        case 2:
            return bytes(cramjam.snappy.decompress_raw(data))
        case 3:
            return bytes(cramjam.lz4.decompress(data))
        case 4:
            return bytes(cramjam.zstd.decompress(data))
        case _:
            return data


def _xerial(data: bytes) -> bytes:
    position, plain = 16, b""
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        plain += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size]))
        position += 4 + size
    return plain


def _record(index: int, first_timestamp: int, record: Mapping[str, Json]) -> bytes:
    body = b"\x00" + varint(record.get("timestamp", 1000) - first_timestamp)
    body += varint(record.get("offset_delta", index))
    body += _blob(record.get("key")) + _blob(record.get("value"))
    headers = record.get("headers", [])
    body += varint(len(headers))
    for name, value in headers:
        body += _blob(name) + _blob(value)
    return varint(len(body)) + body


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _blob(value: Json) -> bytes:
    match value:
        case None:
            return varint(-1)
        case str():
            data = value.encode()
        case {"$repeat": [str(unit), int(times)]}:
            data = unit.encode() * times
        case {"$hex": str(digits)}:
            data = bytes.fromhex(digits)
        case _:
            raise TypeError(value)
    return varint(len(data)) + data


def _render_one(data: bytes, position: int) -> tuple[int, Json] | None:
    if len(data) - position < _HEADER.size:
        return None
    values = dict(zip(_FIELDS, _HEADER.unpack_from(data, position), strict=True))
    size = values.pop("batch_length") + _LENGTH_AND_OFFSET
    if len(data) - position < size:
        return None
    checksum = values.pop("crc")
    values["crc_valid"] = crc32c.crc32c(data[position + _AFTER_CRC : position + size]) == checksum
    section = data[position + _HEADER.size : position + size]
    codec = values["attributes"] & 7
    values["codec"] = CODECS[codec]
    if values["attributes"] & 32:
        values["control"] = section.hex()
    else:
        values |= _render_section(codec, section)
    if codec == 0:
        values["size_bytes"] = size
    return size, values


def _render_section(codec: int, section: bytes) -> Json:
    """The records, or the bytes where they cannot be read: brokers do accept such batches."""
    try:
        return {"records": _render_records(_decompress(codec, section))}
    except (IndexError, cramjam.DecompressionError):
        return {"section": section.hex()}


def _render_records(section: bytes) -> list[Json]:
    records: list[Json] = []
    position = 0
    while position < len(section):
        size, position = _read_varint(section, position)
        records.append(_render_record(section[position : position + size]))
        position += size
    return records


def _render_record(body: bytes) -> Json:
    timestamp_delta, position = _read_varint(body, 1)
    offset_delta, position = _read_varint(body, position)
    key, position = _read_blob(body, position)
    value, position = _read_blob(body, position)
    count, position = _read_varint(body, position)
    headers: list[Json] = []
    for _ in range(count):
        name, position = _read_blob(body, position)
        content, position = _read_blob(body, position)
        headers.append([name, content])
    record = {"offset_delta": offset_delta, "timestamp_delta": timestamp_delta, "key": key, "value": value}
    return record | ({"headers": headers} if headers else {})


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    shift = value = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position


def _read_blob(data: bytes, position: int) -> tuple[Json, int]:
    size, position = _read_varint(data, position)
    if size < 0:
        return None, position
    blob = data[position : position + size]
    return _readable(blob), position + size


def _readable(blob: bytes) -> Json:
    if len(blob) > 64 and len(set(blob)) == 1:
        return {"$repeat": [blob[:1].decode("latin-1"), len(blob)]}
    try:
        text = blob.decode()
    except UnicodeDecodeError:
        return {"$hex": blob.hex()}
    return text if text.isprintable() else {"$hex": blob.hex()}
