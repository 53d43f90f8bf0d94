"""DescribeConfigs 1-4: every setting of topics, brokers, loggers, groups and client metrics.

Synonyms and, since 3, documentation come when they are asked for. A resource of an unknown type
fails the whole request. The message of a success is empty, not absent, and so is that of an unknown topic.
A broker that is asked for the key `riverlog.clock.ms` by its name tells its wall clock, for which there is
no API.
"""

from collections.abc import Collection
from typing import assert_never

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import InPieces
from riverlog.broker.shared.config_alterations import Layers
from riverlog.broker.shared.log_levels import LogLevels
from riverlog.controller.decisions import names
from riverlog.controller.decisions.configs import refuse_broker
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import NO_CONFIG, ConfigResource, ResourceType
from riverlog.model.clock import Clock
from riverlog.model.config import describe
from riverlog.model.config.effective import BrokerLayers, ConfigSource
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.pieces import Pieces
from riverlog.wire.codec import encoded_element
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_KINDS = frozenset(ResourceType)
_NO_SUCH_TOPIC = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
_UNKNOWN_KIND = Refusal(ErrorCode.INVALID_REQUEST, "A resource of the request has a type that is not known.")

_SHORT_RESOURCES_MAX = 2  # Each has a few hundred settings at most.

Described = list[DescribeConfigsResourceResult]


class DescribeConfigsHandler:
    def __init__(
        self, follower: MetadataFollower, layers: Layers, log_levels: LogLevels, node_id: NodeId, clock: Clock
    ) -> None:
        self._follower = follower
        self._layers = layers
        self._log_levels = log_levels
        self._node_id = node_id
        self._clock = clock

    def handle(
        self, request: DescribeConfigsRequest, context: RequestContext
    ) -> DescribeConfigsResponse | InPieces[DescribeConfigsResponse]:
        if len(request.resources) > _SHORT_RESOURCES_MAX:
            return InPieces(self._in_pieces(request, context.version))
        if not all(resource.resource_type in _KINDS for resource in request.resources):
            return DescribeConfigsResponse(
                results=[_result(resource, _UNKNOWN_KIND) for resource in request.resources]
            )
        return DescribeConfigsResponse(
            results=[_result(resource, self._describe(resource, request)) for resource in request.resources]
        )

    def _in_pieces(self, request: DescribeConfigsRequest, version: int) -> Pieces[DescribeConfigsResponse]:
        response = DescribeConfigsResponse()
        are_known = True
        for resource in request.resources:
            are_known = are_known and resource.resource_type in _KINDS
            yield None
        for resource in request.resources:
            described = self._describe(resource, request) if are_known else _UNKNOWN_KIND
            yield None
            result = yield from encoded_element(_result(resource, described), version)
            response.results.append(result)
        return response

    def _describe(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest
    ) -> Described | Refusal:
        keys = resource.configuration_keys or ()
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            return self._loggers(resource.resource_name, keys)
        entries = self._entries(
            ConfigResource(ResourceType(resource.resource_type), resource.resource_name), keys
        )
        if isinstance(entries, Refusal):
            return entries
        return [_entry(entry, request.include_synonyms, request.include_documentation) for entry in entries]

    def _entries(
        self, resource: ConfigResource, keys: Collection[str]
    ) -> list[describe.ConfigEntry] | Refusal:
        image = self._follower.image
        layers = self._layers()
        values = image.configs.get(resource, NO_CONFIG)
        kind, name = resource
        match kind:
            case ResourceType.TOPIC:
                if problem := names.problem_with(name):
                    return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
                if name not in image.topics:
                    return _NO_SUCH_TOPIC
                return describe.describe_topic(layers, values, keys)
            case ResourceType.BROKER:
                if not name:
                    return describe.describe_broker_default(layers, keys)
                return refuse_broker(name, self._node_id) or self._of_broker(layers, keys)
            case ResourceType.GROUP:
                return _nameless(name, "group") or describe.describe_group(layers, values, keys)
            case ResourceType.CLIENT_METRICS:
                refusal = _nameless(name, "client metrics subscription")
                return refusal or describe.describe_client_metrics(values, keys)
            case ResourceType.BROKER_LOGGER:
                raise AssertionError("loggers are described apart")
            case other:
                assert_never(other)

    def _of_broker(self, layers: BrokerLayers, keys: Collection[str]) -> list[describe.ConfigEntry]:
        clock = [describe.describe_clock(self._clock.wall_ms())] if describe.CLOCK in keys else []
        return [*describe.describe_broker(layers, keys), *clock]

    def _loggers(self, name: str, keys: Collection[str]) -> Described | Refusal:
        if refusal := _nameless(name, "broker") or refuse_broker(name, self._node_id):
            return refusal
        return [
            DescribeConfigsResourceResult(
                name=logger, value=level, config_source=ConfigSource.DYNAMIC_BROKER_LOGGER
            )
            for logger, level in self._log_levels.levels().items()
            if not keys or logger in keys
        ]


def _nameless(name: str, what: str) -> Refusal | None:
    return None if name else Refusal(ErrorCode.INVALID_REQUEST, f"The name of the {what} is empty.")


def _entry(
    entry: describe.ConfigEntry, with_synonyms: bool, with_documentation: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ]
        if with_synonyms
        else [],
        config_type=entry.type,
        documentation=entry.documentation if with_documentation else None,
    )


def _result(resource: DescribeConfigsResource, outcome: Described | Refusal) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if isinstance(outcome, Refusal):
        result.error_code, result.error_message = outcome.error, outcome.message
    else:
        result.configs = outcome
    return result
