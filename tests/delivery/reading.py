"""Topics made, filled and read to their end by the test itself."""

from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from riverlog.testing.history import Event, Place, Positioned, Read
from tests.delivery.control import client_settings

_TIMEOUT_S = 30.0


def make_topics(bootstrap: str, partitions: int, *topics: str) -> None:
    with AdminClient(client_settings(bootstrap)) as admin:
        for made in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics]).values():
            made.result(_TIMEOUT_S)


def fill(bootstrap: str, topic: str, values: Iterable[tuple[int, str]]) -> None:
    """Partition and value of each record."""
    producer = Producer(client_settings(bootstrap, enable_idempotence=True, linger_ms=5))
    for partition, value in values:
        producer.produce(topic, value, partition=partition)
        producer.poll(0)
    assert producer.flush(_TIMEOUT_S) == 0


def read_all(bootstrap: str, topic: str, partitions: int) -> list[Read]:
    """All that is committed, from the first record to the end, partition by partition."""
    consumer = Consumer(
        client_settings(
            bootstrap, group_id="reader", enable_auto_commit=False, isolation_level="read_committed"
        )
    )
    found: list[Read] = []
    for partition in range(partitions):
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, _TIMEOUT_S)
        consumer.assign([place])
        while consumer.position([place])[0].offset < end and end > 0:
            for message in consumer.consume(2000, 0.2):
                assert message.error() is None, message.error()
                value, offset = message.value(), message.offset()
                assert isinstance(value, bytes)
                assert offset is not None
                found.append(Read("reader", Place(topic, partition), offset, value.decode()))
    consumer.close()
    return found


def as_one_reader(reads: Iterable[Read]) -> list[Event]:
    """With a position before each partition, as the checker wants it."""
    events: list[Event] = []
    places: set[Place] = set()
    for read in reads:
        if read.place not in places:
            places.add(read.place)
            events.append(Positioned(read.client, read.place))
        events.append(read)
    return events


def journals(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jsonl"))
