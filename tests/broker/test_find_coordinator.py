"""FindCoordinator against a real broker: one node coordinates every group and every transaction."""

from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.raw_client import RawClient

NOT_AVAILABLE, INVALID, NONE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NONE,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(offsets_topic_num_partitions=3) as broker:
        yield broker


def ask(broker: Broker, version: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    with RawClient(broker) as client:
        response: FindCoordinatorResponse = client.ask(ApiKey.FIND_COORDINATOR, version, request)
        return response


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_group_is_coordinated_by_this_node(broker: Broker, version: int) -> None:
    response = ask(broker, version, FindCoordinatorRequest(key="key"))
    assert (response.error_code, response.node_id) == (NONE, 1)
    assert f"{response.host}:{response.port}" == broker.bootstrap_servers


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_an_old_version_knows_groups_and_transactions_only(
    broker: Broker, version: int, key_type: int
) -> None:
    response = ask(broker, version, FindCoordinatorRequest(key="key", key_type=key_type))
    assert (response.error_code, response.node_id, response.host, response.port) == (INVALID, -1, "", -1)
    assert response.error_message


@pytest.mark.parametrize(
    ("version", "key_type", "key", "error"),
    [
        (4, 0, "group", NONE),
        (6, 1, "transaction", NONE),
        (6, 2, "group:AAAAAAAAAAAAAAAAAAAAAA:0", NOT_AVAILABLE),
        (6, 2, "group", INVALID),
        (4, 2, "group:AAAAAAAAAAAAAAAAAAAAAA:0", INVALID),
        (5, 3, "group", INVALID),
        (5, -1, "group", INVALID),
    ],
)
def test_several_coordinators_are_told_at_once(
    broker: Broker, version: int, key_type: int, key: str, error: ErrorCode
) -> None:
    request = FindCoordinatorRequest(coordinator_keys=[key, "a:b:c", key], key_type=key_type)
    response = ask(broker, version, request)
    found = [(each.key, each.error_code, each.node_id) for each in response.coordinators]
    assert found[0] == found[2] == (key, error, -1 if error else 1)


def test_the_first_group_makes_the_offsets_topic_in_the_shape_that_was_set(broker: Broker) -> None:
    assert ask(broker, 3, FindCoordinatorRequest(key="first")).error_code == NONE
    with RawClient(broker) as client:
        wanted = MetadataRequestTopic(name="__consumer_offsets")
        reply = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[wanted]))
        shape = reply.topics[0]
        resource = DescribeConfigsResource(
            resource_type=2, resource_name="__consumer_offsets", configuration_keys=["cleanup.policy"]
        )
        configs = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource]))
    assert (shape.is_internal, len(shape.partitions)) == (True, 3)
    assert configs.results[0].configs[0].value == "compact"
