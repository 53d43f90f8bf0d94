"""Ports that refuse: while a fault says so, nobody listens there, as if the broker were down.

The operating system refuses a connection before the broker hears of it, so that such a fault counts once for
each time that it comes into force, not for each client. Not here: connections that are taken and closed.
"""

import asyncio
from collections.abc import Collection
from concurrent.futures import Future
from typing import Final

from riverlog.model.network import Listening
from riverlog.testing.faults import Faults

_WAIT_S: Final = 10.0


class RefusingPorts:
    """Faults are made in any thread; listeners belong to the event loop of their broker."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: tuple[Listening, ...] = ()
        self._refuses = False

    def listens(self, listening: Collection[Listening]) -> None:
        """A broker has begun to listen; on its event loop."""
        self._loop, self._listening = asyncio.get_running_loop(), tuple(listening)
        self._refuses = False
        self._apply()

    def follow(self) -> None:
        """The faults have changed. Returns when the ports are as these say."""
        loop = self._loop
        if loop is None or loop.is_closed() or bool(self._faults.of_ports) == self._refuses:
            return
        if _running_loop() is loop:
            self._apply()
            return
        done: Future[None] = Future()

        def apply() -> None:
            self._apply()
            done.set_result(None)

        loop.call_soon_threadsafe(apply)
        done.result(_WAIT_S)

    def _apply(self) -> None:
        faults = self._faults.of_ports
        if bool(faults) == self._refuses:
            return
        self._refuses = bool(faults)
        for each in self._listening:
            each.refuse() if self._refuses else each.take()
        for fault in faults:
            fault.strike()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
