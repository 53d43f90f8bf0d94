"""A group of a foreign client whose coordinator is killed, stopped or held, step by step."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaException
from kafka import KafkaConsumer  # type: ignore[import-untyped]

from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.testing import Cluster
from tests.waiting import eventually

_TOPIC = "orders"
_WAIT_S = 60.0
_GROUP = "g"


class Member:
    """One member of the group, on a thread of its own, that commits what it has read after each record."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.values: list[bytes] = []
        self.committed: dict[int, int] = {}
        """What was acknowledged, by partition."""
        self.is_stopping = False

    def read(self, partition: int, offset: int, value: bytes) -> dict[int, int]:
        self.values.append(value)
        return {partition: offset + 1}

    def acknowledged(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            assert offset >= self.committed.get(partition, 0), "a commit goes back"
            self.committed[partition] = offset


def confluent(member: Member, **settings: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": member.servers,
            "group.id": _GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
            **settings,
        }
    )
    consumer.subscribe([_TOPIC])
    while not member.is_stopping:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        offsets = member.read(message.partition() or 0, message.offset() or 0, message.value() or b"")
        while not member.is_stopping:
            try:
                consumer.commit(message=message, asynchronous=False)
                member.acknowledged(offsets)
                break
            except KafkaException as error:
                # The partition may be another's by now, and is read again from what was committed.
                if not error.args[0].retriable():
                    break
    consumer.close()


def confluent_consumer_protocol(member: Member) -> None:
    confluent(member, **{"group.protocol": "consumer"})


def kafka_python(member: Member) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=member.servers.split(","),
        group_id=_GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,
        max_poll_records=1,
    )
    assert consumer.partitions_for_topic(_TOPIC)
    consumer.subscribe([_TOPIC])
    while not member.is_stopping:
        for records in consumer.poll(timeout_ms=1_000).values():
            for record in records:
                offsets = member.read(record.partition, record.offset, record.value)
                consumer.commit()
                member.acknowledged(offsets)
    consumer.close()
    del consumer
    with warnings.catch_warnings():
        # The client leaves the sockets open whose connection was refused.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def aiokafka(member: Member) -> None:
    async def read() -> None:
        consumer = AIOKafkaConsumer(
            _TOPIC,
            bootstrap_servers=member.servers,
            group_id=_GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1_000,
        )
        await consumer.start()
        while not member.is_stopping:
            for records in (await consumer.getmany(timeout_ms=100, max_records=1)).values():
                for record in records:
                    offsets = member.read(record.partition, record.offset, record.value)
                    await consumer.commit()
                    member.acknowledged(offsets)
        await consumer.stop()

    asyncio.run(read())


@contextmanager
def running(read: Callable[[Member], None], servers: str) -> Iterator[Member]:
    member = Member(servers)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            read(member)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield member
    finally:
        member.is_stopping = True
        thread.join(_WAIT_S)
    assert not thread.is_alive()
    assert not failures


def kill(cluster: Cluster, broker: int) -> None:
    cluster.kill(broker)


def stop(cluster: Cluster, broker: int) -> None:
    cluster[broker].stop()


def hold(cluster: Cluster, broker: int) -> None:
    """For a while, in which no other takes its place."""
    cluster.pause(broker)
    threading.Timer(2.0, lambda: cluster.resume(broker)).start()


def coordinator(cluster: Cluster) -> int:
    found: list[int] = []

    def look() -> bool:
        leaders = cluster.leaders(OFFSETS_TOPIC)
        leader = leaders[partition_for(_GROUP, len(leaders))]
        found[:] = [] if leader is None else [leader]
        return bool(found)

    eventually(look, timeout_s=_WAIT_S)
    return found[0]


def goes_on(read: Callable[[Member], None], fault: Callable[[Cluster, int], None]) -> None:
    """The group reads and commits all that is sent before the fault, after it, and when all is well again."""
    with Cluster(brokers=3, replication_factor=3) as cluster:
        cluster.create_topic(_TOPIC, partitions=3)
        with running(read, cluster.bootstrap_servers) as member:

            def send(numbers: range) -> None:
                for at in numbers:
                    cluster.produce(_TOPIC, str(at), partition=at % 3)
                eventually(lambda: sum(member.committed.values()) == numbers.stop, timeout_s=_WAIT_S)

            send(range(6))
            victim = coordinator(cluster)
            fault(cluster, victim)
            send(range(6, 12))
            if fault is not hold:
                assert coordinator(cluster) != victim
                cluster.restart(victim)
            send(range(12, 18))
        assert cluster.committed(_GROUP) == {(_TOPIC, at): 6 for at in range(3)}
        assert set(member.values) == {str(at).encode() for at in range(18)}
