"""The longest turn of a broker's event loop in processor time, which a busy machine does not change much.

The broker runs in a thread of this process. A callback that is called in every turn reads the thread's
processor time; what is between two of them is one turn.
"""

import asyncio
import time
from collections.abc import Callable

from riverlog.node.node import Node
from riverlog.testing import Broker


class TurnMeter:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._is_on = False
        self._turns_s: list[float] = []

    def longest_ms(self, work: Callable[[], object]) -> float:
        """The longest turn while the work is done."""
        self._broker.call(self._begin)
        work()
        self._broker.call(self._end)
        return max(self._turns_s) * 1000

    async def _begin(self, node: Node) -> None:
        self._is_on = True
        self._turns_s.clear()
        loop = asyncio.get_running_loop()
        last_s = time.thread_time()

        def pulse() -> None:
            nonlocal last_s
            now_s = time.thread_time()
            if now_s - last_s > 0.0005:
                self._turns_s.append(now_s - last_s)
            last_s = time.thread_time()
            if self._is_on:
                loop.call_soon(pulse)

        self._turns_s.append(0.0)
        loop.call_soon(pulse)

    async def _end(self, node: Node) -> None:
        self._is_on = False
