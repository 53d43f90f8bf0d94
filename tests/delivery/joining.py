"""How a consumer comes by its partitions: told outright, or as a member of its group."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_STORED, Consumer, Message, TopicPartition

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
    on_assign: Callable[[], None] = lambda: None,
) -> list[Message]:
    """Return when the consumer has the partitions, with the records that came at once. Partitions may be
    assigned again later, and reading then begins at the committed offset."""
    if not membership:
        consumer.assign([TopicPartition(each.topic, each.partition, OFFSET_STORED) for each in partitions])
        return []
    assigned: set[tuple[str, int]] = set()
    early: list[Message] = []

    def note(_: Consumer, given: list[TopicPartition]) -> None:
        assigned.update((each.topic, each.partition) for each in given)
        early.clear()
        on_assign()

    consumer.subscribe(sorted({each.topic for each in partitions}), on_assign=note)
    end = time.monotonic() + _JOIN_S
    while len(assigned) < len(partitions):
        assert time.monotonic() < end, f"only {assigned} after {_JOIN_S} s"
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            early.append(message)
    return early
