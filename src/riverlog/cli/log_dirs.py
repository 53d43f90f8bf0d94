"""How many bytes each partition takes on the disk of its leader.

confluent-kafka has no DescribeLogDirs, so this one request is made here, on a plain connection. Where the
connection is not plain (TLS, SASL) or the answer does not come, sizes are simply not known: a size is worth
showing, but not worth failing for.
"""

import socket
from typing import TYPE_CHECKING

from riverlog.cli.cluster import has_leader
from riverlog.cli.connection import Connection

if TYPE_CHECKING:
    from riverlog.cli.kafka_admin import TopicDescription

# The oldest version that every Kafka since 1.0 answers; the later ones add nothing that is shown.
VERSION = 1
ANSWER_BYTES_MAX = 64 * 1024 * 1024


def partition_sizes(connection: Connection, topic: "TopicDescription") -> dict[int, int]:
    """Bytes by partition number; a partition is missing where its size is not known."""
    if connection.properties.get("security.protocol", "plaintext").lower() != "plaintext":
        return {}
    sizes: dict[int, int] = {}
    led = [each for each in topic.partitions if has_leader(each)]
    for leader in {each.leader.id: each.leader for each in led}.values():
        partitions = [each.id for each in led if each.leader.id == leader.id]
        try:
            sizes |= _ask(leader.host, leader.port, topic.name, partitions, connection.timeout_s)
        except (OSError, ValueError):
            continue
    return sizes


def _ask(host: str, port: int, topic: str, partitions: list[int], timeout_s: float) -> dict[int, int]:
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.codec import decode
    from riverlog.wire.framing import RequestHeader, encode_request
    from riverlog.wire.messages.describe_log_dirs import (
        DescribableLogDirTopic,
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
    )

    header = RequestHeader(ApiKey.DESCRIBE_LOG_DIRS, VERSION, 1, "riverlog-cli")
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=partitions)])
    with socket.create_connection((host, port), timeout_s) as link:
        link.settimeout(timeout_s)
        link.sendall(encode_request(header, asked))
        size = int.from_bytes(_read(link, 4))
        if not 4 <= size <= ANSWER_BYTES_MAX:
            raise ValueError(f"an answer of {size} bytes")
        # Up to version 1 the header of a response is the correlation id alone.
        answer, _ = decode(DescribeLogDirsResponse, VERSION, _read(link, size)[4:])
    return {
        each.partition_index: each.partition_size
        for directory in answer.results
        for found in directory.topics
        for each in found.partitions
        if not each.is_future_key
    }


def _read(link: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return bytes(data)
