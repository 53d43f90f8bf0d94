"""DeleteAcls 1-3: each filter answered with SECURITY_DISABLED, as Kafka does without an authorizer."""

from riverlog.broker.exchange.context import HangUp, RequestContext
from riverlog.broker.shared.acls import MALFORMED, NOT_AUTHORISING, is_vague
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


class DeleteAclsHandler:
    def handle(self, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse | HangUp:
        if any(
            is_vague(
                each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type
            )
            for each in request.filters
        ):
            return MALFORMED
        return DeleteAclsResponse(
            filter_results=[
                DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NOT_AUTHORISING)
                for _ in request.filters
            ]
        )
