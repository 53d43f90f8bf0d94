"""Decisions about more partitions for topics that exist. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from riverlog.controller.decisions.assignments import Replicas, check_replicas
from riverlog.controller.decisions.placement import place
from riverlog.controller.decisions.refusals import DUPLICATE_NAME, RECORDS_PER_REQUEST_MAX, Refusal, repeated
from riverlog.controller.decisions.topics import open_to_partitions, short_of_brokers
from riverlog.metadata.image import ClusterImage, TopicImage
from riverlog.model.errors import ErrorCode


class AddedPartitions(NamedTuple):
    """How many partitions a topic shall have in all; `None` leaves the replicas to placement."""

    name: str
    partitions: int
    assignments: Sequence[Sequence[int]] | None = None


class AddedPartitionsPlan(NamedTuple):
    name: str
    added: tuple[Replicas, ...]
    """Replicas of the new partitions, which are numbered on from the last one there is."""


def decide_added_partitions(
    image: ClusterImage, wanted: Sequence[AddedPartitions], *, start: Callable[[], int]
) -> list[AddedPartitionsPlan | Refusal]:
    """An outcome for each topic, in the same order."""
    duplicates = repeated(topic.name for topic in wanted)
    room = RECORDS_PER_REQUEST_MAX
    outcomes: list[AddedPartitionsPlan | Refusal] = []
    for topic in wanted:
        outcome = DUPLICATE_NAME if topic.name in duplicates else _decide(image, topic, room, start())
        if isinstance(outcome, AddedPartitionsPlan):
            room -= len(outcome.added)
        outcomes.append(outcome)
    return outcomes


def _decide(
    image: ClusterImage, wanted: AddedPartitions, room: int, start: int
) -> AddedPartitionsPlan | Refusal:
    topic = image.topics.get(wanted.name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    current = len(topic.partitions)
    count = wanted.partitions - current
    if count <= 0:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic '{wanted.name}' has {current} partitions; {wanted.partitions} would not be more.",
        )
    if wanted.assignments is not None and len(wanted.assignments) != count:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{count} partitions are to be added, but {len(wanted.assignments)} assignments were given.",
        )
    if count > room:
        # Kafka overflows a bounded list here, and that is all its answer says.
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    added = _replicas(image, topic, wanted, count, start)
    return added if isinstance(added, Refusal) else AddedPartitionsPlan(wanted.name, added)


def _replicas(
    image: ClusterImage, topic: TopicImage, wanted: AddedPartitions, count: int, start: int
) -> tuple[Replicas, ...] | Refusal:
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        if factor > len(image.brokers):
            return short_of_brokers(factor, len(image.brokers))
        return place(
            open_to_partitions(image, factor),
            partitions=count,
            replication_factor=factor,
            start=start,
            after=topic.partitions[-1].replicas[0],
        )
    added: list[Replicas] = []
    for node_ids in wanted.assignments:
        checked = check_replicas(node_ids, image.brokers.keys(), factor)
        if isinstance(checked, Refusal):
            return checked
        added.append(checked)
    return tuple(added)
