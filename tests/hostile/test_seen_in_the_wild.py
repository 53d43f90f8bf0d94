"""Attacks that other brokers have met, one by one, on a server whose memory is limited."""

from __future__ import annotations

import functools
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import pytest

from tests.differential import batches, codec
from tests.hostile.look import ask, connect, create_topic, send
from tests.hostile.served import Served, serve

Json = Any

MEBIBYTE = 1 << 20
BOMB_BYTES = 400 << 20
MEMORY_SLACK_BYTES = 40 * MEBIBYTE


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("wild")) as running:
        create_topic(running.bootstrap, "plain")
        create_topic(running.bootstrap, "unpacked", compression_type="uncompressed")
        create_topic(running.bootstrap, "compacted", cleanup_policy="compact")
        yield running
        log = running.log.read_text(errors="replace")
        assert "Traceback" not in log, log[log.index("Traceback") :][:4000]


LENGTHS = {
    "Metadata v1, two billion topics": ("Metadata", 1, b"\x7f\xff\xff\xff"),
    "Metadata v9, four billion topics": ("Metadata", 9, b"\xff\xff\xff\xff\x0f"),
    "Metadata v9, a count in six bytes": ("Metadata", 9, b"\xff\xff\xff\xff\xff\x01"),
    "Metadata v1, a name of 32 KiB": ("Metadata", 1, b"\x00\x00\x00\x01\x7f\xff"),
    "Metadata v9, a name of two gigabytes": ("Metadata", 9, b"\x02\xff\xff\xff\xff\x07"),
    "Produce v3, two billion topics": ("Produce", 3, b"\xff\xff\xff\xff\x00\x00\x03\xe8\x7f\xff\xff\xff"),
    "Produce v9, four billion topics": ("Produce", 9, b"\x00\xff\xff\x00\x00\x03\xe8\xff\xff\xff\xff\x0f"),
    "Fetch v4, two billion topics": ("Fetch", 4, b"\xff\xff\xff\xff" + bytes(13) + b"\x7f\xff\xff\xff"),
    "Fetch v12, four billion topics": (
        "Fetch",
        12,
        b"\xff\xff\xff\xff" + bytes(21) + b"\xff\xff\xff\xff\x0f",
    ),
    "CreateTopics v2, two billion topics": ("CreateTopics", 2, b"\x7f\xff\xff\xff"),
    "DeleteTopics v6, four billion topics": ("DeleteTopics", 6, b"\xff\xff\xff\xff\x0f"),
    "DescribeConfigs v4, four billion keys": ("DescribeConfigs", 4, b"\x02\x02\x02a\xff\xff\xff\xff\x0f"),
    "DescribeCluster v0, a tag of two gigabytes": ("DescribeCluster", 0, b"\x00\x01\x09\xff\xff\xff\xff\x07"),
    "DescribeCluster v0, two billion tags": ("DescribeCluster", 0, b"\x00\xff\xff\xff\xff\x07"),
}


@pytest.mark.parametrize("about", LENGTHS)
def test_a_length_beyond_the_frame_takes_no_memory(about: str, served: Served) -> None:
    api, version, body = LENGTHS[about]
    header = codec.api_key(api).to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    payload = header + (b"\x00" if codec.is_flexible(api, version) else b"") + body + bytes(16)
    before = served.memory_bytes()
    connection = connect(served.bootstrap)
    send(connection, payload)
    assert connection.wait_for_close()
    connection.close()
    assert served.memory_bytes() - before < MEMORY_SLACK_BYTES


@pytest.mark.parametrize("size", [104_857_601, 2**31 - 1, -1, -(2**31)])
def test_a_frame_of_a_forbidden_size_closes_the_connection_at_once(size: int, served: Served) -> None:
    connection = connect(served.bootstrap)
    connection.send(struct.pack(">i", size))
    assert connection.wait_for_close()
    connection.close()


def test_announced_frames_take_memory_only_as_they_arrive(served: Served) -> None:
    before = served.memory_bytes()
    waiting = [connect(served.bootstrap) for _ in range(100)]
    for connection in waiting:
        connection.send(struct.pack(">i", 104_857_600) + bytes(1000))
    _serves(served)
    assert served.memory_bytes() - before < MEMORY_SLACK_BYTES
    for connection in waiting:
        connection.close()
    _serves(served)


