"""What is in a partition, as an ordinary consumer sees it."""

from confluent_kafka import Consumer, TopicPartition

from riverlog.testing import Broker


def read_values(broker: Broker, topic: str, partition: int) -> list[bytes | None]:
    return _values(broker, topic, partition, "read_uncommitted")


def committed_values(broker: Broker, topic: str, partition: int) -> list[bytes | None]:
    return _values(broker, topic, partition, "read_committed")


def _values(broker: Broker, topic: str, partition: int, isolation: str) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[bytes | None] = []
        while True:
            message = consumer.poll(30)
            assert message is not None, "the reader got neither a record nor the end"
            if message.error() is not None:
                return found
            found.append(message.value())
    finally:
        consumer.close()
