"""Compression: round trips, other writers' streams, and bounds that hold against hostile streams."""

import contextlib
import gzip
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import aiokafka.codec  # type: ignore[import-untyped]
import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.records.compression import (
    Codec,
    DecompressedTooLargeError,
    DecompressionError,
    compress,
    decompress_after,
    has_linked_lz4_blocks,
)

MEGABYTE = 1024 * 1024
XERIAL_HEADER = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


def decompress(codec: Codec, data: bytes | bytearray, *, limit_bytes: int) -> bytes:
    return bytes(decompress_after(b"", codec, data, limit_bytes=limit_bytes))


@given(codec=st.sampled_from(Codec), data=st.binary(max_size=3000), times=st.integers(1, 100))
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, times: int) -> None:
    plain = data * times
    assert decompress(codec, compress(codec, plain), limit_bytes=len(plain)) == plain


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, level) for level in (-1, 1, 6, 9)]
    + [(Codec.LZ4, level) for level in (1, 9, 12, 17)]
    + [(Codec.ZSTD, level) for level in (-131072, -5, 1, 3, 22)],
)
def test_every_level_that_kafka_allows_can_be_asked_for(codec: Codec, level: int) -> None:
    plain = b"every level that Kafka allows " * 1000
    packed = compress(codec, plain, level)
    assert len(packed) < len(plain) + 100
    assert decompress(codec, packed, limit_bytes=len(plain)) == plain


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_higher_level_makes_smaller_streams(codec: Codec) -> None:
    plain = b"".join(b"order %d of customer %d;" % (i * 7919 % 10007, i % 97) for i in range(5000))
    assert len(compress(codec, plain, 9)) < len(compress(codec, plain, 1))


def test_lz4_blocks_are_independent_as_the_java_client_needs_them() -> None:
    assert not has_linked_lz4_blocks(compress(Codec.LZ4, bytes(MEGABYTE)))
    assert has_linked_lz4_blocks(bytes(cramjam.lz4.compress(bytes(MEGABYTE))))


def test_streams_of_another_client_can_be_read_and_ours_by_it() -> None:
    plain = b"the quick brown fox" * 5000
    theirs = {
        Codec.GZIP: (aiokafka.codec.gzip_encode, aiokafka.codec.gzip_decode),
        Codec.SNAPPY: (aiokafka.codec.snappy_encode, aiokafka.codec.snappy_decode),
        Codec.LZ4: (aiokafka.codec.lz4_encode, aiokafka.codec.lz4_decode),
        Codec.ZSTD: (aiokafka.codec.zstd_encode, aiokafka.codec.zstd_decode),
    }
    for codec, (encode, decode) in theirs.items():
        assert decompress(codec, bytes(encode(plain)), limit_bytes=len(plain)) == plain
        assert bytes(decode(compress(codec, plain))) == plain


def test_snappy_is_read_raw_as_well_as_framed() -> None:
    plain = b"raw or framed" * 10_000
    raw = bytes(cramjam.snappy.compress_raw(plain))
    framed = XERIAL_HEADER + struct.pack(">i", len(raw)) + raw
    assert decompress(Codec.SNAPPY, raw, limit_bytes=len(plain)) == plain
    assert decompress(Codec.SNAPPY, framed + framed[16:], limit_bytes=2 * len(plain)) == plain * 2


