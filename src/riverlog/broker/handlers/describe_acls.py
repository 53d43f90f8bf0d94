"""DescribeAcls 1-3: answered with SECURITY_DISABLED, as Kafka does without an authorizer."""

from riverlog.broker.exchange.context import HangUp, RequestContext
from riverlog.broker.shared.acls import MALFORMED, NOT_AUTHORISING, is_vague
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class DescribeAclsHandler:
    def handle(self, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse | HangUp:
        if is_vague(
            request.resource_type_filter,
            request.pattern_type_filter,
            request.operation,
            request.permission_type,
        ):
            return MALFORMED
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NOT_AUTHORISING)
