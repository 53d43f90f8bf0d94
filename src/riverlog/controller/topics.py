"""Decisions about topics: may this one be created, grown or deleted, and what becomes of it. Pure.

A decision is a plan or a refusal; `controller` carries plans out. Not here: reading requests off the wire and
writing to the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from riverlog.controller import names
from riverlog.controller.placement import place
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId

Assignments = Sequence[tuple[int, Sequence[int]]]
"""Partition index and its replicas, as the request gave them: in any order, maybe wrong."""


@dataclass(frozen=True, slots=True)
class Refusal:
    error: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that somebody wants. `None` asks for the broker's default."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Assignments = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that can be made as it stands here."""

    name: str
    topic_id: UUID
    replicas: tuple[tuple[NodeId, ...], ...]
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    partitions: int = 1
    replication_factor: int = 1


def decide_create(
    image: ClusterImage, wanted: NewTopic, defaults: TopicDefaults, *, topic_id: UUID, start: int
) -> TopicPlan | Refusal:
    if problem := names.problem_with(wanted.name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if wanted.name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{wanted.name}' already exists.")
    if other := names.colliding(wanted.name, image.topics):
        return Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{wanted.name}' differs from '{other}' only in '.' and '_', which are one in metric names.",
        )
    replicas = _replicas(image, wanted, defaults, start)
    if isinstance(replicas, Refusal):
        return replicas
    return TopicPlan(wanted.name, topic_id, replicas, wanted.configs)


def _replicas(
    image: ClusterImage, wanted: NewTopic, defaults: TopicDefaults, start: int
) -> tuple[tuple[NodeId, ...], ...] | Refusal:
    partitions = defaults.partitions if wanted.partitions is None else wanted.partitions
    factor = defaults.replication_factor if wanted.replication_factor is None else wanted.replication_factor
    return place(sorted(image.brokers), partitions=partitions, replication_factor=factor, start=start)
