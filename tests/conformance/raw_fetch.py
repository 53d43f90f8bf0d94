"""Batches as they lie in a partition, fetched by a hand-written Fetch v4: what clients do not show.

Independent of our codec, so that it can be pointed at Apache Kafka as well.
"""

import socket
import struct

from confluent_kafka.admin import AdminClient

from riverlog.records.batch import BatchHeader, walk

_FETCH, _VERSION = 1, 4


def batch_headers(bootstrap: str, topic: str, partition: int = 0) -> list[BatchHeader]:
    """The headers of all whole batches that one fetch from offset 0 returns."""
    return [header for _, header in walk(fetch(bootstrap, topic, partition))]


def fetch(bootstrap: str, topic: str, partition: int = 0, offset: int = 0) -> bytes:
    """The records field of the answer of the partition's leader."""
    host, port = _leader(bootstrap, topic, partition)
    name = topic.encode()
    header = struct.pack(">hhih", _FETCH, _VERSION, 1, 3) + b"raw"
    replica, wait_ms, min_bytes, max_bytes, isolation = -1, 500, 1, 1 << 26, 0
    body = struct.pack(">iiiibi", replica, wait_ms, min_bytes, max_bytes, isolation, 1)
    body += struct.pack(">h", len(name)) + name + struct.pack(">iiqi", 1, partition, offset, 1 << 26)
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            answer = stream.read(size)
    # correlation id, throttle time, topic count, topic, partition count; then the one partition.
    position = 12 + 2 + len(name) + 4
    _, error, _, _, aborted = struct.unpack_from(">ihqqi", answer, position)
    assert error == 0, f"fetch failed with error code {error}"
    position += 26 + max(aborted, 0) * 16
    (length,) = struct.unpack_from(">i", answer, position)
    return answer[position + 4 : position + 4 + max(length, 0)]


def _leader(bootstrap: str, topic: str, partition: int) -> tuple[str, int]:
    told = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10)
    broker = told.brokers[told.topics[topic].partitions[partition].leader]
    return str(broker.host), int(broker.port)
