"""AlterPartitionReassignments 0-1: other replicas for partitions, or none to call that off.

What may be asked of a cluster of one is in `controller.decisions.reassignments`: to stay where one is. Since
1 the number of replicas may be fixed by the request, which it then is anyway.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.decisions.reassignments import decide_reassignment
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

_TIMED_OUT: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


class AlterPartitionReassignmentsHandler:
    def __init__(self, follower: MetadataFollower) -> None:
        self._follower = follower

    def handle(
        self, request: AlterPartitionReassignmentsRequest, context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        is_late = request.timeout_ms <= 0
        response = AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.REQUEST_TIMED_OUT if is_late else ErrorCode.NONE,
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[self._answer(topic.name, each, is_late) for each in topic.partitions],
                )
                for topic in request.topics
            ],
        )
        if context.version >= 1:
            response.allow_replication_factor_change = request.allow_replication_factor_change
        if request.topics:
            response.error_message = None
        return response

    def _answer(
        self, topic: str, asked: ReassignablePartition, is_late: bool
    ) -> ReassignablePartitionResponse:
        refusal: Refusal | None = _TIMED_OUT
        if not is_late:
            index = asked.partition_index
            refusal = decide_reassignment(self._follower.image, topic, index, asked.replicas)
        return ReassignablePartitionResponse(
            partition_index=asked.partition_index,
            error_code=ErrorCode.NONE if refusal is None else refusal.error,
            error_message=None if refusal is None else refusal.message,
        )
