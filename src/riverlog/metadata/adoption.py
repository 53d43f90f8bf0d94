"""Metadata made from the logs of a data directory: for one of Apache Kafka, or one whose metadata was lost.

Pure: what was found goes in, the document that `export.restore` writes comes out. What the files do not tell
is chosen so that nothing is lost: topics keep their records without limit until somebody says otherwise, a
leader begins a new epoch, and producer ids begin above all that were given out. Not in the files: settings,
partitions that other brokers had, feature levels.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.config_nodes import config_path
from riverlog.metadata.export import FORMAT
from riverlog.metadata.image import ConfigResource, ResourceType
from riverlog.metadata.payloads import PartitionNode, TopicNode
from riverlog.model.ids import PRODUCER_IDS_PER_MS, LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.model.internal_topics import INTERNAL_TOPICS

KRAFT_LOG: Final = "__cluster_metadata"
"""Kafka's own metadata, which is not read."""
_KEEP: Final = {"retention.bytes": "-1", "retention.ms": "-1"}
_COMPACT: Final = {"cleanup.policy": "compact"}


class FoundLog(NamedTuple):
    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: LeaderEpoch | None
    """The latest that has written to it."""


class AdoptedTopic(NamedTuple):
    name: str
    topic_id: TopicId
    is_id_new: bool
    partitions: int
    missing: tuple[int, ...]
    """Partitions without a log here, which would begin empty."""


class Adoption(NamedTuple):
    topics: tuple[AdoptedTopic, ...]
    refused: Mapping[str, str]
    """Topics that are left out, and why."""
    document: dict[str, Any]


def decide_adoption(
    logs: Iterable[FoundLog],
    node_id: NodeId,
    cluster_id: str,
    *,
    new_id: Callable[[], UUID],
    now_ms: int,
) -> Adoption:
    by_topic: dict[str, list[FoundLog]] = {}
    for log in logs:
        if log.partition.topic != KRAFT_LOG:
            by_topic.setdefault(log.partition.topic, []).append(log)
    topics: list[AdoptedTopic] = []
    refused: dict[str, str] = {}
    first = now_ms * PRODUCER_IDS_PER_MS
    nodes = {
        **dict.fromkeys(layout.PERSISTENT, b""),
        layout.CLUSTER_ID: payloads.encode_cluster_id(cluster_id),
        layout.PRODUCER_ID_BLOCK: payloads.encode_producer_ids(node_id, first, first),
    }
    for name, found in sorted(by_topic.items()):
        ids = {log.topic_id for log in found} - {None}
        if len(ids) > 1:
            refused[name] = "its partitions have several topic ids: they are of topics made one after another"
            continue
        known = next(iter(ids), None)
        topic_id = known or TopicId(new_id())
        present = {log.partition.partition for log in found}
        count = max(present) + 1
        missing = tuple(index for index in range(count) if index not in present)
        topics.append(AdoptedTopic(name, topic_id, known is None, count, missing))
        nodes |= _nodes_of(name, topic_id, count, found, node_id)
    document = {"format": FORMAT, "nodes": {path: data.decode() for path, data in nodes.items()}}
    return Adoption(tuple(topics), refused, document)


def _nodes_of(
    name: str, topic_id: TopicId, count: int, found: Sequence[FoundLog], node_id: NodeId
) -> dict[str, bytes]:
    replicas = ((node_id,),) * count
    settings = _COMPACT if name in INTERNAL_TOPICS else _KEEP
    epochs = {log.partition.partition: log.leader_epoch for log in found}
    nodes = {
        config_path(ConfigResource(ResourceType.TOPIC, name)): payloads.encode_config(settings),
        layout.topic(name): payloads.encode_topic(TopicNode(topic_id, replicas)),
        layout.partitions(name): b"",
    }
    for index in range(count):
        latest = epochs.get(index)
        state = PartitionNode(node_id, LeaderEpoch(0 if latest is None else latest + 1), (node_id,), 0)
        nodes[layout.partition(name, index)] = b""
        nodes[layout.partition_state(name, index)] = payloads.encode_partition(state)
    return nodes
