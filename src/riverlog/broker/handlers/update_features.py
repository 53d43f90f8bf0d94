"""UpdateFeatures 0-2: levels of features, which are what the program does and do not change while it runs.

An update to the level in force succeeds, every other one is refused, and one refusal is the answer to the
whole request. Kafka would lower a level on request; here that is refused, also in a trial.
"""

from typing import Final

from riverlog.broker import features
from riverlog.broker.context import RequestContext
from riverlog.broker.features import Update
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UPGRADE: Final = 1
_UNSAFE_DOWNGRADE: Final = 3
_RESULT_FOR_EACH_UNTIL: Final = 1


class UpdateFeaturesHandler:
    def handle(self, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
        for update in request.feature_updates:
            if refusal := features.refuse(_update(update, context.version)):
                return UpdateFeaturesResponse(
                    error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=refusal
                )
        response = UpdateFeaturesResponse(error_message=None)
        if context.version <= _RESULT_FOR_EACH_UNTIL:
            response.results = [
                UpdatableFeatureResult(feature=update.feature, error_message="It is at this level.")
                for update in request.feature_updates
            ]
        return response


def _update(update: FeatureUpdateKey, version: int) -> Update:
    """Version 0 only tells whether lowering is meant."""
    kind = update.upgrade_type
    if version == 0:
        kind = _UNSAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    return Update(update.feature, update.max_version_level, kind)
