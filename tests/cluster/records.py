"""One record written to, or read from, one broker of a cluster, whether it leads the partition or not."""

from riverlog.records.builder import build_batch
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.cluster.nodes import ClusterNode


async def produce(broker: ClusterNode, index: int, version: int = 12) -> ProduceResponse:
    records = memoryview(bytearray(build_batch([(1, None, b"v", ())])))
    topic = TopicProduceData(
        name="t",
        topic_id=broker.image.topics["t"].topic_id if version >= 13 else None,
        partition_data=[PartitionProduceData(index=index, records=records)],
    )
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic])
    return await broker.ask(request, ProduceResponse, version)


async def fetch(broker: ClusterNode, index: int, version: int) -> FetchResponse:
    topic = FetchTopic(
        topic="t",
        topic_id=broker.image.topics["t"].topic_id if version >= 13 else None,
        partitions=[FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)],
    )
    request = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[topic], replica_id=-1
    )
    return await broker.ask(request, FetchResponse, version)
