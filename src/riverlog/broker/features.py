"""Levels of features that clients act on: what is advertised, and which changes of them are refused. Pure.

Of Kafka's features those are here that exist here; the others belong to KRaft. A level is what the program
does, not a switch that is kept: it cannot be lowered, and being what it is already is no change.
"""

from typing import Final, NamedTuple

_UPGRADE: Final = 1
_DOWNGRADES: Final = (2, 3)


class Feature(NamedTuple):
    name: str
    max_version: int
    in_force: int


FEATURES: Final = (Feature("group.version", 1, 1), Feature("transaction.version", 2, 2))
"""`group.version` 1 says that groups of the consumer protocol are served (KIP-848),
`transaction.version` 2 lets clients count on an epoch for each transaction (KIP-890)."""


class Update(NamedTuple):
    feature: str
    level: int
    kind: int
    """1 raises, 2 lowers, 3 lowers even if something is lost."""


def refuse(update: Update) -> str | None:
    """Why the update is not made; `None` where the level is in force already."""
    feature = next((each for each in FEATURES if each.name == update.feature), None)
    if feature is None:
        return f"There is no feature '{update.feature}' here."
    if update.kind != _UPGRADE and update.kind not in _DOWNGRADES:
        return f"There is no kind of update {update.kind}."
    if not 0 <= update.level <= feature.max_version:
        return f"{feature.name} goes from 0 to {feature.max_version}; {update.level} is out of range."
    if update.level == feature.in_force:
        return None
    if update.kind == _UPGRADE:
        return f"{feature.name} is at {feature.in_force}; {update.level} would be no upgrade."
    return f"{feature.name} {feature.in_force} cannot be switched off; start an older release instead."
