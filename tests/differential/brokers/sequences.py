"""Every sequence for several brokers; the one that stops a broker is the last."""

from __future__ import annotations

from tests.differential.brokers import any_broker, leaders_elsewhere, one_away
from tests.differential.steps import Script

SCRIPTS: list[Script] = [
    script for module in (any_broker, leaders_elsewhere, one_away) for script in module.scripts()
]
