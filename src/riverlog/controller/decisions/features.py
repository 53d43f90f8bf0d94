"""Decisions about the levels of features. Pure.

A request is one change: the first update that cannot be made refuses all of them. A level that is in force
already is no change, and a feature that is named twice gets the later level, as in Kafka.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from riverlog.controller.decisions.refusals import Refusal
from riverlog.model.errors import ErrorCode
from riverlog.model.features import HIGHEST_LEVELS

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


class FeatureUpdate(NamedTuple):
    feature: str
    level: int
    kind: int
    """1 raises, 2 lowers, 3 lowers even if something is lost; nothing is lost by any of ours."""


def decide_features(
    levels: Mapping[str, int], updates: Sequence[FeatureUpdate]
) -> Mapping[str, int] | Refusal:
    """The levels after the updates."""
    wanted = dict(levels)
    for update in updates:
        if problem := _problem(update, levels.get(update.feature, 0)):
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION, problem)
        wanted[update.feature] = update.level
    return wanted


def _problem(update: FeatureUpdate, in_force: int) -> str | None:
    name, level, kind = update
    highest = HIGHEST_LEVELS.get(name)
    if highest is None:
        return f"There is no feature '{name}' here."
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"There is no kind of update {kind}."
    if not 0 <= level <= highest:
        return f"{name} goes from 0 to {highest}; {level} is out of range."
    if level < in_force and kind == UPGRADE:
        return f"{name} is at {in_force}; {level} would be no upgrade. Ask for a downgrade if that is meant."
    if level > in_force and kind != UPGRADE:
        return f"{name} is at {in_force}; {level} would be no downgrade."
    return None
