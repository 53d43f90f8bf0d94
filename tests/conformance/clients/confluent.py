"""confluent-kafka, that is librdkafka."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import admin as _admin
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.conformance.clients.interface import (
    TIMEOUT_S,
    Client,
    Consumed,
    ConsumerOptions,
    Message,
    ProducerOptions,
    Refused,
)

__all__ = [
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfluentKafka",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "ResourceType",
]

# The package does not export these in a way that a type checker accepts.
_names: Any = _admin
AlterConfigOpType = _names.AlterConfigOpType
ConfigEntry = _names.ConfigEntry
ConfigResource = _names.ConfigResource
ConfigSource = _names.ConfigSource
OffsetSpec = _names.OffsetSpec
ResourceType = _names.ResourceType

OFFSET_BEGINNING = -2


class ConfluentKafka(Client):
    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        options: ProducerOptions = ProducerOptions(),  # noqa: B008 - frozen
        *,
        partition: int | None = 0,
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": options.compression,
                "acks": options.acks,
                "enable.idempotence": options.idempotent,
                "message.max.bytes": options.max_request_bytes,
                "linger.ms": 5,
                "retries": 0 if not options.idempotent else 5,
                "partitioner": "murmur2_random",
                **self.extra,
            }
        )
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                errors.append(error)

        for message in messages:
            arguments: dict[str, Any] = {"key": message.key, "headers": list(message.headers)}
            if message.timestamp_ms is not None:
                arguments["timestamp"] = message.timestamp_ms
            if partition is not None:
                arguments["partition"] = partition
            producer.produce(topic, message.value, on_delivery=delivered, **arguments)
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0, "records are still waiting for their acknowledgement"
        if errors:
            raise Refused(errors[0].code())

    def consume(
        self,
        topic: str,
        count: int,
        options: ConsumerOptions = ConsumerOptions(),  # noqa: B008 - frozen
        *,
        partition: int = 0,
        start: int | None = None,
    ) -> list[Consumed]:
        consumer = self._consumer(options)
        offset = OFFSET_BEGINNING if start is None else start
        consumer.assign([TopicPartition(topic, partition, offset)])
        consumed: list[Consumed] = []
        end = time.monotonic() + TIMEOUT_S
        try:
            while len(consumed) < count and time.monotonic() < end:
                for message in consumer.consume(count - len(consumed), timeout=0.2):
                    if error := message.error():
                        raise KafkaException(error)
                    consumed.append(_consumed(message))
        finally:
            consumer.close()
        return consumed

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self._consumer(ConsumerOptions())
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
            return low, high
        finally:
            consumer.close()

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        consumer = self._consumer(ConsumerOptions())
        try:
            asked = [TopicPartition(topic, partition, timestamp_ms)]
            [answer] = consumer.offsets_for_times(asked, timeout=TIMEOUT_S)
            if answer.error is not None:
                raise KafkaException(answer.error)
            return answer.offset if answer.offset >= 0 else None
        finally:
            consumer.close()

    def _consumer(self, options: ConsumerOptions) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "no-group-only-assigned",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "check.crcs": True,
                "isolation.level": "read_committed" if options.read_committed else "read_uncommitted",
                "fetch.wait.max.ms": options.max_wait_ms,
                "fetch.min.bytes": options.min_bytes,
                "max.partition.fetch.bytes": options.max_partition_bytes,
                **self.extra,
            }
        )


def _consumed(message: Any) -> Consumed:
    kind, timestamp_ms = message.timestamp()
    return Consumed(
        message.offset(),
        -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
