"""UpdateFeatures 0-2: levels of features, raised and lowered, or only tried.

One refusal is the answer to the whole request, and nothing is changed then. What a level means is with those
who ask for it: ApiVersions tells clients, the handlers of KIP-848 and EndTxn act on it.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.features import FeatureUpdate
from riverlog.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_RESULT_FOR_EACH_UNTIL: Final = 1


class UpdateFeaturesHandler:
    def __init__(self, controller: ControllerClient) -> None:
        self._controller = controller

    async def handle(self, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
        # Version 0 has another way to say that lowering is meant, of which Kafka takes no notice either.
        updates = [
            FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
            for each in request.feature_updates
        ]
        refusal = await self._controller.update_features(updates, validate_only=request.validate_only)
        if refusal is not None:
            return UpdateFeaturesResponse(error_code=refusal.error, error_message=refusal.message)
        response = UpdateFeaturesResponse(error_message=None)
        if context.version <= _RESULT_FOR_EACH_UNTIL:
            response.results = [
                UpdatableFeatureResult(feature=update.feature, error_message="It is at this level.")
                for update in request.feature_updates
            ]
        return response
