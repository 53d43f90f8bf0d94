"""Questions to other brokers, gathered: one queue and one request in flight for each broker.

What is asked while a request is on its way goes into the next one, together. When a broker does not answer,
everyone who waits for it is told at once, since another broker may be the one to ask by then. Not here: what
the questions are (`remote_markers`, `remote_coordinator`), which broker to ask, and asking again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.peer_connection import UnansweredError
from riverlog.model.ids import NodeId
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.schema import Message

Q = TypeVar("Q")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

_logger = logging.getLogger(__name__)


class AskPeer(Protocol):
    """`riverlog.client.peers.Peers.ask`."""

    def __call__(self, node_id: NodeId, key: ApiKey, message: Message, /) -> "asyncio.Future[Any]": ...


class Dialect(Protocol[Q, A_co]):
    """How questions become a request, and a response the answers to them. Pure."""

    @property
    def key(self) -> ApiKey: ...

    @property
    def unanswered(self) -> A_co:
        """The answer to a question that has got none."""
        ...

    def take(self, waiting: "deque[Q]") -> Sequence[Q]:
        """Take out what goes into the next request, at least one; the rest stays in its order."""
        ...

    def request(self, questions: Sequence[Q]) -> Message: ...

    def answers(self, questions: Iterable[Q], response: Any) -> Mapping[Q, A_co]:
        """A question that the broker passed over is not among them."""
        ...


class BatchedRequests(Generic[Q, A]):
    def __init__(self, ask: AskPeer, dialect: Dialect[Q, A]) -> None:
        self._ask = ask
        self._dialect = dialect
        self._destinations: dict[NodeId, _Destination[Q, A]] = {}

    def put(self, node_id: NodeId, question: Q) -> "asyncio.Future[A]":
        """The answer; two who ask the same share it. Cancelling it gives up only one's own wait."""
        destination = self._destinations.get(node_id)
        if destination is None:
            destination = self._destinations[node_id] = _Destination()
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        if question not in destination.askers:
            destination.askers[question] = []
            destination.waiting.append(question)
        destination.askers[question].append(answer)
        if not destination.is_asking:
            self._send(node_id, destination)
        return answer

    def _send(self, node_id: NodeId, destination: "_Destination[Q, A]") -> None:
        questions = self._dialect.take(destination.waiting)
        destination.is_asking = True
        asked = {each: destination.askers.pop(each) for each in questions}
        reply = self._ask(node_id, self._dialect.key, self._dialect.request(questions))
        reply.add_done_callback(partial(self._on_reply, node_id, destination, asked))

    def _on_reply(
        self,
        node_id: NodeId,
        destination: "_Destination[Q, A]",
        asked: "dict[Q, list[asyncio.Future[A]]]",
        reply: "asyncio.Future[Any]",
    ) -> None:
        destination.is_asking = False
        answers: Mapping[Q, A] = {}
        try:
            answers = self._dialect.answers(asked, reply.result())
        except (UnansweredError, UnsupportedApiError, MalformedMessage) as error:
            _logger.info("broker %d does not answer %s: %s", node_id, self._dialect.key.name, error)
            asked |= destination.askers
            destination.askers.clear()
            destination.waiting.clear()
        if destination.waiting:
            self._send(node_id, destination)
        else:
            del self._destinations[node_id]
        for question, askers in asked.items():
            answer = answers.get(question, self._dialect.unanswered)
            for each in askers:
                if not each.done():
                    each.set_result(answer)


class _Destination(Generic[Q, A]):
    __slots__ = ("askers", "is_asking", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Q] = deque()
        self.askers: dict[Q, list[asyncio.Future[A]]] = {}
        self.is_asking = False
