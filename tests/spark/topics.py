"""Records put into and taken out of topics by a client that is not ours."""

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from riverlog.testing import Broker

_DEADLINE_S = 30.0


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def send(
    broker: Broker,
    topic: str,
    records: Iterable[Sent],
    *,
    partition: int = -1,
    timestamp_ms: int = 0,
) -> None:
    """Placed by key as the Java client does it, unless a partition is given."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log.connection.close": False}
    producer = Producer({**settings, "partitioner": "murmur2_random", "linger.ms": 5})
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition,
            headers=list(record.headers),
            timestamp=timestamp_ms,
        )
    assert producer.flush(_DEADLINE_S) == 0


def contents(broker: Broker, topic: str) -> list[Sent]:
    """All committed records, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "contents",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log.connection.close": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, _DEADLINE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[tuple[int, int, Sent]] = []
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(_DEADLINE_S)
            assert message is not None, f"nothing came from {topic}"
            if (error := message.error()) is None:
                headers = list(message.headers() or [])
                sent = Sent(message.key(), message.value(), headers)  # type: ignore[arg-type]
                found.append((message.partition() or 0, message.offset() or 0, sent))
            elif error.name() == "_PARTITION_EOF":
                at_end.add(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return [sent for *_, sent in sorted(found, key=lambda each: each[:2])]
