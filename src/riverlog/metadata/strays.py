"""Which logs on disk belong to no partition of this node any more. Pure.

A deleted topic is gone from the metadata in one step; its logs are renamed and removed after that. A crash in
between leaves them behind, and so does a deletion while the node was down: on start they are found here. The
topic id tells a log from that of an older topic of the same name. But the metadata may also be wrong, that of
another cluster or an old copy, so that strays are moved aside and not deleted, and that many are a reason not
to start.
"""

from collections.abc import Collection, Iterable

from riverlog.metadata.image import ClusterImage
from riverlog.model.ids import NodeId, TopicId, TopicPartition


def stray_logs(
    image: ClusterImage, node_id: NodeId, found: Iterable[tuple[TopicPartition, TopicId | None]]
) -> list[TopicPartition]:
    """Those of the logs found on disk, each with the topic id written beside it, that no partition claims.

    The image must be that of the cluster the data directory belongs to: `cluster.prepare` sees to it.
    """
    return [each for each, topic_id in found if not _is_wanted(image, node_id, each, topic_id)]


def are_too_many(strays: Collection[TopicPartition], log_count: int) -> bool:
    """More than half of all logs, of more than one topic: that is no deletion that a crash has cut short."""
    return 2 * len(strays) > log_count and len({each.topic for each in strays}) > 1


def _is_wanted(image: ClusterImage, node_id: NodeId, log: TopicPartition, topic_id: TopicId | None) -> bool:
    partition = image.partition(log.topic, log.partition)
    if partition is None or node_id not in partition.replicas:
        return False
    return topic_id is None or topic_id == image.topics[log.topic].topic_id
