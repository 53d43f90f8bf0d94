"""TxnOffsetCommit 0-5: offsets of a group as part of a transaction; they count when it commits.

From 5 on the broker adds the group's partition to the transaction itself; before, AddOffsetsToTxn has done
so and the broker makes sure of it (KIP-890). Membership is checked from 3 on (KIP-447).
"""

from collections.abc import Awaitable

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.produce.transaction_admission import Refusals, Support, TransactionAdmission
from riverlog.broker.shared.coordinator_locator import CoordinatorLocator
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.kinds import Claim
from riverlog.coordinator.groups.offsets.requests import NewOffset, Verdicts
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE_SINCE = 4
_ADDS_SINCE = 5


class TxnOffsetCommitHandler:
    def __init__(
        self,
        groups: GroupCoordinator,
        writes: TransactionAdmission,
        locator: CoordinatorLocator,
        follower: MetadataFollower,
    ) -> None:
        self._groups = groups
        self._writes = writes
        self._locator = locator
        self._follower = follower

    async def handle(
        self, request: TxnOffsetCommitRequest, context: RequestContext
    ) -> TxnOffsetCommitResponse:
        image = self._follower.image
        response = TxnOffsetCommitResponse()
        wanted: list[NewOffset] = []
        pending: list[TxnOffsetCommitResponsePartition] = []
        for topic in request.topics:
            answer = TxnOffsetCommitResponseTopic(name=topic.name)
            response.topics.append(answer)
            for partition in topic.partitions:
                reply = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
                answer.partitions.append(reply)
                if image.partition(topic.name, partition.partition_index) is None:
                    reply.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    pending.append(reply)
                    wanted.append(_new_offset(topic.name, partition))
        if wanted:
            verdicts = await self._commit(request, context.version, wanted)
            for at, reply in enumerate(pending):
                reply.error_code = verdicts if isinstance(verdicts, ErrorCode) else verdicts[at]
        return response

    async def _commit(
        self, request: TxnOffsetCommitRequest, version: int, wanted: list[NewOffset]
    ) -> Verdicts | ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        partition = self._locator.partition_of(OFFSETS_TOPIC, request.group_id)
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        refusals = self._writes.admit(request.transactional_id, producer, [partition], _support(version))
        if isinstance(refusals, Awaitable):
            refusals = await refusals
        if refusals:
            return _error_for_client(refusals, partition)
        group_id = request.group_id
        claim = Claim(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            is_transactional=True,
            version=version,
        )
        verdicts: ShardAnswer[Verdicts] = self._groups.run(
            group_id,
            lambda shard, token, now_ms: shard.offsets.decide_commit(
                token, group_id, claim, wanted, now_ms, producer=producer
            ),
        )
        return await verdicts


def _support(version: int) -> Support:
    if version >= _ADDS_SINCE:
        return Support.ADDS
    return Support.ABORTABLE if version >= _ABORTABLE_SINCE else Support.OLD_ERRORS


def _error_for_client(refusals: Refusals, partition: TopicPartition) -> ErrorCode:
    error = refusals[partition]
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if error is ErrorCode.NOT_ENOUGH_REPLICAS else error


def _new_offset(topic: str, partition: TxnOffsetCommitRequestPartition) -> NewOffset:
    epoch = partition.committed_leader_epoch
    return NewOffset(
        TopicPartition(topic, partition.partition_index),
        partition.committed_offset,
        None if epoch < 0 else LeaderEpoch(epoch),
        partition.committed_metadata or "",
    )
