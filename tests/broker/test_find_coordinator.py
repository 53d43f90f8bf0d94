"""FindCoordinator while there are no coordinators: the answers of an Apache Kafka whose own are starting."""

import pytest

from riverlog.broker.context import RequestContext
from riverlog.broker.handlers.find_coordinator import FindCoordinatorHandler
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

NOT_AVAILABLE, INVALID = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST


def ask(version: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    header = RequestHeader(ApiKey.FIND_COORDINATOR, version, 1, "test")
    context = RequestContext(header, version, "PLAINTEXT", Address("127.0.0.1", 1), "test")
    return FindCoordinatorHandler().handle(request, context)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("key_type", "error"), [(0, NOT_AVAILABLE), (1, NOT_AVAILABLE), (2, INVALID), (3, INVALID)]
)
def test_one_coordinator_is_not_available(version: int, key_type: int, error: ErrorCode) -> None:
    response = ask(version, FindCoordinatorRequest(key="key", key_type=key_type))
    assert (response.error_code, response.node_id, response.host, response.port) == (error, -1, "", -1)
    assert response.error_message


@pytest.mark.parametrize(
    ("version", "key_type", "key", "error"),
    [
        (4, 0, "group", NOT_AVAILABLE),
        (6, 1, "transaction", NOT_AVAILABLE),
        (6, 2, "group:AAAAAAAAAAAAAAAAAAAAAA:0", NOT_AVAILABLE),
        (6, 2, "group", INVALID),
        (4, 2, "group:AAAAAAAAAAAAAAAAAAAAAA:0", INVALID),
        (5, 3, "group", INVALID),
        (5, -1, "group", INVALID),
    ],
)
def test_several_coordinators_are_not_available(
    version: int, key_type: int, key: str, error: ErrorCode
) -> None:
    response = ask(version, FindCoordinatorRequest(coordinator_keys=[key, key], key_type=key_type))
    assert [(each.key, each.error_code, each.node_id) for each in response.coordinators] == [
        (key, error, -1)
    ] * 2
