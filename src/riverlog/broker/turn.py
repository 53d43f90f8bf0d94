"""What one turn of the event loop leaves to its end: replies that leave together, and waits to look after.

To send is to wake whoever waits for the reply, and to wake a sleeper costs more than all the rest of sending.
A client with many connections that is answered after each of its requests goes back to sleep in between;
answered for many at once, it is woken once. A request that comes alone is answered at once. Which is the case
shows at every sixteenth reply, which begins a turn whose replies are counted. Few are held, and only answers
to short requests, so that none waits for long.

A wait that may have come to its end is asked for its answer in the next turn, or sooner: the one reader for
whom a produce request has brought records gets them before the producer gets its reply.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from riverlog.broker.context import Parts

LOOK_EVERY: Final = 16
HELD_MAX: Final = 64


class Answered(Protocol):
    def send(self, answer: Parts) -> None:
        """Send it, unless the connection has been closed meanwhile."""
        ...


class Turn:
    __slots__ = ("_count", "_held", "is_crowded", "questions", "replies")

    def __init__(self) -> None:
        self._held: list[tuple[Answered, Parts]] = []
        self._count = 0
        self.is_crowded = False
        """Whether the last turn that was counted had more than one reply."""
        self.replies = 0
        """How many there were; counted by those who send them."""
        self.questions: list[Callable[[], None]] = []
        """To be asked soon."""

    def hold(self, connection: Answered, answer: Parts) -> None:
        """Send it at the end of this turn or sooner, in any case before a connection is read again."""
        if not self._count:
            asyncio.get_running_loop().call_soon(self._end)
        self._count += 1
        self._held.append((connection, answer))
        if len(self._held) == HELD_MAX:
            self._send()

    def _end(self) -> None:
        self.is_crowded = self._count > 1
        self._count = 0
        self._send()

    def _send(self) -> None:
        held, self._held = self._held, []
        for connection, answer in held:
            connection.send(answer)

    def ask_soon(self, question: Callable[[], None]) -> None:
        self.questions.append(question)
        if len(self.questions) == 1:
            asyncio.get_running_loop().call_soon(self.ask)

    def ask(self) -> None:
        questions, self.questions = self.questions, []
        for question in questions:
            question()
