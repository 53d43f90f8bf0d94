"""CreateAcls 1-3: each one answered with SECURITY_DISABLED, as Kafka does without an authorizer."""

from riverlog.broker.exchange.context import HangUp, RequestContext
from riverlog.broker.shared.acls import MALFORMED, NOT_AUTHORISING, is_vague
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


class CreateAclsHandler:
    def handle(self, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse | HangUp:
        if any(
            is_vague(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
            for each in request.creations
        ):
            return MALFORMED
        return CreateAclsResponse(
            results=[
                AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NOT_AUTHORISING)
                for _ in request.creations
            ]
        )
