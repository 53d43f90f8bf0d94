"""Which partition of an internal topic a group or a transactional id belongs to.

Clients and other brokers never compute it, but Kafka's tools and a cluster that changes hands rely on the
same answer, so it is Java's hash of the string.
"""

from functools import lru_cache


@lru_cache(maxsize=16_384)
def java_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 code units, with wrapping signed 32-bit arithmetic."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partitions: int) -> int:
    """The smallest integer has no positive counterpart and counts as 0, as in Kafka."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partitions
