"""IncrementalAlterConfigs 0-1: single settings are set, removed, appended to or subtracted from.

An unknown operation fails the whole request, as it does in Kafka.
"""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared.config_alterations import ConfigAlterations
from riverlog.broker.shared.forwarded_alterations import Alteration
from riverlog.controller.decisions.refusals import Refusal
from riverlog.model.config.alter import AlterOperation, Change
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_UNKNOWN_OPERATION = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
_OPERATIONS = frozenset(AlterOperation)


class IncrementalAlterConfigsHandler:
    def __init__(self, alterations: ConfigAlterations) -> None:
        self._alterations = alterations

    async def handle(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        alterations = _alterations(request)
        outcomes: list[Refusal | None]
        if all(change.operation in _OPERATIONS for each in alterations for change in each.changes):
            outcomes = await self._alterations.carry_out(
                alterations,
                replaces=False,
                validate_only=request.validate_only,
                is_forwarded=context.origin.is_forwarded,
            )
        else:
            outcomes = [_UNKNOWN_OPERATION] * len(alterations)
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    error_code=0 if refusal is None else refusal.error,
                    error_message=None if refusal is None else refusal.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, refusal in zip(request.resources, outcomes, strict=True)
            ]
        )


def _alterations(request: IncrementalAlterConfigsRequest) -> list[Alteration]:
    return [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
