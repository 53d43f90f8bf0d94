"""Waiting for a condition. Apache Kafka applies a change a moment after it has answered; we do at once."""

import time
from collections.abc import Callable

DEADLINE_S = 10.0


def eventually(condition: Callable[[], object]) -> None:
    """Return when `condition` holds; fail with its last value if it does not within ten seconds."""
    end = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"still {value!r} after {DEADLINE_S} s"
        time.sleep(0.02)
