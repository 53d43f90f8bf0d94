"""How a consumer comes by its partitions: told outright, or as a member of its group."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_STORED, Consumer, Message, TopicPartition

from riverlog.testing.history import Place

_JOIN_S = 30.0

MEMBERSHIPS: Mapping[str, Mapping[str, Any]] = {
    "assigned": {},
    "classic": {"group_instance_id": "only", "session_timeout_ms": 10_000},
    "consumer": {"group_protocol": "consumer"},
}
"""Settings by name. A static member of the classic protocol takes over from its killed self at once; in the
consumer protocol nobody does before the session of the old one has run out."""

GROUP_SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=2500",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=200",
    "group.min.session.timeout.ms=1000",
)
"""For the broker: a killed member is missed soon."""


def join(
    consumer: Consumer,
    partitions: Sequence[TopicPartition],
    membership: Mapping[str, Any],
    on_assign: Callable[[set[Place]], None] = lambda _: None,
) -> list[Message]:
    """Return when the consumer has the partitions, with the records that came at once. Partitions may be
    assigned again later, and reading then begins at the committed offset."""
    if not membership:
        consumer.assign([TopicPartition(each.topic, each.partition, OFFSET_STORED) for each in partitions])
        return []
    assigned: set[Place] = set()
    early: list[Message] = []

    def note(_: Consumer, given: list[TopicPartition]) -> None:
        places = {Place(each.topic, each.partition) for each in given}
        assigned.update(places)
        early[:] = without(early, places)
        on_assign(places)

    consumer.subscribe(sorted({each.topic for each in partitions}), on_assign=note)
    end = time.monotonic() + _JOIN_S
    while len(assigned) < len(partitions):
        assert time.monotonic() < end, f"only {assigned} after {_JOIN_S} s"
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            early.append(message)
    return early


def without(records: Sequence[Message], places: set[Place]) -> list[Message]:
    """The records of other partitions: of those that are assigned anew, all come again."""
    return [each for each in records if Place(each.topic() or "", each.partition() or 0) not in places]
