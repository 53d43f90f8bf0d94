"""Which logs on disk belong to no partition of this node any more. Pure.

A deleted topic is gone from the metadata in one step; its logs are renamed and removed after that. A crash in
between leaves them behind, and so does a deletion while the node was down: on start they are found here. The
topic id tells a log from that of an older topic of the same name.
"""

from collections.abc import Iterable
from uuid import UUID

from riverlog.metadata.image import ClusterImage
from riverlog.model.ids import NodeId, TopicPartition


def stray_logs(
    image: ClusterImage, node_id: NodeId, found: Iterable[tuple[TopicPartition, UUID | None]]
) -> list[TopicPartition]:
    """Those of the logs found on disk, each with the topic id written beside it, that may be removed.

    The image must be that of the cluster the data directory belongs to: `cluster.prepare` sees to it.
    """
    return [each for each, topic_id in found if not _is_wanted(image, node_id, each, topic_id)]


def _is_wanted(image: ClusterImage, node_id: NodeId, log: TopicPartition, topic_id: UUID | None) -> bool:
    partition = image.partition(log.topic, log.partition)
    if partition is None or node_id not in partition.replicas:
        return False
    return topic_id is None or topic_id == image.topics[log.topic].topic_id
