"""DescribeCluster 0-2: the cluster's id, its controller and its brokers as the asking listener sees them.

Only the endpoint type "brokers" is served here. Fenced brokers, which are shown since 2 to those who ask for
them, are those that are registered and have no session.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared import authorized_operations
from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


class DescribeClusterHandler:
    def __init__(self, follower: MetadataFollower) -> None:
        self._follower = follower

    def handle(self, request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
        if request.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="This is an endpoint of brokers; the request asked for one of controllers.",
            )
        if request.endpoint_type != _BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"There is no endpoint type {request.endpoint_type}.",
            )
        return self._describe(request, context)

    def _describe(self, request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
        view = ClusterView(self._follower.image, context.listener_name)
        response = DescribeClusterResponse(
            cluster_id=view.image.cluster_id,
            controller_id=view.controller_id(),
            brokers=[
                DescribeClusterBroker(
                    broker_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack
                )
                for broker, address in view.brokers()
            ],
        )
        if request.include_fenced_brokers:
            response.brokers += [
                DescribeClusterBroker(
                    broker_id=broker.node_id,
                    host=address.host,
                    port=address.port,
                    rack=broker.rack,
                    is_fenced=True,
                )
                for broker, address in view.fenced()
            ]
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = authorized_operations.ON_CLUSTER
        return response
