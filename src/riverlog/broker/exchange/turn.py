"""What one turn of the event loop leaves to its end: replies that leave together, and waits to look after.

To send a reply wakes the client that waits for it, and the wake-up costs more than all the rest of sending. A
client with many connections that is answered after each of its requests goes back to sleep in between;
answered for many at once, it is woken once. A request that comes alone is answered at once. Every sixteenth
reply begins a turn whose replies are counted, which tells the two cases apart. Few replies are held, and only
those to short requests, so that none waits for long.

A wait that may be over is polled in the next turn, or sooner: the one reader for which a produce request has
brought records gets them before the producer gets its reply.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from riverlog.broker.exchange.context import Parts

LOOK_EVERY: Final = 16
HELD_MAX: Final = 64


class Answered(Protocol):
    def send(self, answer: Parts) -> None:
        """Send it, unless the connection has been closed meanwhile."""
        ...


class LoopTurn:
    __slots__ = ("_count", "_held", "due_waits", "has_many_replies", "replies")

    def __init__(self) -> None:
        self._held: list[tuple[Answered, Parts]] = []
        self._count = 0
        self.has_many_replies = False
        """Whether the last turn that was counted had more than one reply."""
        self.replies = 0
        """How many there were; counted by those who send them."""
        self.due_waits: list[Callable[[], None]] = []
        """To be called soon: whether the wait is over."""

    def hold(self, connection: Answered, answer: Parts) -> None:
        """Send it at the end of this turn or sooner, in any case before a connection is read again."""
        if not self._count:
            asyncio.get_running_loop().call_soon(self._end)
        self._count += 1
        self._held.append((connection, answer))
        if len(self._held) == HELD_MAX:
            self._send()

    def _end(self) -> None:
        self.has_many_replies = self._count > 1
        self._count = 0
        self._send()

    def _send(self) -> None:
        held, self._held = self._held, []
        for connection, answer in held:
            connection.send(answer)

    def poll_soon(self, poll: Callable[[], None]) -> None:
        self.due_waits.append(poll)
        if len(self.due_waits) == 1:
            asyncio.get_running_loop().call_soon(self.poll)

    def poll(self) -> None:
        due_waits, self.due_waits = self.due_waits, []
        for poll in due_waits:
            poll()
