"""Plans as operations of the metadata store. Pure.

One plan is a handful of nodes in Kafka's layout; a multi of them is all or nothing, so a topic is never seen
without its partitions, and a deleted one is gone in one step: the logs it leaves are strays from then on.
"""

from collections.abc import Collection, Mapping, Sequence

from riverlog.controller.assignments import Replicas
from riverlog.controller.topics import TopicPlan
from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.image import ConfigResource, ResourceType, TopicImage
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.metadata_store import Create, Delete, Operation, Set


def creation(plan: TopicPlan, alive: Collection[NodeId], controller_epoch: int) -> list[Operation]:
    topic = payloads.TopicNode(plan.topic_id, plan.replicas)
    return [
        Create(
            config_path(ConfigResource(ResourceType.TOPIC, plan.name)), payloads.encode_config(plan.configs)
        ),
        Create(layout.topic(plan.name), payloads.encode_topic(topic)),
        Create(layout.partitions(plan.name)),
        *_new_partitions(plan.name, 0, plan.replicas, alive, controller_epoch),
    ]


def added_partitions(
    topic: TopicImage, added: Sequence[Replicas], alive: Collection[NodeId], controller_epoch: int
) -> list[Operation]:
    replicas = (*(partition.replicas for partition in topic.partitions), *added)
    return [
        Set(layout.topic(topic.name), payloads.encode_topic(payloads.TopicNode(topic.topic_id, replicas))),
        *_new_partitions(topic.name, len(topic.partitions), added, alive, controller_epoch),
    ]


def deletion(topic: TopicImage) -> list[Operation]:
    paths = [layout.partition(topic.name, index) for index in _in_store_order(0, len(topic.partitions))]
    return [
        *(Delete(f"{path}/state") for path in paths),
        *map(Delete, paths),
        Delete(layout.partitions(topic.name)),
        Delete(layout.topic(topic.name)),
        Delete(config_path(ConfigResource(ResourceType.TOPIC, topic.name))),
    ]


def configuration(resource: ConfigResource, values: Mapping[str, str], *, exists: bool) -> Operation:
    path = config_path(resource)
    data = payloads.encode_config(values)
    return Set(path, data) if exists else Create(path, data)


def paths_of(topic: str) -> tuple[str, str]:
    """All that a change of a topic touches is at or below these."""
    return layout.topic(topic), config_path(ConfigResource(ResourceType.TOPIC, topic))


def _new_partitions(
    topic: str, first: int, replicas: Sequence[Replicas], alive: Collection[NodeId], controller_epoch: int
) -> list[Operation]:
    states: dict[Replicas, bytes] = {}
    for assigned in set(replicas):
        isr = tuple(node_id for node_id in assigned if node_id in alive)
        node = payloads.PartitionNode(
            isr[0] if isr else None, LeaderEpoch(0), isr or assigned, controller_epoch
        )
        states[assigned] = payloads.encode_partition(node)
    indexes = _in_store_order(first, first + len(replicas))
    return [
        *(Create(layout.partition(topic, index)) for index in indexes),
        *(Create(layout.partition_state(topic, index), states[replicas[index - first]]) for index in indexes),
    ]


def _in_store_order(first: int, end: int) -> list[int]:
    """As the names are sorted: a store on disk then works its way along, instead of jumping about."""
    return sorted(range(first, end), key=str)
