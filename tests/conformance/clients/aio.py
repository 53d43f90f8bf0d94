"""aiokafka, each call on an event loop of its own."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import (  # type: ignore[import-untyped]
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from aiokafka.admin.config_resource import (  # type: ignore[import-untyped]
    ConfigResource,
    ConfigResourceType,
)
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

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
    "AIOKafkaAdminClient",
    "AIOKafkaConsumer",
    "AioKafka",
    "ConfigResource",
    "ConfigResourceType",
    "NewPartitions",
    "NewTopic",
    "RecordsToDelete",
    "TopicPartition",
]


class AioKafka(Client):
    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        options: ProducerOptions = ProducerOptions(),  # noqa: B008 - frozen
        *,
        partition: int | None = 0,
    ) -> None:
        asyncio.run(self._produce(topic, messages, options, partition))

    async def _produce(
        self, topic: str, messages: Sequence[Message], options: ProducerOptions, partition: int | None
    ) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if options.compression == "none" else options.compression,
            acks={-1: "all"}.get(options.acks, options.acks),
            enable_idempotence=options.idempotent,
            max_request_size=options.max_request_bytes,
            linger_ms=5,
        )
        await producer.start()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                sent = [
                    await producer.send(
                        topic,
                        message.value,
                        key=message.key,
                        headers=list(message.headers),
                        partition=partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await asyncio.gather(*sent)
        except KafkaError as error:
            raise Refused(error.errno) from error
        finally:
            await producer.stop()

    def consume(
        self,
        topic: str,
        count: int,
        options: ConsumerOptions = ConsumerOptions(),  # noqa: B008 - frozen
        *,
        partition: int = 0,
        start: int | None = None,
    ) -> list[Consumed]:
        return asyncio.run(self._consume(TopicPartition(topic, partition), count, options, start))

    async def _consume(
        self, place: Any, count: int, options: ConsumerOptions, start: int | None
    ) -> list[Consumed]:
        consumed: list[Consumed] = []
        consumer = await self._consumer(options)
        try:
            consumer.assign([place])
            if start is None:
                await consumer.seek_to_beginning(place)
            elif start == -1:
                await consumer.seek_to_end(place)
            else:
                consumer.seek(place, start)
            async with asyncio.timeout(TIMEOUT_S):
                while len(consumed) < count:
                    consumed.append(_consumed(await consumer.getone()))
        except TimeoutError:
            pass
        finally:
            await consumer.stop()
        return consumed

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return asyncio.run(self._watermarks(TopicPartition(topic, partition)))

    async def _watermarks(self, place: Any) -> tuple[int, int]:
        consumer = await self._consumer(ConsumerOptions())
        try:
            low = await consumer.beginning_offsets([place])
            high = await consumer.end_offsets([place])
            return low[place], high[place]
        finally:
            await consumer.stop()

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        return asyncio.run(self._offset_at(TopicPartition(topic, partition), timestamp_ms))

    async def _offset_at(self, place: Any, timestamp_ms: int) -> int | None:
        consumer = await self._consumer(ConsumerOptions())
        try:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else found.offset
        finally:
            await consumer.stop()

    async def _consumer(self, options: ConsumerOptions) -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if options.read_committed else "read_uncommitted",
            fetch_max_wait_ms=options.max_wait_ms,
            fetch_min_bytes=options.min_bytes,
            max_partition_fetch_bytes=options.max_partition_bytes,
        )
        await consumer.start()
        return consumer


def _consumed(record: Any) -> Consumed:
    return Consumed(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
