"""ApiVersions 0-4: which APIs and versions are served, and which features are in force.

A version that is not known is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
alone, as Apache Kafka answers, so that any client can find common ground.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from riverlog.broker.exchange.context import Parts, RequestContext
from riverlog.model.errors import ErrorCode
from riverlog.model.features import HIGHEST_LEVELS
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.framing import encode_response
from riverlog.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


_MAY_BEGIN_AT_0_SINCE = 4
"""Clients of before stumble over a feature whose versions begin at 0, so Kafka leaves it out."""


class ApiVersionsHandler:
    """Advertises the given APIs and itself."""

    def __init__(self, served: Iterable[Api], features: Callable[[], "FeaturesInForce"]) -> None:
        keys = sorted({*(api.key for api in served), ApiKey.API_VERSIONS})
        self._ranges = [_range_of(APIS[key]) for key in keys]
        self._features = features
        self._supported = [
            SupportedFeatureKey(name=name, min_version=0, max_version=highest)
            for name, highest in HIGHEST_LEVELS.items()
        ]

    def handle(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        if context.version >= 3 and not _names_its_software(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        features = self._features()
        return ApiVersionsResponse(
            api_keys=self._ranges,
            supported_features=self._supported if context.version >= _MAY_BEGIN_AT_0_SINCE else [],
            finalized_features_epoch=features.features_epoch,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in features.features.items()
                if level
            ],
        )


class FeaturesInForce(Protocol):
    """A cluster image is one."""

    @property
    def features(self) -> Mapping[str, int]: ...

    @property
    def features_epoch(self) -> int:
        """Not negative: clients act only then."""
        ...


def unsupported_version_reply(correlation_id: int) -> Parts:
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_range_of(APIS[ApiKey.API_VERSIONS])]
    )
    return [encode_response(ApiKey.API_VERSIONS, 0, correlation_id, response)]


def _names_its_software(request: ApiVersionsRequest) -> bool:
    return all(
        _NAME.fullmatch(text) for text in (request.client_software_name, request.client_software_version)
    )


def _range_of(api: Api) -> ApiVersion:
    return ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
