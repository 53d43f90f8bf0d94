"""CreatePartitions 0-3: more partitions for topics that exist, each topic answered on its own.

A name that occurs twice is refused once, before all others.
"""

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.added_partitions import AddedPartitions
from riverlog.controller.decisions.refusals import DUPLICATE_NAME, Refusal
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_TIMED_OUT = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


class CreatePartitionsHandler:
    def __init__(self, controller: ControllerClient) -> None:
        self._controller = controller

    async def handle(
        self, request: CreatePartitionsRequest, context: RequestContext
    ) -> CreatePartitionsResponse:
        if request.timeout_ms <= 0:
            names = dict.fromkeys(topic.name for topic in request.topics)
            return CreatePartitionsResponse(results=[_result(name, _TIMED_OUT) for name in names])
        outcomes = await self._controller.create_partitions(
            [_added_partitions(topic) for topic in request.topics], validate_only=request.validate_only
        )
        results: list[CreatePartitionsTopicResult] = []
        duplicates: dict[str, CreatePartitionsTopicResult] = {}
        for topic, outcome in zip(request.topics, outcomes, strict=True):
            refusal = outcome if isinstance(outcome, Refusal) else None
            if refusal is DUPLICATE_NAME:
                duplicates[topic.name] = _result(topic.name, refusal)
            else:
                results.append(_result(topic.name, refusal))
        return CreatePartitionsResponse(results=[*duplicates.values(), *results])


def _added_partitions(topic: CreatePartitionsTopic) -> AddedPartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return AddedPartitions(topic.name, topic.count, assignments)


def _result(name: str, refusal: Refusal | None) -> CreatePartitionsTopicResult:
    if refusal is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=refusal.error, error_message=refusal.message)
