"""kafka-python."""

from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]
from kafka.admin import (  # type: ignore[import-untyped]
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    OffsetSpec,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError, KafkaTimeoutError  # type: ignore[import-untyped]

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
    "ANY_ACL",
    "ConfigResource",
    "ConfigResourceType",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaPython",
    "OffsetSpec",
    "TopicPartition",
]

ANY_ACL = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


class KafkaPython(Client):
    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        options: ProducerOptions = ProducerOptions(),  # noqa: B008 - frozen
        *,
        partition: int | None = 0,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if options.compression == "none" else options.compression,
            acks={-1: "all"}.get(options.acks, options.acks),
            enable_idempotence=options.idempotent,
            max_request_size=options.max_request_bytes,
            linger_ms=5,
            retries=5 if options.idempotent else 0,
            **self.extra,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            for future in sent:
                future.get(timeout=TIMEOUT_S)
        except KafkaTimeoutError:
            raise
        except KafkaError as error:
            raise Refused(error.errno) from error
        finally:
            producer.close(timeout=TIMEOUT_S)

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
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        if start is None:
            consumer.seek_to_beginning(place)
        elif start == -1:
            consumer.seek_to_end(place)
        else:
            consumer.seek(place, start)
        consumed: list[Consumed] = []
        try:
            for record in consumer:
                consumed.append(_consumed(record))
                if len(consumed) == count:
                    break
        finally:
            consumer.close()
        return consumed

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self._consumer(ConsumerOptions())
        place = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
        finally:
            consumer.close()

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        consumer = self._consumer(ConsumerOptions())
        place = TopicPartition(topic, partition)
        try:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
            return None if found is None else found.offset
        finally:
            consumer.close()

    def _consumer(self, options: ConsumerOptions) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_S * 1000,
            isolation_level="read_committed" if options.read_committed else "read_uncommitted",
            fetch_max_wait_ms=options.max_wait_ms,
            fetch_min_bytes=options.min_bytes,
            max_partition_fetch_bytes=options.max_partition_bytes,
            **self.extra,
        )


def _consumed(record: Any) -> Consumed:
    return Consumed(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
