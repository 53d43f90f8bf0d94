"""A node's replicas under images with several replicas to a partition, on a simulated disk."""

from collections.abc import Sequence
from uuid import UUID

from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.replication.partition import Partition
from tests.broker.raw_client import one_record
from tests.coordinator.hosting import START_MS, Cluster

TOPIC = "orders"
TOPIC_ID = UUID(int=7)
NOW_MS = START_MS
ME, SECOND, THIRD = NodeId(1), NodeId(2), NodeId(3)
ALL = (ME, SECOND, THIRD)


def partition_image(
    *, replicas: Sequence[NodeId] = ALL, isr: Sequence[NodeId] = ALL, leader: int = ME, epoch: int = 5
) -> PartitionImage:
    return PartitionImage(tuple(replicas), tuple(isr), NodeId(leader), LeaderEpoch(epoch), 0)


def image_of(*partitions: PartitionImage, topic: str = TOPIC, topic_id: UUID = TOPIC_ID) -> ClusterImage:
    topics = {topic: TopicImage(topic, topic_id, partitions)} if partitions else {}
    return ClusterImage(topics=topics, topic_names={each.topic_id: name for name, each in topics.items()})


def opened(cluster: Cluster, image: PartitionImage | None = None) -> Partition:
    """The only partition, after an image that has it."""
    if image is not None:
        cluster.show(image_of(image))
    partition = cluster.replicas.find(TOPIC, 0)
    assert isinstance(partition, Partition)
    return partition


def records(value: bytes = b"value") -> memoryview:
    return memoryview(bytearray(one_record(value, timestamp_ms=NOW_MS)))
