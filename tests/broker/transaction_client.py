"""The requests of a transactional producer, one by one, with what they answered."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.records.builder import build_batch
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.raw_client import RawClient, Served

Identity = tuple[int, int]


class TransactionClient(RawClient):
    def __init__(self, broker: Served, name: str) -> None:
        super().__init__(broker)
        self.name = name
        self._find(name, 1)

    def _find(self, key: str, kind: int) -> None:
        found = self.ask(
            ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
        )
        assert found.coordinators[0].error_code == ErrorCode.NONE

    def init(self, *, version: int = 6, timeout_ms: int = 60_000, **more: Any) -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms, **more)
        reply: InitProducerIdResponse = self.ask(ApiKey.INIT_PRODUCER_ID, version, request)
        return reply

    def identity(self, **more: Any) -> Identity:
        """Take the transactional id over, aborting whatever is open."""
        for _ in range(5):
            reply = self.init(**more)
            if reply.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert reply.error_code == ErrorCode.NONE, ErrorCode(reply.error_code)
        return reply.producer_id, reply.producer_epoch

    def add(self, me: Identity, topic: str, *partitions: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=me[0],
            v3_and_below_producer_epoch=me[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions) or [0])],
        )
        reply = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        return ErrorCode(reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def write(
        self, me: Identity, topic: str, sequence: int, *values: bytes, partition: int = 0, version: int = 12
    ) -> ErrorCode:
        records = build_batch(
            [(1_700_000_000_000, None, value, ()) for value in values],
            producer_id=me[0],
            producer_epoch=me[1],
            base_sequence=sequence,
            transactional=True,
        )
        data = [PartitionProduceData(index=partition, records=records)]
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        reply = self.ask(ApiKey.PRODUCE, version, request)
        return ErrorCode(reply.responses[0].partition_responses[0].error_code)

    def commit_offset(
        self, me: Identity, group: str, topic: str, offset: int, *, version: int = 5
    ) -> ErrorCode:
        self._find(group, 0)
        if version < 5:
            added = self.ask(
                ApiKey.ADD_OFFSETS_TO_TXN,
                3,
                AddOffsetsToTxnRequest(
                    transactional_id=self.name, producer_id=me[0], producer_epoch=me[1], group_id=group
                ),
            )
            assert added.error_code == ErrorCode.NONE
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=me[0],
            producer_epoch=me[1],
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        reply = self.ask(ApiKey.TXN_OFFSET_COMMIT, version, request)
        return ErrorCode(reply.topics[0].partitions[0].error_code)

    def end(self, me: Identity, *, commit: bool, version: int = 5) -> Identity | ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=me[0], producer_epoch=me[1], committed=commit
        )
        reply = self.ask(ApiKey.END_TXN, version, request)
        if reply.error_code:
            return ErrorCode(reply.error_code)
        return (reply.producer_id, reply.producer_epoch) if version >= 5 else me

    def state(self) -> str:
        reply = self.ask(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=[self.name])
        )
        return str(reply.transaction_states[0].transaction_state)

    def listed(self, **filters: Any) -> list[str]:
        reply = self.ask(ApiKey.LIST_TRANSACTIONS, 2, ListTransactionsRequest(**filters))
        return sorted(each.transactional_id for each in reply.transaction_states)

    def ends(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Last stable offset and high watermark."""
        found = self.fetch(topic, 0, partition=partition, isolation_level=1)
        return found.last_stable_offset, found.high_watermark
