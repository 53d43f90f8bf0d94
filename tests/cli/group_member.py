"""A member of a group, for what the command line tells of groups."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer

from tests.cli.running import CommandLine
from tests.waiting import looks


@contextmanager
def member(riverlog: CommandLine, group: str, topic: str, **settings: str) -> Iterator[Consumer]:
    """A consumer with partitions, until the end of the block."""
    consumer = Consumer(
        {
            "bootstrap.servers": riverlog.bootstrap,
            "group.id": group,
            "client.id": "the-client",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    consumer.subscribe([topic])
    try:
        for _ in looks(30):
            consumer.poll(0.1)
            if consumer.assignment():
                break
        assert consumer.assignment(), "no partitions"
        yield consumer
    finally:
        consumer.close()