def test_gzip_streams_may_have_several_members() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, packed, limit_bytes=7) == b"one two"


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [1, 100, 64 * 1024, MEGABYTE])
def test_the_limit_is_exact(codec: Codec, size: int) -> None:
    packed = compress(codec, b"x" * size)
    assert len(decompress(codec, packed, limit_bytes=size)) == size
    with pytest.raises(DecompressedTooLargeError):
        decompress(codec, packed, limit_bytes=size - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_stream_that_is_cut_anywhere_is_refused(codec: Codec) -> None:
    packed = compress(codec, bytes(range(256)) * 300)
    # A xerial stream that ends between two blocks, or has none, is whole.
    whole = {16} if codec is Codec.SNAPPY else {0} if codec is Codec.ZSTD else set()
    if codec is Codec.SNAPPY:
        position = 16
        while position < len(packed):
            position += 4 + struct.unpack_from(">i", packed, position)[0]
            whole.add(position)
    for length in range(0, len(packed), 7):
        if length not in whole:
            with pytest.raises(DecompressionError):
                decompress(codec, packed[:length], limit_bytes=MEGABYTE)


@given(codec=st.sampled_from(COMPRESSED), data=st.data())
def test_any_bytes_decompress_or_are_refused(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"some plain text " * 200))
    for _ in range(data.draw(st.integers(1, 5))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecompressionError):
        assert len(decompress(codec, packed, limit_bytes=10_000)) <= 10_000


def zeros_of_gzip(size: int) -> bytes:
    writer = zlib.compressobj(9, wbits=31)
    return b"".join(writer.compress(bytes(MEGABYTE)) for _ in range(size // MEGABYTE)) + writer.flush()


def zeros_of_zstd(size: int, window_descriptor: int) -> bytes:
    """A frame of unknown content size made of run-length blocks of 128 KB: four bytes each."""
    block = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 1)[:3]
    return b"\x28\xb5\x2f\xfd\0" + bytes([window_descriptor]) + block * (size // (128 * 1024)) + last


def zeros_of_lz4(size: int) -> bytes:
    frame = compress(Codec.LZ4, bytes(4 * MEGABYTE))
    return frame * (size // (4 * MEGABYTE))


def lying_snappy(size: int) -> bytes:
    """Framed blocks that claim 2 GB each in their first bytes and hold nothing."""
    block = b"\xff\xff\xff\xff\x07" + b"\0a"
    return XERIAL_HEADER + (struct.pack(">i", len(block)) + block) * (size // (2048 * MEGABYTE) + 1)


def zeros_of_snappy(size: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(4 * MEGABYTE)))
    return XERIAL_HEADER + (struct.pack(">i", len(block)) + block) * (size // (4 * MEGABYTE))


BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, lambda: zeros_of_gzip(256 * MEGABYTE)),
    "zstd of unknown size": (Codec.ZSTD, lambda: zeros_of_zstd(1024 * MEGABYTE, 0x38)),
    "zstd with a window of 128 MB": (Codec.ZSTD, lambda: zeros_of_zstd(1024 * MEGABYTE, 0x88)),
    "lz4": (Codec.LZ4, lambda: zeros_of_lz4(256 * MEGABYTE)),
    "snappy": (Codec.SNAPPY, lambda: zeros_of_snappy(256 * MEGABYTE)),
    "snappy with lying sizes": (Codec.SNAPPY, lambda: lying_snappy(64 * 1024 * MEGABYTE)),
    "raw snappy with a lying size": (Codec.SNAPPY, lambda: b"\xff\xff\xff\xff\x0f\0a"),
}

MEASURE_PEAK = """
import sys
from riverlog.records.compression import Codec, DecompressedTooLargeError, decompress_after

def peak_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

packed = open(sys.argv[2], "rb").read()
decompress_after(b"", Codec.GZIP, bytes.fromhex("1f8b080000000000000303000000000000000000"), limit_bytes=10)
before = peak_kb()
try:
    decompress_after(b"", Codec[sys.argv[1]], packed, limit_bytes=int(sys.argv[3]))
except DecompressedTooLargeError:
    print(peak_kb() - before)
"""


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_takes_no_more_memory_than_the_limit(bomb: str, tmp_path: Path) -> None:
    codec, make = BOMBS[bomb]
    file = tmp_path / "bomb"
    file.write_bytes(make())
    limit = 8 * MEGABYTE
    command = [sys.executable, "-c", MEASURE_PEAK, codec.name, str(file), str(limit)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout, "it was not refused as too large"
    # The output, its window of the same size inside the codec, and some slack.
    assert int(run.stdout) * 1024 < 2 * limit + 4 * MEGABYTE
