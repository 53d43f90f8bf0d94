"""AlterConfigs 0-2: the settings of resources are replaced; what is not named goes back to its default.

A resource that occurs twice is refused. (Kafka never answers such a request at all.)
"""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared.config_alterations import ConfigAlterations
from riverlog.broker.shared.forwarded_alterations import Alteration
from riverlog.model.config.alter import replacing
from riverlog.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


class AlterConfigsHandler:
    def __init__(self, alterations: ConfigAlterations) -> None:
        self._alterations = alterations

    async def handle(self, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
        outcomes = await self._alterations.carry_out(
            [
                Alteration(
                    resource.resource_type,
                    resource.resource_name,
                    replacing((config.name, config.value) for config in resource.configs),
                )
                for resource in request.resources
            ],
            replaces=True,
            validate_only=request.validate_only,
            is_forwarded=context.origin.is_forwarded,
        )
        return AlterConfigsResponse(
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
