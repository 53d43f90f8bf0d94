"""ApiVersions 0-4: which APIs and versions are served, and which features are in force.

A version that is not known is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
alone, as Apache Kafka answers, so that any client can find common ground.
"""

import re
from collections.abc import Iterable

from riverlog.broker.context import Parts, RequestContext
from riverlog.broker.features import FEATURES
from riverlog.model.errors import ErrorCode
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


_FEATURES_EPOCH = 1
"""Features do not change while a node runs. Clients act only on an epoch that is not negative."""

_MAY_BEGIN_AT_0_SINCE = 4
"""Clients of before stumble over a feature whose versions begin at 0, so Kafka leaves it out."""


class ApiVersionsHandler:
    """Advertises the given APIs and itself."""

    def __init__(self, served: Iterable[Api]) -> None:
        keys = sorted({*(api.key for api in served), ApiKey.API_VERSIONS})
        ranges = [_range_of(APIS[key]) for key in keys]
        finalized = [
            FinalizedFeatureKey(
                name=each.name, max_version_level=each.in_force, min_version_level=each.in_force
            )
            for each in FEATURES
        ]
        self._response = ApiVersionsResponse(
            api_keys=ranges,
            supported_features=[
                SupportedFeatureKey(name=each.name, min_version=0, max_version=each.max_version)
                for each in FEATURES
            ],
            finalized_features_epoch=_FEATURES_EPOCH,
            finalized_features=finalized,
        )
        self._without_supported = ApiVersionsResponse(
            api_keys=ranges, finalized_features_epoch=_FEATURES_EPOCH, finalized_features=finalized
        )

    def handle(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        if context.version >= 3 and not _names_its_software(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return self._response if context.version >= _MAY_BEGIN_AT_0_SINCE else self._without_supported


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
