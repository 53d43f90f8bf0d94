"""Members of a consumer group, the same for every client: poll, see what is assigned, commit, leave."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, Queue
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.conformance.clients.aio import AIOKafkaConsumer
from tests.conformance.clients.interface import TIMEOUT_S
from tests.conformance.clients.kafka_python import KafkaConsumer
from tests.waiting import eventually

POLL_S = 0.05


class GroupMember:
    """A client on a thread of its own, which polls all the time.

    Polled in turns by one thread, members could wait for one another: a client may hold its poll until a
    rebalance is over, which is over when the others have polled.
    """

    _consumer: Any

    def __init__(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._values: Queue[bytes] = Queue()
        self._partitions: set[int] = set()
        self._leaving = False
        self._thread.submit(self._join, bootstrap, group, topic, **more).result(TIMEOUT_S)
        self._thread.submit(self._go_on)

    def _go_on(self) -> None:
        """One poll, and the next when what was asked of the member meanwhile is done."""
        for value in self._receive():
            self._values.put(value)
        self._partitions = {each.partition for each in self._consumer.assignment()}
        if not self._leaving:
            self._thread.submit(self._go_on)

    def poll(self) -> list[bytes]:
        """Values that have come, if any."""
        try:
            found = [self._values.get(timeout=POLL_S)]
        except Empty:
            return []
        while not self._values.empty():
            found.append(self._values.get())
        return found

    def partitions(self) -> set[int]:
        """What was assigned when it last polled."""
        return self._partitions

    def commit(self) -> None:
        self._thread.submit(self._commit).result(TIMEOUT_S)

    def close(self) -> None:
        self._leaving = True
        self._thread.submit(self._close).result(TIMEOUT_S)
        self._thread.shutdown()

    def _join(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
        raise NotImplementedError

    def _receive(self) -> list[bytes]:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError


class ConfluentMember(GroupMember):
    def _join(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
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

    def _receive(self) -> list[bytes]:
        messages = self._consumer.consume(500, POLL_S)
        return [
            value for message in messages if not message.error() and (value := message.value()) is not None
        ]

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise

    def _close(self) -> None:
        self._consumer.close()


class KafkaPythonMember(GroupMember):
    """Knows the topic's partitions before it joins, and polls for longer than a rebalance takes.

    kafka-python forgets the outcome of a join that outlasts its poll, and joins again. When it had joined
    because it heard of new partitions it does not even do that, and stays without any: it did so on Apache
    Kafka with no initial delay as often as here.
    """

    _POLL_MS = 1000

    def _join(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            **more,
        )
        eventually(lambda: self._consumer.partitions_for_topic(topic))

    def _receive(self) -> list[bytes]:
        found = self._consumer.poll(timeout_ms=self._POLL_MS)
        return [record.value for records in found.values() for record in records]

    def _commit(self) -> None:
        self._consumer.commit()

    def _close(self) -> None:
        self._consumer.close(autocommit=False)


class AioMember(GroupMember):
    def _join(self, bootstrap: str, group: str, topic: str, **more: object) -> None:
        self._loop = asyncio.Runner()
        self._consumer = self._loop.run(self._start(bootstrap, group, topic, **more))

    async def _start(self, bootstrap: str, group: str, topic: str, **more: object) -> Any:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            **more,
        )
        await consumer.start()
        return consumer

    def _receive(self) -> list[bytes]:
        found = self._loop.run(self._consumer.getmany(timeout_ms=int(POLL_S * 1000)))
        return [record.value for records in found.values() for record in records]

    def _commit(self) -> None:
        self._loop.run(self._consumer.commit())

    def _close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.close()
