"""Waiting for a condition, with a deadline."""

import time
from collections.abc import Callable


def eventually(
    condition: Callable[[], object], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """Return when the condition holds; fail with `what` and its last value when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} within {timeout_s} s, still {value!r}"
        time.sleep(0.01)
