"""ListPartitionReassignments 0: partitions on their way to other brokers; a cluster of one has none."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ListPartitionReassignmentsHandler:
    def handle(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_message=None)
