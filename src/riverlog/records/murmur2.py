"""murmur2 as the Java client computes it, so that a key goes to the same partition with every client."""

from riverlog.model.disk import ReadableBuffer

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: ReadableBuffer) -> int:
    """The 32-bit hash of `data`, as a signed integer like Java's."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def partition_for_key(key: ReadableBuffer, partitions: int) -> int:
    """The partition that the Java client's default partitioner picks for `key`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
