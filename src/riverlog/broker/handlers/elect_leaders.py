"""ElectLeaders 0-2: the preferred or any replica shall lead; on a cluster of one, it does already.

Asked for all partitions (null), only those where something changed are answered. An election that would
change something needs a second broker, and is not carried out here.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.decisions import Refusal
from riverlog.controller.elections import Election, decide_election
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_TIMED_OUT: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


class ElectLeadersHandler:
    def __init__(self, follower: MetadataFollower) -> None:
        self._follower = follower

    def handle(self, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
        if (kind := _kind(request.election_type)) is None:
            message = f"There is no kind of election {request.election_type}."
            return _refused(request, Refusal(ErrorCode.INVALID_REQUEST, message), context.version)
        if request.timeout_ms <= 0:
            return _refused(request, _TIMED_OUT, context.version)
        if request.topic_partitions is None:
            return ElectLeadersResponse(
                replica_election_results=[
                    ReplicaElectionResult(topic=topic) for topic in self._follower.image.topics
                ]
            )
        return ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(
                    topic=asked.topic,
                    partition_result=[self._result(asked.topic, index, kind) for index in asked.partitions],
                )
                for asked in request.topic_partitions
            ]
        )

    def _result(self, topic: str, index: int, kind: Election) -> PartitionResult:
        refusal = decide_election(self._follower.image, topic, index, kind)
        return PartitionResult(partition_id=index, error_code=refusal.error, error_message=refusal.message)


def _kind(election_type: int) -> Election | None:
    try:
        return Election(election_type)
    except ValueError:
        return None


def _refused(request: ElectLeadersRequest, refusal: Refusal, version: int) -> ElectLeadersResponse:
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index, error_code=refusal.error, error_message=refusal.message
                    )
                    for index in asked.partitions
                ],
            )
            for asked in request.topic_partitions or ()
        ]
    )
    if version >= 1:
        response.error_code = refusal.error
    return response
