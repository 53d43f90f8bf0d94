"""ApiVersions 0-4: which APIs and versions are served, and which features are in force.

A version that is not known is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
alone, as Apache Kafka answers, so that any client can find common ground. No features are advertised yet:
those that Kafka has belong to groups, transactions and KRaft.
"""

import re
from collections.abc import Iterable

from riverlog.broker.context import Parts, RequestContext
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.framing import encode_response
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Advertises the given APIs and itself."""

    def __init__(self, served: Iterable[Api]) -> None:
        keys = sorted({*(api.key for api in served), ApiKey.API_VERSIONS})
        self._response = ApiVersionsResponse(api_keys=[_range_of(APIS[key]) for key in keys])

    def handle(self, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        if context.version >= 3 and not _names_its_software(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return self._response


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