@functools.cache
def _gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(MEBIBYTE)
    return b"".join(packer.compress(zeros) for _ in range(BOMB_BYTES // MEBIBYTE)) + packer.flush()


def _zstd_bomb() -> bytes:
    """One frame after another, which a reader takes for one stream."""
    piece = 16 * MEBIBYTE
    return bytes(cramjam.zstd.compress(bytes(piece))) * (BOMB_BYTES // piece)


def _lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MEBIBYTE), store_size=False))
    count = 24  # more would be beyond the largest batch
    return (
        bytes.fromhex("04224d18" + "6070" + "73") + (struct.pack("<I", len(block)) + block) * count + bytes(4)
    )


def _snappy_bomb() -> bytes:
    """A block that claims to unpack to four gigabytes."""
    return b"\xff\xff\xff\xff\x0f" + bytes(100)


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (1, _gzip_bomb),
    "snappy": (2, _snappy_bomb),
    "lz4": (3, _lz4_bomb),
    "zstd": (4, _zstd_bomb),
}


@pytest.mark.parametrize("topic", ["unpacked", "compacted"])
@pytest.mark.parametrize("kind", BOMBS)
def test_a_decompression_bomb_is_refused_in_bounded_memory(kind: str, topic: str, served: Served) -> None:
    codec_number, make = BOMBS[kind]
    bomb = make()
    before = served.memory_bytes()
    began = time.monotonic()
    reply = ask(served.bootstrap, "Produce", 9, _produce(topic, _packed(codec_number, bomb)))
    (answer,) = reply["responses"][0]["partition_responses"]
    assert answer["error_code"] in ("INVALID_RECORD", "CORRUPT_MESSAGE", "MESSAGE_TOO_LARGE"), answer
    assert time.monotonic() - began < 20
    _serves(served)
    assert served.memory_bytes() - before < MEMORY_SLACK_BYTES


@pytest.mark.parametrize("version", [4, 11, 15, 18])
@pytest.mark.parametrize("replica", [1, 2, 7])
def test_a_client_that_says_it_is_a_replica_moves_nothing(version: int, replica: int, served: Served) -> None:
    ask(served.bootstrap, "Produce", 9, _produce("plain", batches.build({"records": [{"value": "a"}]})))
    before = _state(served)
    claim: Json = {"replica_id": replica} if version < 15 else {"replica_state": {"replica_id": replica}}
    place = {"topic": "plain"} if version < 13 else {"topic_id": before["topic_id"]}
    for offset in (0, before["end"], before["end"] + 1000):
        partition = {
            "partition": 0,
            "fetch_offset": offset,
            "partition_max_bytes": MEBIBYTE,
            "log_start_offset": 0,
        }
        topics = [place | {"partitions": [partition]}]
        fields = {"max_wait_ms": 0, "max_bytes": MEBIBYTE, "topics": topics} | claim
        reply = ask(served.bootstrap, "Fetch", version, fields)
        for topic in reply["responses"]:
            assert all(each["high_watermark"] <= before["end"] for each in topic["partitions"])
    assert _state(served) == before


def _packed(codec_number: int, section: bytes) -> bytes:
    """A batch of one record, as its header says, whose section is what was given."""
    header = {"record_count": 1, "last_offset_delta": 0, "base_timestamp": 1000, "max_timestamp": 1000}
    plain = batches.build({"section": section.hex(), "force": header | {"attributes": codec_number}})
    return bytes(plain)


def _produce(topic: str, records: bytes) -> Json:
    data = [{"index": 0, "records": {"$hex": records.hex()}}]
    return {"acks": -1, "timeout_ms": 20_000, "topic_data": [{"name": topic, "partition_data": data}]}


def _state(served: Served) -> Json:
    asked = {"topics": [{"name": "plain"}], "allow_auto_topic_creation": False}
    (topic,) = ask(served.bootstrap, "Metadata", 12, asked)["topics"]
    wanted = [{"name": "plain", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    listed = ask(served.bootstrap, "ListOffsets", 7, {"replica_id": -1, "topics": wanted})
    end = listed["topics"][0]["partitions"][0]["offset"]
    return {"topic_id": topic["topic_id"], "partitions": topic["partitions"], "end": end}


def _serves(served: Served) -> None:
    reply = ask(
        served.bootstrap, "Produce", 9, _produce("plain", batches.build({"records": [{"value": "b"}]}))
    )
    assert reply["responses"][0]["partition_responses"][0]["error_code"] == "NONE"
