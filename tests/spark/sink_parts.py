"""The sink without a Spark session: a task and a driver are calls, made in any order and by anybody."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Consumer, TopicPartition

from riverlog.client.cluster import Cluster
from riverlog.spark.sink import decisions, held_names, kept_deciders
from riverlog.spark.sink.commit import EpochCommit
from riverlog.spark.sink.options import SinkOptions, sink_options
from riverlog.spark.sink.task_writer import write_exactly_once
from riverlog.spark.sink.tasks import Task, TaskWrote
from riverlog.testing import Broker

Read = tuple[int, bytes | None, bytes | None]


@contextmanager
def in_another_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is done here is done by another process than what is done around it, which ends with the block."""
    with monkeypatch.context() as another:
        held: dict[str, held_names.HeldName] = {}
        another.setattr(held_names, "_held", held)
        another.setattr(kept_deciders, "_kept", {})
        another.setattr(decisions, "_known", {})
        try:
            yield
        finally:
            for each in held.values():
                each.release()


def options_for(broker: Broker, topic: str | None, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, **more}
    if topic is not None:
        given["topic"] = topic
    return sink_options(given, is_stream=True)


def rows(values: Sequence[bytes | None], **columns: Sequence[Any]) -> Any:
    data = {"value": pa.array(values, pa.binary())}
    for name, given in columns.items():
        data[name] = pa.array(given, pa.binary() if name == "key" else None)
    return pa.RecordBatch.from_pydict(data)


def run_task(
    options: SinkOptions,
    values: Sequence[bytes],
    *,
    query: str,
    run: str = "run1",
    epoch: int = 0,
    partition: int = 0,
    attempt: int = 0,
) -> TaskWrote:
    task = Task(query, run, epoch, partition, attempt, may_be_repeated=True)
    return write_exactly_once(options, task, [rows(values)] if values else [])


def run_commit(
    options: SinkOptions,
    messages: Sequence[TaskWrote],
    *,
    epoch: int = 0,
    commit_class: type[EpochCommit] = EpochCommit,
) -> None:
    with Cluster(options.client) as cluster:
        commit_of(cluster, messages, epoch, commit_class).commit()


def commit_of(
    cluster: Cluster,
    messages: Sequence[TaskWrote],
    epoch: int = 0,
    commit_class: type[EpochCommit] = EpochCommit,
) -> EpochCommit:
    first = messages[0]
    return commit_class(cluster, first.identity, first.run, epoch, messages, is_stream=True)


def read_committed(broker: Broker, topic: str) -> list[Read]:
    """Partition, key and value of everything that is committed and not held back, in order."""
    return [(each.partition(), each.key(), each.value()) for each in messages_of(broker, topic)]


def messages_of(broker: Broker, topic: str) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        found: list[Any] = []
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(30)
            assert message is not None, "the reader got neither a record nor the end"
            if message.error() is not None:
                at_end.add(message.partition())
            else:
                found.append(message)
        return found
    finally:
        consumer.close()


def values_of(broker: Broker, topic: str) -> Mapping[bytes | None, int]:
    """How often each value is there."""
    return Counter(value for _, _, value in read_committed(broker, topic))
