"""A setting of the brokers, as one of them tells it."""

from typing import Final

from riverlog.client.cluster import Cluster
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

_BROKER_RESOURCE: Final = 4


def broker_setting(cluster: Cluster, key: str) -> str | None:
    """None where the broker does not tell, or not to us."""
    node_id = min(cluster.brokers())
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=[key]
    )
    reply = cluster.ask_broker(node_id, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource]))
    values = (each.value for result in reply.results for each in result.configs if each.name == key)
    return next(values, None)
