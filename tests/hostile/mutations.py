"""Ways to spoil a valid request, each driven by one seeded generator.

Most leave the header alone, so that the damage meets the code behind it.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from tests.hostile.corpus import Sample

_IN_BODY = 0.88
_LONGEST = 1 << 17
_INT32 = (0x7FFFFFFF, -1, -2, -0x80000000, 0x00FFFFFF, 0x00010000, 0x40000000, 0)
_INT16 = (0x7FFF, -1, -2, -0x8000, 0x0FFF, 0)
_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x10",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff" * 12,
    b"\x80\x80\x04",
    b"\xff\x7f",
    b"\x00",
    b"\x01",
)
_TAGS = (
    b"\x01\x00\x00",
    b"\x01\x63\x05hello",
    b"\x01\x63\x7f",
    b"\x01\x00\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\x00\x01a",
    b"\x02\x00\x01a\x00\x01b",
    b"\x02\x05\x00\x01\x00",
    b"\x01\xff\xff\xff\xff\x0f\x00",
    b"\x40" + b"\x01\x00" * 64,
)

Mutation = Callable[[random.Random, bytearray, int, Sequence[Sample]], None]


def mutate(rng: random.Random, sample: Sample, others: Sequence[Sample]) -> bytes:
    """One damaged copy; ``others`` lend pieces."""
    data = bytearray(sample.payload)
    start = sample.body_at if rng.random() < _IN_BODY else 0
    for _ in range(1 if rng.random() < 0.7 else rng.randint(2, 4)):
        rng.choice(MUTATIONS)(rng, data, min(start, len(data)), others)
    return bytes(data[:_LONGEST])


def flip_bits(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    if len(data) > start:
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(start, len(data))] ^= 1 << rng.randrange(8)


def truncate(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    del data[rng.randint(start, len(data)) :]


def inflate_int32(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    _overwrite(data, _place(rng, data, start), struct.pack(">i", rng.choice(_INT32)))


def inflate_int16(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    _overwrite(data, _place(rng, data, start), struct.pack(">h", rng.choice(_INT16)))


def inflate_varint(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    position = _place(rng, data, start)
    data[position : position + 1] = rng.choice(_VARINTS)


def abuse_tags(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    """At the end, where a flexible body has its tagged fields, or where any struct may have some."""
    position = max(start, len(data) - 1) if rng.random() < 0.5 else _place(rng, data, start)
    data[position : position + 1] = rng.choice(_TAGS)


def splice(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    donor = rng.choice(others).payload
    first = rng.randrange(len(donor))
    position = _place(rng, data, start)
    piece = donor[first : rng.randint(first, len(donor))]
    data[position : position + rng.choice((0, len(piece)))] = piece


def repeat(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    first = _place(rng, data, start)
    piece = data[first : first + rng.randint(1, 64)]
    if len(data) + len(piece) * 400 <= _LONGEST:
        data[first:first] = piece * rng.choice((1, 2, 20, 400))


def scribble(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    position = _place(rng, data, start)
    data[position : position + rng.randint(0, 8)] = rng.randbytes(rng.randint(0, 8))


def drop(rng: random.Random, data: bytearray, start: int, others: Sequence[Sample]) -> None:
    position = _place(rng, data, start)
    del data[position : position + rng.randint(1, 16)]


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    truncate,
    inflate_int32,
    inflate_int16,
    inflate_varint,
    abuse_tags,
    splice,
    repeat,
    scribble,
    drop,
)


def _place(rng: random.Random, data: bytearray, start: int) -> int:
    return rng.randrange(start, len(data)) if len(data) > start else len(data)


def _overwrite(data: bytearray, position: int, piece: bytes) -> None:
    data[position : position + len(piece)] = piece
