"""The requests of a transactional producer on several brokers, each to the broker that it is for."""

from collections.abc import Sequence
from typing import Final

from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.records.builder import build_batch
from riverlog.replication.partition import Partition
from riverlog.storage.producers.state import end_marker
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.cluster.nodes import WAIT_S, ClusterNode, NodeCluster
from tests.storage.logs import batches_of
from tests.waiting import until_told

TOPIC: Final = "orders"


async def make_topics(cluster: NodeCluster, replicas: int = 1) -> None:
    """`orders` with one partition that each broker leads, and the internal topics."""
    numbers: list[int] = [broker.node_id for broker in cluster.alive]
    assignments = [
        CreatableReplicaAssignment(partition_index=at, broker_ids=(numbers[at:] + numbers[:at])[:replicas])
        for at in range(len(numbers))
    ]
    topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments)
    made = await cluster.controller.ask(
        CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse
    )
    assert made.topics[0].error_code == ErrorCode.NONE, made.topics[0].error_message
    for kind in (0, 1):
        request = FindCoordinatorRequest(coordinator_keys=["x"], key_type=kind)
        await cluster.controller.ask(request, FindCoordinatorResponse)
    names = {TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
    await cluster.until_all_see(
        lambda image: (
            names <= image.topics.keys()
            and all(each.leader is not None for name in names for each in image.topics[name].partitions)
        )
    )


def coordinator_of(cluster: NodeCluster, topic: str, key: str) -> int | None:
    partitions = cluster.alive[0].image.topics[topic].partitions
    return partitions[partition_for(key, len(partitions))].leader


def name_at(cluster: NodeCluster, topic: str, broker: int) -> str:
    """A group or transactional id that this broker coordinates."""
    return next(name for at in range(10_000) if coordinator_of(cluster, topic, name := f"n{at}") == broker)


class Transactor:
    """`version` is that of transactions: 1 adds partitions itself, 2 leaves it to the brokers."""

    def __init__(self, cluster: NodeCluster, name: str, *, version: int = 2) -> None:
        self.cluster = cluster
        self.name = name
        self.version = version
        self.me = self.ongoing = ProducerIdAndEpoch(-1, -1)
        self._sequences: dict[int, int] = {}

    @property
    def coordinator(self) -> ClusterNode:
        found = coordinator_of(self.cluster, TRANSACTIONS_TOPIC, self.name)
        assert found is not None
        return self.cluster[found]

    @property
    def coordinator_epoch(self) -> int:
        """The leader epoch of its partition of the transaction log."""
        partitions = self.cluster.alive[0].image.topics[TRANSACTIONS_TOPIC].partitions
        return partitions[partition_for(self.name, len(partitions))].leader_epoch

    async def init(self, at: ClusterNode | None = None, *, timeout_ms: int = 60_000) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)
        reply = await (at or self.coordinator).ask(request, InitProducerIdResponse, 4)
        return self._initialised(reply)

    async def init_two_phase(self, *, keep_prepared: bool = False) -> ErrorCode:
        """For an outside two-phase commit (KIP-939). What is kept is noted in `ongoing`."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=60_000,
            enable2_pc=True,
            keep_prepared_txn=keep_prepared,
        )
        reply = await self.coordinator.ask(request, InitProducerIdResponse, 6)
        self.ongoing = ProducerIdAndEpoch(reply.ongoing_txn_producer_id, reply.ongoing_txn_producer_epoch)
        return self._initialised(reply)

    def _initialised(self, reply: InitProducerIdResponse) -> ErrorCode:
        if not reply.error_code:
            self.me = ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)
            self._sequences.clear()
        return ErrorCode(reply.error_code)

    async def add(self, *partitions: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.me.producer_id,
            v3_and_below_producer_epoch=self.me.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))],
        )
        reply = await self.coordinator.ask(request, AddPartitionsToTxnResponse, 3)
        return ErrorCode(reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    async def write(self, partition: int, value: bytes, version: int | None = None) -> ErrorCode:
        """To the broker that leads the partition. A batch that was refused is sent again by the next call."""
        sequence = self._sequences.get(partition, 0)
        records = build_batch(
            [(0, None, value, ())],
            producer_id=self.me.producer_id,
            producer_epoch=self.me.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=records)]
                )
            ],
        )
        reply = await self._leader(partition).ask(
            request, ProduceResponse, version or (12 if self.version == 2 else 11)
        )
        error = ErrorCode(reply.responses[0].partition_responses[0].error_code)
        if error is ErrorCode.NONE:
            self._sequences[partition] = sequence + 1
        return error

    async def commit_offset(self, group: str, offset: int) -> ErrorCode:
        if self.version == 1:
            added = await self.coordinator.ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self.name,
                    producer_id=self.me.producer_id,
                    producer_epoch=self.me.producer_epoch,
                    group_id=group,
                ),
                AddOffsetsToTxnResponse,
                3,
            )
            assert added.error_code == ErrorCode.NONE, ErrorCode(added.error_code)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.me.producer_id,
            producer_epoch=self.me.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        reply = await self._group_coordinator(group).ask(
            request, TxnOffsetCommitResponse, 5 if self.version == 2 else 4
        )
        return ErrorCode(reply.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool, at: ClusterNode | None = None) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.me.producer_id,
            producer_epoch=self.me.producer_epoch,
            committed=commit,
        )
        reply = await (at or self.coordinator).ask(request, EndTxnResponse, 5 if self.version == 2 else 4)
        if not reply.error_code and self.version == 2:
            self.me = ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)
            self._sequences.clear()
        return ErrorCode(reply.error_code)

    async def state(self) -> str:
        request = DescribeTransactionsRequest(transactional_ids=[self.name])
        reply = await self.coordinator.ask(request, DescribeTransactionsResponse)
        return str(reply.transaction_states[0].transaction_state)

    async def until(self, state: str) -> None:
        async def look() -> bool:
            return await self.state() == state

        await until_told(look, f"the transaction is not {state}", WAIT_S)

    async def committed_offset(self, group: str) -> int:
        """-1 for none; refused while a transaction that may change it is open."""
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True
        )
        reply = await self._group_coordinator(group).ask(request, OffsetFetchResponse, 8)
        found = reply.groups[0].topics[0].partitions[0]
        assert found.error_code == ErrorCode.NONE, ErrorCode(found.error_code)
        return int(found.committed_offset)

    def _group_coordinator(self, group: str) -> ClusterNode:
        found = coordinator_of(self.cluster, OFFSETS_TOPIC, group)
        assert found is not None
        return self.cluster[found]

    def _leader(self, partition: int) -> ClusterNode:
        found = self.cluster.alive[0].image.topics[TOPIC].partitions[partition].leader
        assert found is not None
        return self.cluster[found]


def contents(cluster: NodeCluster, at: int, topic: str = TOPIC) -> tuple[int, int, int]:
    """Last stable offset, high watermark and log end of a partition, at the broker that leads it."""
    log = _partition(cluster, TopicPartition(topic, at)).log
    return log.last_stable_offset, log.high_watermark, log.log_end_offset


def open_in(cluster: NodeCluster, at: int, topic: str = TOPIC) -> Sequence[int]:
    """The producers that have a transaction open in a partition."""
    producers = _partition(cluster, TopicPartition(topic, at)).log.producers
    return [producer_id for producer_id, _ in producers.open_transactions()]


def markers_in(cluster: NodeCluster, at: int, topic: str = TOPIC) -> list[tuple[bool, int]]:
    """The ends of transactions in a partition: whether each commits, and the epoch of its coordinator."""
    log = _partition(cluster, TopicPartition(topic, at)).log
    found = (end_marker(header, data, position) for data, position, header in batches_of(log))
    return [(not marker.is_abort, marker.coordinator_epoch) for marker in found if marker is not None]


def _partition(cluster: NodeCluster, at: TopicPartition) -> Partition:
    leader = cluster.alive[0].image.topics[at.topic].partitions[at.partition].leader
    assert leader is not None
    found = cluster[leader].replicas.find(*at)
    assert isinstance(found, Partition)
    return found
