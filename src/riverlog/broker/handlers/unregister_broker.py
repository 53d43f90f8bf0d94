"""UnregisterBroker 0: a broker that is gone for good is forgotten. Only where several brokers can be."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.client import ControllerClient
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


class UnregisterBrokerHandler:
    def __init__(self, controller: ControllerClient) -> None:
        self._controller = controller

    async def handle(
        self, request: UnregisterBrokerRequest, context: RequestContext
    ) -> UnregisterBrokerResponse:
        refusal = await self._controller.unregister_broker(request.broker_id)
        if refusal is None:
            return UnregisterBrokerResponse(error_message=None)
        return UnregisterBrokerResponse(error_code=refusal.error, error_message=refusal.message)
