"""Members of a consumer group, the same for every client: poll, see what is assigned, commit, leave."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.conformance.clients.aio import AIOKafkaConsumer
from tests.conformance.clients.interface import TIMEOUT_S
from tests.conformance.clients.kafka_python import KafkaConsumer

POLL_S = 0.05


class GroupMember(Protocol):
    def __init__(self, bootstrap: str, group: str, topic: str) -> None: ...

    def poll(self) -> list[bytes]:
        """Values that have come, if any; also what keeps some clients in their group."""
        ...

    def partitions(self) -> set[int]: ...

    def commit(self) -> None: ...

    def close(self) -> None: ...


class ConfluentMember:
    def __init__(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
                **more,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list[bytes]:
        messages = self._consumer.consume(500, POLL_S)
        return [
            value for message in messages if not message.error() and (value := message.value()) is not None
        ]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonMember:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer: Any = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )

    def poll(self) -> list[bytes]:
        found = self._consumer.poll(timeout_ms=int(POLL_S * 1000))
        return [record.value for records in found.values() for record in records]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class AioMember:
    """With an event loop on a thread of its own, so that its heartbeats go on between polls."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._consumer: Any = self._run(self._start(bootstrap, group, topic))

    async def _start(self, bootstrap: str, group: str, topic: str) -> Any:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )
        await consumer.start()
        return consumer

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def poll(self) -> list[bytes]:
        found = self._run(self._consumer.getmany(timeout_ms=int(POLL_S * 1000)))
        return [record.value for records in found.values() for record in records]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()
