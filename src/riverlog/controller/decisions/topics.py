"""Decisions about new topics: may each be created, and what becomes of it. Pure.

A decision is a plan or a refusal; `controller` carries plans out. Checks come in Kafka's order, since only
the first that fails is answered. Not here: adding partitions (`added_partitions`) and deleting (`deletion`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from riverlog.controller.decisions import names
from riverlog.controller.decisions.assignments import Replicas, decide_replicas
from riverlog.controller.decisions.placement import place
from riverlog.controller.decisions.refusals import (
    DUPLICATE_NAME,
    PARTITIONS_PER_REQUEST_MAX,
    RECORDS_PER_REQUEST_MAX,
    Refusal,
    repeated,
)
from riverlog.metadata.image import BrokerImage, ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. `None` asks for the broker's default."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    """Partition index and its replicas, as the request gave them: in any order, maybe wrong."""
    configs: Mapping[str, str | None] = field(default_factory=dict)


class TopicPlan(NamedTuple):
    """A topic that can be made as it stands here."""

    name: str
    topic_id: TopicId
    replicas: tuple[Replicas, ...]
    configs: Mapping[str, str]


class TopicRules(NamedTuple):
    """What applies where the request is silent, and what the settings of a topic may be."""

    partitions: int = 1
    replication_factor: int = 1
    config_problem: Callable[[Mapping[str, str]], str | None] = lambda configs: None
    """Why a topic cannot have these settings; `None` when it can."""


def decide_creations(
    image: ClusterImage,
    wanted: Sequence[NewTopic],
    rules: TopicRules,
    *,
    new_id: Callable[[], UUID],
    start: Callable[[], int],
) -> list[TopicPlan | Refusal]:
    """An outcome for each topic, in the same order."""
    if sum(_partition_count(topic, rules) for topic in wanted) > PARTITIONS_PER_REQUEST_MAX:
        return [_too_many(f"One request makes at most {PARTITIONS_PER_REQUEST_MAX} partitions.")] * len(
            wanted
        )
    duplicates = repeated(topic.name for topic in wanted)
    taken = names.TakenNames(image.topics)
    outcomes = [
        DUPLICATE_NAME
        if topic.name in duplicates
        else _decide(image, taken, topic, rules, topic_id=TopicId(new_id()), start=start())
        for topic in wanted
    ]
    plans = [outcome for outcome in outcomes if isinstance(outcome, TopicPlan)]
    if sum(1 + len(plan.configs) + len(plan.replicas) for plan in plans) > RECORDS_PER_REQUEST_MAX:
        message = f"Topics, settings and partitions of one request number at most {RECORDS_PER_REQUEST_MAX}."
        return [_too_many(message)] * len(wanted)
    return outcomes


def _decide(
    image: ClusterImage,
    taken: names.TakenNames,
    wanted: NewTopic,
    rules: TopicRules,
    *,
    topic_id: TopicId,
    start: int,
) -> TopicPlan | Refusal:
    if refusal := _refuse_name(image, taken, wanted.name):
        return refusal
    configs: dict[str, str] = {}
    for name, value in wanted.configs.items():
        if value is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"The topic setting {name} has no value.")
        configs[name] = value
    if problem := rules.config_problem(configs):
        return Refusal(ErrorCode.INVALID_CONFIG, problem)
    replicas = _assigned(image, wanted) if wanted.assignments else _placed(image, wanted, rules, start)
    if isinstance(replicas, Refusal):
        return replicas
    return TopicPlan(wanted.name, topic_id, replicas, configs)


def _refuse_name(image: ClusterImage, taken: names.TakenNames, name: str) -> Refusal | None:
    if problem := names.problem_with(name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if other := taken.colliding(name):
        return Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' differs from '{other}' only in '.' and '_', which are one in metric names.",
        )
    return None


def _assigned(image: ClusterImage, wanted: NewTopic) -> tuple[Replicas, ...] | Refusal:
    if wanted.replication_factor is not None:
        return _contradiction("replication factor")
    if wanted.partitions is not None:
        return _contradiction("number of partitions")
    return decide_replicas(wanted.assignments, image.brokers.keys())


def _contradiction(what: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"Replicas are assigned one by one, so the {what} must be -1.")


def _placed(
    image: ClusterImage, wanted: NewTopic, rules: TopicRules, start: int
) -> tuple[Replicas, ...] | Refusal:
    factor = rules.replication_factor if wanted.replication_factor is None else wanted.replication_factor
    if factor <= 0:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be positive, or -1 for the default.",
        )
    partitions = rules.partitions if wanted.partitions is None else wanted.partitions
    if partitions <= 0:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS, "The number of partitions must be positive, or -1 for the default."
        )
    if factor > len(image.brokers):
        return short_of_brokers(factor, len(image.brokers))
    brokers = open_to_partitions(image, factor)
    return place(brokers, partitions=partitions, replication_factor=factor, start=start)


def open_to_partitions(image: ClusterImage, factor: int) -> list[BrokerImage]:
    """The brokers that new partitions may go to: not those that are about to go, if there are enough."""
    staying = [broker for broker in image.brokers.values() if not broker.is_shutting_down]
    return staying if len(staying) >= factor else list(image.brokers.values())


def short_of_brokers(factor: int, brokers: int) -> Refusal:
    there = "1 broker is" if brokers == 1 else f"{brokers} brokers are"
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"{factor} replicas were asked for, but only {there} registered.",
    )


def _partition_count(topic: NewTopic, rules: TopicRules) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return rules.partitions if topic.partitions is None else max(0, topic.partitions)


def _too_many(message: str) -> Refusal:
    return Refusal(ErrorCode.POLICY_VIOLATION, message)
