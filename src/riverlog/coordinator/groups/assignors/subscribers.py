"""What an assignor is told about a member, and the shape of what it answers."""

from collections.abc import Mapping
from typing import NamedTuple

from riverlog.model.ids import TopicId

Assignment = Mapping[TopicId, tuple[int, ...]]
"""Partitions by topic id, in ascending order; no topic without partitions."""


class Subscriber(NamedTuple):
    topics: frozenset[TopicId]
    """Only topics that exist."""
    current: Assignment
    """The member's part of the target assignment so far."""
    instance_id: str | None = None


def in_order(partitions: Mapping[TopicId, "set[int] | list[int]"]) -> Assignment:
    return {topic: tuple(sorted(indexes)) for topic, indexes in partitions.items() if indexes}
