"""What came out, seen by readers that are not ours, and compared with what the sample says.

Topics are read by librdkafka as a consumer of committed records; the archive by Arrow, straight from the
Parquet files. Neither knows what Spark or the broker believe to have written.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.dataset as ds  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from examples.demo.orders import Expected, Record, topic_of
from examples.demo.pipeline import DEAD, ORDERS, REGION_TOPICS, REVENUE

_QUIET_S = 30.0


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the report: a step, how much must be there, how much is, and what is wrong with it."""

    step: str
    where: str
    wanted: int
    found: int
    wrong: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.wanted == self.found and not self.wrong


def check(bootstrap: str, archive: Path, sample: list[Record], wanted: Expected) -> list[Line]:
    sent = Counter((record.key, record.value) for record in sample)
    broken = Counter((record.key, record.value) for record in sample if record.order is None)
    orders = {record.order.number: record for record in sample if record.order is not None}
    lines = [_same("orders sent", ORDERS, sent, _pairs(committed(bootstrap, ORDERS)))]
    lines.append(_same("dead letters", DEAD, broken, _pairs(committed(bootstrap, DEAD))))
    for topic in REGION_TOPICS:
        here = [r for r in orders.values() if r.order is not None and topic_of(r.order.region) == topic]
        once = Counter((record.key, record.value) for record in here)
        lines.append(
            _same(f"by region: {topic.split('.')[1]}", topic, once, _pairs(committed(bootstrap, topic)))
        )
    lines.append(_revenue(wanted, committed(bootstrap, REVENUE)))
    rows = ds.dataset(str(archive), format="parquet", partitioning="hive").to_table(["key", "value"])
    lines.append(_same("archive", "Parquet", sent, ((r["key"], r["value"]) for r in rows.to_pylist())))
    return lines


def committed(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every committed record of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo-proof",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log.connection.close": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, _QUIET_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        at_end: set[int | None] = set()
        while len(at_end) < len(partitions):
            message = consumer.poll(_QUIET_S)
            if message is None:
                raise TimeoutError(f"{topic} did not come to its end")
            error = message.error()
            if error is None:
                yield message
            elif error.name() == "_PARTITION_EOF":
                at_end.add(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()


def _pairs(messages: Iterable[Message]) -> Iterator[tuple[bytes, bytes]]:
    return ((_bytes(message.key()), _bytes(message.value())) for message in messages)


def _bytes(part: object) -> bytes:
    assert isinstance(part, bytes)
    return part


def _same(
    step: str, where: str, wanted: Counter[tuple[bytes, bytes]], found: Iterable[tuple[bytes, bytes]]
) -> Line:
    seen = Counter(found)
    missing, extra = (wanted - seen).total(), (seen - wanted).total()
    wrong = [f"{missing} missing"] * bool(missing) + [f"{extra} too many"] * bool(extra)
    return Line(step, where, wanted.total(), seen.total(), tuple(wrong))


def _revenue(wanted: Expected, messages: Iterable[Message]) -> Line:
    found: dict[tuple[str, datetime], tuple[int, int]] = {}
    wrong: list[str] = []
    count = 0
    for message in messages:
        window = json.loads(_bytes(message.value()))
        place = window["region"], datetime.fromtimestamp(window["start"], UTC)
        if place in found:
            wrong.append(f"{place[0]} {place[1]:%H:%M} twice")
        found[place] = window["orders"], window["cents"]
        count += 1
    for place, figures in wanted.windows.items():
        if found.get(place) != figures:
            wrong.append(f"{place[0]} {place[1]:%H:%M}: {found.get(place)}, not {figures}")
    return Line("revenue windows", REVENUE, len(wanted.windows), count, tuple(wrong[:5]))


def summary(wanted: Expected) -> str:
    regions = sum(wanted.by_topic.values())
    return (
        f"{wanted.sent:,} records went in: {regions:,} orders, {wanted.again:,} of them twice, and "
        f"{wanted.broken:,} broken ones. {wanted.windows_open} windows are not over yet."
    )
