"""Compression codecs of record batches, with bounded decompression.

Knows nothing of batches: bytes in, bytes out. The only module that imports `cramjam`. Invariants:

- `decompress_after` writes at most `limit_bytes`, whatever sizes the input claims. Output goes into a buffer
  of known size; beyond 64 KB that is an anonymous memory map, whose pages cost nothing until they are
  written, so a small claim in a large limit is cheap and a bomb stops at the limit.
- What `compress` makes the Java client can read: lz4 frames have independent blocks and no content checksum
  flag that it would refuse, and snappy uses the xerial framing.
"""

import mmap
import struct
from enum import IntEnum

import cramjam

from riverlog.model.disk import ReadableBuffer


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(ValueError):
    """The bytes are not a whole, valid stream of their codec."""


class DecompressedTooLargeError(DecompressionError):
    """The bytes decompress to more than the caller allows."""


_DEFAULT_LEVEL = {Codec.GZIP: 6, Codec.LZ4: 9, Codec.ZSTD: 3}
_MAPPED_FROM_BYTES = 64 * 1024
# No stream of these formats can be larger than this many times its compressed size, so a small input needs
# only a small buffer. A zstd block of three bytes may stand for 128 KB; there only the limit bounds it.
_GREATEST_RATIO = {Codec.GZIP: 1032, Codec.LZ4: 255}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")
_LINKED_BLOCKS_MASK = 0x20


def compress(codec: Codec, data: ReadableBuffer, level: int | None = None) -> bytes:
    """`data` as one stream of `codec`; `level` None means Kafka's default for it."""
    if level is None:
        level = _DEFAULT_LEVEL.get(codec)
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level=_gzip_level(level)))
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            return _compress_lz4(data, level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress_after(
    prefix: ReadableBuffer, codec: Codec, data: ReadableBuffer, *, limit_bytes: int
) -> memoryview:
    """`prefix` followed by the plain bytes, with no copy of them in between; `DecompressionError` if the
    stream is bad or larger than the limit.

    The view stands in a buffer with at least `PADDING_BYTES` readable bytes behind its end.
    """
    source = memoryview(data)
    start = len(prefix)
    bound = _output_bound(codec, source, limit_bytes)
    # One byte more than the limit, so that "exactly the limit" and "more" can be told apart.
    target = _buffer(start + bound + 1 + PADDING_BYTES)
    target[:start] = prefix
    room = target[start : start + bound + 1]
    try:
        written = _decompress_into(codec, source, room)
    except cramjam.DecompressionError as error:
        # The only failure that a full buffer explains; cramjam has no type of its own for it.
        if bound == limit_bytes and "whole buffer" in str(error):
            raise DecompressedTooLargeError(_too_large(codec, limit_bytes)) from error
        raise DecompressionError(f"not a valid {codec.name.lower()} stream: {error}") from error
    if written > limit_bytes:
        raise DecompressedTooLargeError(_too_large(codec, limit_bytes))
    return target[: start + written]


PADDING_BYTES = 32


def _too_large(codec: Codec, limit_bytes: int) -> str:
    return f"the {codec.name.lower()} stream decompresses to more than {limit_bytes} bytes"


def _buffer(size: int) -> memoryview:
    if size < _MAPPED_FROM_BYTES:
        return memoryview(bytearray(size))
    return memoryview(mmap.mmap(-1, size))


def _output_bound(codec: Codec, source: memoryview, limit_bytes: int) -> int:
    match codec:
        case Codec.NONE:
            claimed = len(source)
        case Codec.SNAPPY:
            claimed = sum(_snappy_length(block) for block in _snappy_blocks(source))
        case Codec.GZIP | Codec.LZ4:
            return min(limit_bytes, len(source) * _GREATEST_RATIO[codec])
        case Codec.ZSTD:
            return limit_bytes
    if claimed > limit_bytes:
        raise DecompressedTooLargeError(_too_large(codec, limit_bytes))
    return claimed


def _decompress_into(codec: Codec, source: memoryview, room: memoryview) -> int:
    match codec:
        case Codec.NONE:
            room[: len(source)] = source
            return len(source)
        case Codec.GZIP:
            return cramjam.gzip.decompress_into(source, room)
        case Codec.SNAPPY:
            return _decompress_snappy_into(source, room)
        case Codec.LZ4:
            return cramjam.lz4.decompress_into(source, room)
        case Codec.ZSTD:
            # No frame at all is an empty stream to Kafka, too.
            return cramjam.zstd.decompress_into(source, room) if source else 0


def _gzip_level(level: int | None) -> int:
    # Kafka's -1 is zlib's "default", which is 6.
    return 6 if level is None or level < 0 else level


def _compress_lz4(data: ReadableBuffer, level: int | None) -> bytes:
    # Kafka's default of 9 means its fast compressor; any other level the slow one. Level 1 is lz4's fast one.
    if level is None or level == _DEFAULT_LEVEL[Codec.LZ4]:
        level = 1
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def has_linked_lz4_blocks(data: ReadableBuffer) -> bool:
    """Whether an lz4 frame's blocks refer to each other, which the Java client cannot read."""
    return len(data) > 4 and not data[4] & _LINKED_BLOCKS_MASK


def _compress_xerial(data: ReadableBuffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _snappy_blocks(source: memoryview) -> list[memoryview]:
    """The raw blocks of a stream: those of the xerial framing, or the whole of it."""
    if source[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return [source]
    if len(source) < len(_XERIAL_HEADER):
        raise DecompressionError("the snappy stream ends within its header")
    blocks = []
    position = len(_XERIAL_HEADER)
    while position < len(source):
        if position + 4 > len(source):
            raise DecompressionError("the snappy stream ends within the length of a block")
        (length,) = _BLOCK_LENGTH.unpack_from(source, position)
        position += 4
        if not 0 <= length <= len(source) - position:
            raise DecompressionError(
                f"a snappy block claims {length} bytes, {len(source) - position} are left"
            )
        blocks.append(source[position : position + length])
        position += length
    return blocks


def _snappy_length(block: memoryview) -> int:
    try:
        return cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"not a valid snappy block: {error}") from error


def _decompress_snappy_into(source: memoryview, room: memoryview) -> int:
    written = 0
    for block in _snappy_blocks(source):
        length = _snappy_length(block)
        cramjam.snappy.decompress_raw_into(block, room[written : written + length])
        written += length
    return written
