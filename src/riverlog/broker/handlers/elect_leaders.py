"""ElectLeaders 0-2: the preferred or any replica shall lead; on a cluster of one, it does already.

Asked for all partitions (null), those that need no election are left out of the answer.
"""

from collections.abc import Iterable
from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.elections import Election
from riverlog.controller.decisions.refusals import NOT_CONTROLLER, Refusal
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_TIMED_OUT: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


class ElectLeadersHandler:
    def __init__(self, controller: ControllerClient, follower: MetadataFollower) -> None:
        self._controller = controller
        self._follower = follower

    async def handle(self, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
        if (kind := _kind(request.election_type)) is None:
            message = f"There is no kind of election {request.election_type}."
            return _refused(request, Refusal(ErrorCode.INVALID_REQUEST, message), context.version)
        if request.timeout_ms <= 0:
            return _refused(request, _TIMED_OUT, context.version)
        asked = request.topic_partitions
        wanted = None if asked is None else [(each.topic, each.partitions) for each in asked]
        outcomes = await self._controller.elect_leaders(kind, None if wanted is None else _flat(wanted))
        if NOT_CONTROLLER in outcomes.values():
            return _refused(request, NOT_CONTROLLER, context.version)
        if wanted is None:
            wanted = _by_topic(self._follower.image.topics, outcomes)
        return ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(
                    topic=topic,
                    partition_result=[
                        _result(index, outcomes[TopicPartition(topic, index)]) for index in indexes
                    ],
                )
                for topic, indexes in wanted
            ]
        )


def _flat(wanted: Iterable[tuple[str, list[int]]]) -> list[TopicPartition]:
    """Each once."""
    named = (TopicPartition(topic, index) for topic, indexes in wanted for index in indexes)
    return list(dict.fromkeys(named))


def _by_topic(topics: Iterable[str], partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """All topics, as Kafka answers, with some of their partitions."""
    found: dict[str, list[int]] = {topic: [] for topic in topics}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return list(found.items())


def _result(index: int, refusal: Refusal | None) -> PartitionResult:
    if refusal is None:
        return PartitionResult(partition_id=index, error_message=None)
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
                partition_result=[_result(index, refusal) for index in asked.partitions],
            )
            for asked in request.topic_partitions or ()
        ]
    )
    if version >= 1:
        response.error_code = refusal.error
    return response
