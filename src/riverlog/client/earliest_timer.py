"""One timer for many deadlines: it rings by the earliest of those that it was told.

It keeps the time by itself: what a loop gives for a call that is due at once may be no timer at all, and not
know when it rings (uvloop).
"""

import asyncio
from collections.abc import Callable


class EarliestTimer:
    __slots__ = ("_handle", "_loop", "_when_s")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.Handle | None = None
        self._when_s = 0.0

    @property
    def when_s(self) -> float | None:
        """None where it is not set."""
        return None if self._handle is None else self._when_s

    def ring_by(self, when_s: float, ring: Callable[[], None]) -> None:
        """By the loop's clock; it is not set any more when it rings. Nothing changes where it rings earlier
        anyway. `ring` is the same each time, and not kept here, so that nobody is kept alive by a timer that
        is not set."""
        if self._handle is not None:
            if self._when_s <= when_s:
                return
            self._handle.cancel()
        self._when_s = when_s
        self._handle = self._loop.call_at(when_s, self._on_due, ring)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _on_due(self, ring: Callable[[], None]) -> None:
        self._handle = None
        ring()
