"""The other brokers of a cluster, asked from the event loop: one kept connection to each, made when needed.

A request goes out when the connection has room, and waits in a bounded queue otherwise. When a connection
ends, those whose requests it carried are told what may have happened; when one cannot be made, all who wait
for it are told: whoever asked knows better than this module whether the same broker is still the one to ask.
The next connection is made after a pause that grows with each failure in a row and has some chance in it,
and only when somebody waits for it. The address is looked up for every attempt, and a broker that is known
at another address than before is asked there. No request takes a task. Not here: which broker to ask, and
asking again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from riverlog.client.core.connection import ClientLimits, RequestTooLarge
from riverlog.client.core.events import Outcome
from riverlog.client.core.retrying import BACKOFF, Backoff
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.earliest_timer import EarliestTimer
from riverlog.client.peer_connection import PeerConnection, UnansweredError
from riverlog.model.ids import NodeId
from riverlog.model.network import Address, Network
from riverlog.wire.apis import ApiKey
from riverlog.wire.schema import Message

AddressOf = Callable[[NodeId], Address | None]
"""Where a broker is now; None while it is not known."""


@dataclass(frozen=True, slots=True)
class PeerLimits:
    timeout_s: float = 30.0
    """For a reply, from the moment that it was asked for, unless the request names another time."""
    connect_timeout_s: float = 10.0
    in_flight_max: int = 32
    """Requests without a reply on one connection."""
    waiting_max: int = 1_000
    """Requests that wait for one connection, or for room on it; one more is refused."""
    backoff: Backoff = BACKOFF


LIMITS: Final = PeerLimits()


class _Question(NamedTuple):
    key: ApiKey
    message: Message
    version_max: int | None
    deadline_s: float
    answer: "asyncio.Future[Any]"


class Peers:
    def __init__(
        self,
        network: Network,
        address_of: AddressOf,
        *,
        client_id: str,
        chance: Callable[[], float],
        limits: PeerLimits = LIMITS,
    ) -> None:
        """`chance` gives numbers between 0 and 1."""
        self._network = network
        self._address_of = address_of
        self._client_id = client_id
        self._chance = chance
        self._limits = limits
        self._peers: dict[NodeId, _Peer] = {}
        self._is_closed = False

    def ask(
        self,
        node_id: NodeId,
        key: ApiKey,
        message: Message,
        *,
        version_max: int | None = None,
        timeout_s: float | None = None,
    ) -> "asyncio.Future[Any]":
        """The response message. Fails with `UnansweredError`, which says what the broker may have done, or as
        `PeerConnection.ask` does. Cancelling it drops the reply when it comes."""
        loop = asyncio.get_running_loop()
        wait_s = self._limits.timeout_s if timeout_s is None else timeout_s
        question = _Question(key, message, version_max, loop.time() + wait_s, loop.create_future())
        if self._is_closed:
            _fail(question, "closed here")
            return question.answer
        peer = self._peers.get(node_id)
        if peer is None:
            peer = self._peers[node_id] = _Peer(
                self._network,
                partial(self._address_of, node_id),
                f"broker {node_id}",
                self._client_id,
                self._chance,
                self._limits,
            )
        peer.ask(question)
        return question.answer

    def give_up(self, node_id: NodeId) -> None:
        """The broker has gone, as the others say: nobody waits for it any more. One that is only stopped
        keeps its connections, and would let everybody wait for their time-outs."""
        peer = self._peers.get(node_id)
        if peer is not None:
            peer.give_up()

    def close(self) -> None:
        """Requests without a reply are told so. Closing twice is no error."""
        self._is_closed = True
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


class _Peer:
    """One broker. It is connected, or connecting, or pausing before the next attempt, or nobody needs it."""

    def __init__(
        self,
        network: Network,
        address: Callable[[], Address | None],
        name: str,
        client_id: str,
        chance: Callable[[], float],
        limits: PeerLimits,
    ) -> None:
        self._network = network
        self._address = address
        self._name = name
        self._client_id = client_id
        self._chance = chance
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Question] = deque()
        self._connection: PeerConnection | None = None
        self._is_open = False
        self._failures = 0
        self._not_before_s = self._loop.time()
        self._pause: asyncio.TimerHandle | None = None
        self._overdue = EarliestTimer(self._loop)

    def ask(self, question: _Question) -> None:
        connection = self._connection
        if connection is not None and self._address() not in (None, connection.address):
            self._leave(connection)
        if len(self._waiting) >= self._limits.waiting_max:
            self._waiting = deque(each for each in self._waiting if not each.answer.done())
        if len(self._waiting) >= self._limits.waiting_max:
            _fail(question, f"too many requests wait for {self._name}")
            return
        self._waiting.append(question)
        self._go_on()

    def give_up(self) -> None:
        if self._connection is not None:
            self._leave(self._connection)
        self._tell_all_who_wait(f"{self._name} has gone")

    def close(self) -> None:
        if self._connection is not None:
            self._leave(self._connection)
        self._overdue.cancel()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._tell_all_who_wait("closed here")

    def _go_on(self) -> None:
        """The next step towards a reply for those who wait."""
        connection = self._connection
        if connection is not None and self._is_open:
            while self._waiting and connection.has_room:
                self._send(connection, self._waiting.popleft())
        elif connection is None and self._pause is None and self._waiting:
            self._pause = self._loop.call_at(self._not_before_s, self._connect)
        self._watch_deadlines()

    # The connection.

    def _connect(self) -> None:
        self._pause = None
        if not self._waiting:
            return  # They have given up; who comes next begins at once.
        address = self._address()
        if address is None:
            self._on_failure(f"{self._name} is not known")
            return
        limits = self._limits
        connection = PeerConnection(
            self._network,
            address,
            client_id=self._client_id,
            timeout_s=limits.connect_timeout_s,
            limits=ClientLimits(in_flight_max=limits.in_flight_max),
            on_closed=lambda _: self._on_closed(connection),
        )
        self._connection, self._is_open = connection, False
        connection.open().add_done_callback(partial(self._on_opened, connection))

    def _on_opened(self, connection: PeerConnection, opened: "asyncio.Future[Any]") -> None:
        error = None if opened.cancelled() else opened.exception()
        if self._connection is not connection:
            return
        if error is not None or connection.is_closed:
            self._connection = None
            self._on_failure(f"{self._name} at {connection.address} cannot be reached: {error or 'hung up'}")
            return
        self._is_open = True
        self._go_on()

    def _on_failure(self, reason: str) -> None:
        self._pause_before_the_next()
        self._tell_all_who_wait(reason)

    def _on_closed(self, connection: PeerConnection) -> None:
        """An open connection ended; those whose requests it carried have been told by it."""
        if self._connection is connection:
            self._connection, self._is_open = None, False
            self._pause_before_the_next()
            self._go_on()

    def _pause_before_the_next(self) -> None:
        self._not_before_s = self._loop.time() + self._limits.backoff.pause_s(self._failures, self._chance())
        self._failures += 1

    def _leave(self, connection: PeerConnection) -> None:
        self._connection, self._is_open = None, False
        connection.close()

    # Requests.

    def _send(self, connection: PeerConnection, question: _Question) -> None:
        if question.answer.done():
            return
        left_s = question.deadline_s - self._loop.time()
        try:
            reply = connection.ask(
                question.key, question.message, version_max=question.version_max, timeout_s=max(left_s, 0)
            )
        except (UnsupportedApiError, RequestTooLarge) as error:
            question.answer.set_exception(error)
            return
        reply.add_done_callback(partial(self._on_reply, question.answer))

    def _on_reply(self, answer: "asyncio.Future[Any]", reply: "asyncio.Future[Any]") -> None:
        error = reply.exception()
        if not answer.done():
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(reply.result())
        if error is None:
            self._failures = 0
        if self._waiting:
            self._go_on()

    def _tell_all_who_wait(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            _fail(each, reason)
        self._watch_deadlines()

    def _watch_deadlines(self) -> None:
        """One timer for all who wait. It is not moved when they go: when it rings early, it is set anew."""
        if not self._waiting:
            return
        is_known = self._overdue.when_s is not None
        new = [self._waiting[-1]] if is_known else self._waiting
        self._overdue.ring_by(min(each.deadline_s for each in new), self._on_overdue)

    def _on_overdue(self) -> None:
        now_s = self._loop.time()
        late = [each for each in self._waiting if each.deadline_s <= now_s]
        self._waiting = deque(
            each for each in self._waiting if each.deadline_s > now_s and not each.answer.done()
        )
        for each in late:
            _fail(each, f"{self._name} had no room for the request in time")
        self._watch_deadlines()


def _fail(question: _Question, reason: str) -> None:
    if not question.answer.done():
        question.answer.set_exception(UnansweredError(Outcome.NOT_SENT, reason))
