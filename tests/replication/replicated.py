"""A node's replicas under images with several replicas to a partition, on a simulated disk."""

from collections.abc import Sequence
from uuid import UUID

from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.leading.standing import Standing
from riverlog.replication.partition import Partition
from tests.broker.raw_client import one_record
from tests.coordinator.hosting import Cluster
from tests.virtual_time import START_MS

TOPIC = "orders"
TOPIC_ID = TopicId(UUID(int=7))
NOW_MS = START_MS
ME, SECOND, THIRD = NodeId(1), NodeId(2), NodeId(3)
ALL = (ME, SECOND, THIRD)
BROKER_EPOCH = BrokerEpoch(4)
BROKERS = {each: BrokerImage(each, {}, epoch=BROKER_EPOCH) for each in ALL}
NOW_S = 100.0


def partition_image(
    *, replicas: Sequence[NodeId] = ALL, isr: Sequence[NodeId] = ALL, leader: int = ME, epoch: int = 5
) -> PartitionImage:
    return PartitionImage(tuple(replicas), tuple(isr), NodeId(leader), LeaderEpoch(epoch), 0)


def image_of(*partitions: PartitionImage, topic: str = TOPIC, topic_id: TopicId = TOPIC_ID) -> ClusterImage:
    topics = {topic: TopicImage(topic, topic_id, partitions)} if partitions else {}
    names: dict[UUID, str] = {each.topic_id: name for name, each in topics.items()}
    return ClusterImage(brokers=BROKERS, topics=topics, topic_names=names)


def standing() -> Standing:
    """With all brokers registered."""
    made = Standing()
    made.brokers = BROKERS
    return made


def fetched(
    partition: Partition,
    follower: NodeId,
    leader_epoch: int,
    offset: int,
    *,
    broker_epoch: int = BROKER_EPOCH,
    log_start: int = 0,
    now_s: float = NOW_S,
) -> ErrorCode | None:
    """A follower has asked for what comes from an offset on."""
    fetch = FollowerFetch(follower, BrokerEpoch(broker_epoch), LeaderEpoch(leader_epoch), offset, log_start)
    return partition.on_replica_fetch(fetch, now_s)


def opened(cluster: Cluster, image: PartitionImage | None = None) -> Partition:
    """The only partition, after an image that has it."""
    if image is not None:
        cluster.show(image_of(image))
    partition = cluster.replicas.find(TOPIC, 0)
    assert isinstance(partition, Partition)
    return partition


def records(value: bytes = b"value") -> memoryview:
    return memoryview(bytearray(one_record(value, timestamp_ms=NOW_MS)))
