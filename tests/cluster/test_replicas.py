"""Copies of a partition on several brokers: they are the same, and one goes on when the leader dies."""

from pathlib import Path

from riverlog.controller.decisions.topics import NewTopic
from riverlog.metadata.image import PartitionImage
from riverlog.model.errors import ErrorCode
from riverlog.records.builder import build_batch
from riverlog.replication.partition import Partition
from riverlog.replication.resting import Resting
from riverlog.replication.roles import Leader
from riverlog.storage.log.log import Log
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.cluster.nodes import ClusterNode, NodeCluster, run
from tests.storage.logs import batch

TOPIC = "t"


async def make_topic(cluster: NodeCluster, partitions: int = 1) -> None:
    await cluster.controller.node.controller.create_topics([NewTopic(TOPIC, partitions, 3)])
    await cluster.until_all_see(lambda image: TOPIC in image.topics)


def state_of(cluster: NodeCluster, index: int = 0) -> PartitionImage:
    return cluster.alive[0].image.topics[TOPIC].partitions[index]


def log_of(broker: ClusterNode, index: int = 0) -> Log:
    partition = broker.replicas.find(TOPIC, index)
    assert isinstance(partition, Partition)
    return partition.log


def bytes_of(broker: ClusterNode, index: int = 0) -> bytes:
    """Everything in the files of the log, in order."""
    directory = Path(broker.directory) / f"{TOPIC}-{index}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


async def leader_of(cluster: NodeCluster, index: int = 0) -> ClusterNode:
    """The broker that all see as the leader, once it takes writes."""

    def leads(broker: ClusterNode) -> bool:
        partition = broker.replicas.find(TOPIC, index)
        return isinstance(partition, Partition) and isinstance(partition.role, Leader)

    await cluster.until(lambda: [broker for broker in cluster.alive if leads(broker)], "nobody leads")
    return next(broker for broker in cluster.alive if leads(broker))


async def write(
    broker: ClusterNode, *values: bytes, index: int = 0, acks: int = -1, topic: str = TOPIC
) -> list[ErrorCode]:
    """One batch for each value, one after the other; with the answers."""
    answers = []
    for value in values:
        records = memoryview(bytearray(build_batch([(1, None, value, ())])))
        data = [PartitionProduceData(index=index, records=records)]
        written = TopicProduceData(name=topic, partition_data=data)
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[written])
        response = await broker.ask(request, ProduceResponse, 12)
        answers.append(ErrorCode.of(response.responses[0].partition_responses[0].error_code))
    return answers


async def until_equal(cluster: NodeCluster, index: int = 0) -> None:
    await cluster.until(
        lambda: len({(log.log_end_offset, log.high_watermark) for log in map(log_of, cluster.alive)}) == 1,
        "the replicas do not end at the same offset",
    )
    assert len({bytes_of(broker, index) for broker in cluster.alive}) == 1


def test_replicas_are_the_same_byte_by_byte() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        leader = await leader_of(cluster)
        values = [b"%d" % number for number in range(50)]
        assert set(await write(leader, *values)) == {ErrorCode.NONE}
        await until_equal(cluster)
        assert log_of(leader).high_watermark == 50

    run(scenario)


def test_nobody_makes_or_opens_a_log_that_was_never_written_to() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster, 2)

        def led() -> list[Resting]:
            """Both, once both followers of each have asked for it."""
            every = [each for broker in cluster.alive for each in broker.replicas._resting._resting.values()]
            return [each for each in every if len(each.watchers) == 2]

        await cluster.until(lambda: len(led()) == 2, "not all followers have asked")
        copies = [(broker, index) for broker in cluster.alive for index in (0, 1)]
        made = [(broker, index) for broker, index in copies if broker.replicas.has_log(TOPIC, index)]
        assert made == []
        leader = cluster[state_of(cluster).leader or 0]
        assert await write(leader, b"first") == [ErrorCode.NONE]
        made = [(broker, index) for broker, index in copies if broker.replicas.has_log(TOPIC, index)]
        assert made == [(broker, 0) for broker in cluster.alive]
        assert len({bytes_of(broker) for broker in cluster.alive}) == 1

    run(scenario)


def test_what_was_acknowledged_survives_the_leader() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        first = await leader_of(cluster)
        assert set(await write(first, *(b"a%d" % number for number in range(20)))) == {ErrorCode.NONE}
        acknowledged = bytes_of(first)
        epoch = state_of(cluster).leader_epoch
        await first.kill()
        await cluster.until_all_see(
            lambda image: (
                image.topics[TOPIC].partitions[0].leader not in (None, first.node_id)
                and first.node_id not in image.topics[TOPIC].partitions[0].isr
            )
        )
        second = await leader_of(cluster)
        assert state_of(cluster).leader_epoch > epoch
        assert bytes_of(second).startswith(acknowledged)
        assert set(await write(second, *(b"b%d" % number for number in range(20)))) == {ErrorCode.NONE}
        await until_equal(cluster)
        assert log_of(second).high_watermark == 40

        await first.start()
        await until_equal(cluster)

    run(scenario)


def test_a_leader_that_comes_back_drops_what_nobody_else_has() -> None:
    async def scenario(cluster: NodeCluster) -> None:
        await make_topic(cluster)
        first = await leader_of(cluster)
        assert set(await write(first, b"a", b"b")) == {ErrorCode.NONE}
        await until_equal(cluster)
        partition = first.replicas.find(TOPIC, 0)
        assert isinstance(partition, Partition)
        # Past the partition, which would wake the followers: nobody asks for it before the process ends.
        partition.log.append(batch(b"lost"), leader_epoch=partition.leader_epoch)
        await first.kill()
        await cluster.until_all_see(
            lambda image: image.topics[TOPIC].partitions[0].leader not in (None, first.node_id)
        )
        second = await leader_of(cluster)
        assert await write(second, b"c") == [ErrorCode.NONE]
        await first.start()
        await until_equal(cluster)
        metrics = first.node.metrics
        assert metrics.counter("riverlog_truncated_records_total").value == 1
        assert metrics.counter("riverlog_truncated_below_hw_total").value == 0

    run(scenario)
