"""Where records of a key are, and where producers place them."""

import time
import zlib

from riverlog.cli.asking.batches import records_between
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place, offset_ranges, offsets_at_time
from riverlog.cli.asking.connection import Connection
from riverlog.cli.explaining.reasons import Reason
from riverlog.records.murmur2 import partition_for_key


def placed_elsewhere(key: bytes, partition: int, count: int) -> list[Reason]:
    """Reasons why the key's record may not be in this partition. Clients that place in other ways, or were
    told a partition, are unknown."""
    java, librdkafka = partition_for_key(key, count), zlib.crc32(key) % count
    if partition == java == librdkafka:
        return []
    text = placement(key, count)
    if partition == java:
        remedy = "set partitioner=murmur2_random there"
        return [Reason("placed-by-murmur2", f"{text}: a producer on librdkafka writes elsewhere", remedy)]
    if partition == librdkafka:
        remedy = "set partitioner=murmur2_random in the producer on librdkafka"
        return [Reason("placed-by-crc32", f"{text}: a producer in Java writes elsewhere", remedy)]
    remedy = f"look into partition {java} or {librdkafka}"
    return [Reason("hashed-elsewhere", f"{text}, and not to {partition}", remedy)]


def placement(key: bytes, count: int) -> str:
    java, librdkafka = partition_for_key(key, count), zlib.crc32(key) % count
    by_client = f"{java} by murmur2 (Java) and {librdkafka} by CRC32 (librdkafka)"
    return f"of {count} partitions the key goes to {by_client}"


def records_of_key(
    brokers: Brokers, connection: Connection, topic: str, key: bytes, since_ms: int
) -> list[tuple[Place, int]]:
    """The offsets of a key's records since a time, in all partitions; those of aborted transactions too."""
    partitions = sorted(connection.metadata().topics[topic].partitions)
    held = offset_ranges(connection, topic, partitions)
    first = offsets_at_time(connection, topic, partitions, since_ms)
    deadline = time.monotonic() + connection.timeout_s
    return [
        ((topic, partition), record.offset)
        for partition in partitions
        if (start := first[partition]) is not None
        for record in records_between(
            brokers, connection, (topic, partition), start, held[partition].end, deadline
        )
        if record.key == key
    ]
