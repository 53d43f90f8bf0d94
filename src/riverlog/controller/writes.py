"""Plans as operations of the metadata store. Pure.

One plan is a handful of nodes in Kafka's layout. A multi of them is all or nothing, so a topic is seen with
its partitions, and a deleted one is gone in one step, unless it is too large for one write: then its node
comes first and the states of its partitions follow in pieces, or they go first, under a mark that says so.
The node of a topic is what a plan begins with: its fresh id proves that the plan was carried out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from riverlog.controller.decisions.assignments import Replicas
from riverlog.controller.decisions.leadership import Leadership, NewState
from riverlog.controller.decisions.topics import TopicPlan
from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.image import ConfigResource, ResourceType, TopicImage
from riverlog.model.metadata_store import Create, Delete, Operation, Set, bytes_of

STATES_AT_ONCE_MAX: Final = 500
"""Partitions whose states are made or removed by one write to a store that several brokers share."""


def creation(plan: TopicPlan, leadership: Leadership) -> list[Operation]:
    """All of a topic at once."""
    return [*beginning(plan), *_new_partitions(plan.name, 0, plan.replicas, leadership)]


def beginning(plan: TopicPlan) -> list[Operation]:
    """A topic whose partitions have no states yet."""
    topic = payloads.TopicNode(plan.topic_id, plan.replicas)
    return [
        Create(layout.topic(plan.name), payloads.encode_topic(topic)),
        Create(_config_of(plan.name), payloads.encode_config(plan.configs)),
        Create(layout.partitions(plan.name)),
    ]


def growth(topic: TopicImage, added: Sequence[Replicas], version: int | None) -> Operation:
    """More partitions, which have no states yet."""
    replicas = (*(partition.replicas for partition in topic.partitions), *added)
    node = payloads.TopicNode(topic.topic_id, replicas)
    return Set(layout.topic(topic.name), payloads.encode_topic(node), version)


def added_partitions(
    topic: TopicImage, added: Sequence[Replicas], leadership: Leadership, version: int | None
) -> list[Operation]:
    """More partitions with their states, at once."""
    states = _new_partitions(topic.name, len(topic.partitions), added, leadership)
    return [growth(topic, added, version), *states]


def deletion(topic: TopicImage) -> list[Operation]:
    """All of a topic at once."""
    paths = [layout.partition(topic.name, index) for index in _in_store_order(0, len(topic.partitions))]
    return [*(Delete(f"{path}/state") for path in paths), *map(Delete, paths), *end(topic.name)]


def end(topic: str) -> list[Operation]:
    """What is left of a topic without partitions goes."""
    return [Delete(layout.partitions(topic)), Delete(layout.topic(topic)), Delete(_config_of(topic))]


def mark_to_delete(topic: str) -> Operation:
    """That a topic which cannot go in one step is going."""
    return Create(layout.topic_to_delete(topic))


def remember_deleted(topic: TopicImage, now_ms: int) -> Operation:
    topic_id = payloads.uuid_text(topic.topic_id)
    return Create(layout.deleted_topic(topic_id), payloads.encode_deleted_topic(topic.name, now_ms))


def removed_states(topic: str, present: Iterable[str]) -> Iterator[list[Operation]]:
    """One by one, of the paths that there are below the partitions of a topic that is being deleted."""
    found = set(present)
    for path in sorted(each for each in found if each.rpartition("/")[0] == layout.partitions(topic)):
        state = f"{path}/state"
        yield [*([Delete(state)] if state in found else []), Delete(path)]


def states(new_states: Iterable[NewState]) -> Iterator[list[Operation]]:
    """Each by itself; those that are replaced only as the versions that were decided on."""
    encoded: dict[payloads.PartitionNode, bytes] = {}
    for topic, index, expected, node in new_states:
        data = encoded.get(node)
        if data is None:
            data = encoded[node] = payloads.encode_partition(node)
        path = layout.partition_state(topic, index)
        if expected is None:
            yield [Create(layout.partition(topic, index)), Create(path, data)]
        else:
            yield [Set(path, data, expected)]


def in_pieces(groups: Iterable[Sequence[Operation]], bytes_max: int) -> Iterator[list[Operation]]:
    """Groups that belong together, as few writes as possible of at most so many groups and bytes."""
    piece: list[Operation] = []
    count = size = 0
    for group in groups:
        added = bytes_of(group)
        if piece and (count == STATES_AT_ONCE_MAX or size + added > bytes_max):
            yield piece
            piece, count, size = [], 0, 0
        piece += group
        count += 1
        size += added
    if piece:
        yield piece


def configuration(resource: ConfigResource, values: Mapping[str, str], *, exists: bool) -> Operation:
    path = config_path(resource)
    data = payloads.encode_config(values)
    return Set(path, data) if exists else Create(path, data)


def paths_of(topic: str) -> tuple[str, str]:
    """All that a change of a topic touches is at or below these."""
    return layout.topic(topic), _config_of(topic)


def _config_of(topic: str) -> str:
    return config_path(ConfigResource(ResourceType.TOPIC, topic))


def _new_partitions(
    topic: str, first: int, replicas: Sequence[Replicas], leadership: Leadership
) -> list[Operation]:
    encoded = {each: payloads.encode_partition(leadership.first_state(each)) for each in set(replicas)}
    indexes = _in_store_order(first, first + len(replicas))
    return [
        *(Create(layout.partition(topic, index)) for index in indexes),
        *(
            Create(layout.partition_state(topic, index), encoded[replicas[index - first]])
            for index in indexes
        ),
    ]


def _in_store_order(first: int, end: int) -> list[int]:
    """As the names are sorted: a store on disk then works its way along, instead of jumping about."""
    return sorted(range(first, end), key=str)
