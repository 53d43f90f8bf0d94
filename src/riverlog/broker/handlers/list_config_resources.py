"""ListConfigResources 0-1: names of the resources that can have settings, by type.

Version 0 knows subscriptions to client metrics only. Topics and brokers are listed whether or not they have
settings of their own; groups and subscriptions exist, in this sense, by having some.
"""

from collections.abc import Iterable
from typing import assert_never

from riverlog.broker.exchange.context import RequestContext
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ListConfigResourcesHandler:
    def __init__(self, follower: MetadataFollower) -> None:
        self._follower = follower

    def handle(
        self, request: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        if context.version == 0:
            kinds = {ResourceType.CLIENT_METRICS}
        elif not request.resource_types:
            kinds = set(ResourceType)
        else:
            try:
                kinds = {ResourceType(kind) for kind in request.resource_types}
            except ValueError:
                return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        image = self._follower.image
        return ListConfigResourcesResponse(
            config_resources=[
                ConfigResource(resource_name=name, resource_type=kind)
                for kind in sorted(kinds)
                for name in _names(image, kind)
            ]
        )


def _names(image: ClusterImage, kind: ResourceType) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return map(str, image.brokers)
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            return (
                resource.name
                for resource, settings in image.configs.items()
                if resource.type is kind and settings
            )
        case other:
            assert_never(other)
