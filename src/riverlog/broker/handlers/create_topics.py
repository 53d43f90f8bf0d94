"""CreateTopics 2-7: new topics, each answered on its own.

A name that occurs twice is refused once, after all others. Since 5 a new topic is answered with its settings,
since 7 with its id. The work is done at once, so a time-out means only one thing: zero or less has passed.
"""

from collections.abc import Mapping

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared.config_alterations import Layers
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.refusals import DUPLICATE_NAME, Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan
from riverlog.model.config.describe import created_topic_entries
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_CONFIGS_SINCE = 5
_TIMED_OUT = Refusal(ErrorCode.REQUEST_TIMED_OUT, None)


class CreateTopicsHandler:
    def __init__(self, controller: ControllerClient, layers: Layers) -> None:
        self._controller = controller
        self._layers = layers

    async def handle(self, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
        if request.timeout_ms <= 0:
            return CreateTopicsResponse(topics=[_refused(topic.name, _TIMED_OUT) for topic in request.topics])
        outcomes = await self._controller.create_topics(
            [_new_topic(topic) for topic in request.topics], validate_only=request.validate_only
        )
        results: list[CreatableTopicResult] = []
        duplicates: dict[str, CreatableTopicResult] = {}
        for topic, outcome in zip(request.topics, outcomes, strict=True):
            match outcome:
                case TopicPlan():
                    results.append(self._created(outcome, context.version))
                case Refusal() if outcome is DUPLICATE_NAME:
                    duplicates[topic.name] = _refused(topic.name, outcome)
                case Refusal():
                    results.append(_refused(topic.name, outcome))
        return CreateTopicsResponse(topics=[*results, *duplicates.values()])

    def _created(self, plan: TopicPlan, version: int) -> CreatableTopicResult:
        return CreatableTopicResult(
            name=plan.name,
            topic_id=plan.topic_id,
            error_message=None,
            num_partitions=len(plan.replicas),
            replication_factor=len(plan.replicas[0]),
            configs=self._settings(plan.configs) if version >= _CONFIGS_SINCE else [],
        )

    def _settings(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """All settings of a topic that has these of its own."""
        return [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in created_topic_entries(self._layers(), overrides)
        ]


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        None if topic.num_partitions == -1 else topic.num_partitions,
        None if topic.replication_factor == -1 else topic.replication_factor,
        [(each.partition_index, each.broker_ids) for each in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refusal.error, error_message=refusal.message)
