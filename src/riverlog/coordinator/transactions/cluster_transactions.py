"""The coordinator of a transaction, wherever it is, as the leader of a partition asks it (KIP-890).

A coordinator on this node answers at once, as if there were no other broker. Another one is asked by
AddPartitionsToTxn, gathered with what else it is asked; when it does not answer or is not the coordinator any
more, the client tries again, and by then the image says who is. Not here: what an answer means for a batch.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.coordinator.transactions.batched_requests import AskPeer, BatchedRequests
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_2
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TRANSACTIONS_AT_ONCE: Final = 1_000

Verdict = Mapping[TopicPartition, ErrorCode] | ErrorCode | None
"""For each partition whether it is part of the transaction; one error for all; None: all are."""
Asked = asyncio.Future[Verdict] | ShardAnswer[None] | ShardAnswer[Mapping[TopicPartition, ErrorCode]]
"""The future of a verdict."""


class Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: tuple[TopicPartition, ...]
    adds: bool
    """Partitions that are not part of the transaction are to be added."""


class ClusterTransactions:
    def __init__(
        self,
        local: TransactionCoordinator,
        ask: AskPeer,
        image: Callable[[], ClusterImage],
        node_id: NodeId,
    ) -> None:
        self._local = local
        self._remote: BatchedRequests[Question, Verdict] = BatchedRequests(ask, VerificationDialect())
        self._image = image
        self._node_id = node_id

    @property
    def config(self) -> TransactionConfig:
        return self._local.config

    def ask(self, question: Question) -> Asked:
        answer = self._ask_here(question)
        if not (answer.done() and answer.result() is ErrorCode.NOT_COORDINATOR):
            return answer
        leader = self._coordinator_of(question.transactional_id)
        if leader is None or leader == self._node_id:
            return answer
        return self._remote.put(leader, question)

    def _ask_here(self, question: Question) -> Asked:
        name, producer, partitions, adds = question
        if adds:
            return self._local.add_partitions(name, producer, partitions, client_version=VERSION_2)
        return self._local.verify_partitions(name, producer, partitions)

    def _coordinator_of(self, transactional_id: str) -> NodeId | None:
        topic = self._image().topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader


class VerificationDialect:
    """In one request a transactional id occurs once, since the response names nothing else."""

    key = ApiKey.ADD_PARTITIONS_TO_TXN
    unanswered: Verdict = ErrorCode.NETWORK_EXCEPTION

    def take(self, waiting: "deque[Question]") -> Sequence[Question]:
        taken: dict[str, Question] = {}
        left: list[Question] = []
        while waiting and len(taken) < TRANSACTIONS_AT_ONCE:
            each = waiting.popleft()
            if taken.setdefault(each.transactional_id, each) is not each:
                left.append(each)
        waiting.extendleft(reversed(left))
        return list(taken.values())

    def request(self, questions: Sequence[Question]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer.producer_id,
                    producer_epoch=each.producer.producer_epoch,
                    verify_only=not each.adds,
                    topics=[
                        AddPartitionsToTxnTopic(name=topic, partitions=[at.partition for at in partitions])
                        for topic, partitions in groupby(sorted(each.partitions), lambda at: at.topic)
                    ],
                )
                for each in questions
            ]
        )

    def answers(
        self, questions: Iterable[Question], response: AddPartitionsToTxnResponse
    ) -> Mapping[Question, Verdict]:
        if response.error_code:
            return dict.fromkeys(questions, ErrorCode.of(response.error_code))
        told = {
            result.transactional_id: {
                TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }
        return {
            each: told[each.transactional_id]
            for each in questions
            if told.get(each.transactional_id, {}).keys() == set(each.partitions)
        }
