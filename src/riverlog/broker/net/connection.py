"""One client connection: requests in, replies out in the order of the requests.

Requests may be pipelined. A request that is answered at once costs no task and no future. While a request
that must not be overtaken is in progress, at most one more is read, and none is begun; a produce that waits
for its acknowledgement and a fetch that waits for data have had their effect already and let later requests
start (Kafka reads nothing further in either case). So the end of a connection is noticed during a wait, which
is then given up. Replies in progress and bytes waiting to be sent are bounded: beyond the bound the socket is
not read, and the client feels it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from riverlog.broker.exchange.context import Answer, HangUp, Parts
from riverlog.broker.exchange.delayed import PendingReply
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LOOK_EVERY, LoopTurn
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.inbound import Inbound, InvalidFrameSizeError, is_whole_frame
from riverlog.broker.net.outbound import Outbound
from riverlog.broker.net.receive_memory import ReceiveMemory
from riverlog.model.network import Socket

_REPLIES_PENDING_MAX = 100
_QUEUED_BYTES_MAX = 2 * 1024**2
_REQUESTS_PER_TURN = 64

Pending = asyncio.Future[Answer] | PendingReply


class Later(NamedTuple):
    """The answer is in the making. Cancelled when the connection closes first."""

    answer: Pending
    may_be_overtaken: bool


class Answering(Protocol):
    def dispatch(self, frame: memoryview, origin: Origin) -> Answer | Later: ...


class Connection:
    __slots__ = (
        "_answering",
        "_blocking",
        "_frame_bytes_max",
        "_hang_up_reason",
        "_inbound",
        "_is_plain",
        "_is_reading",
        "_loop",
        "_memory",
        "_on_closed",
        "_outbound",
        "_pending",
        "_recv_into",
        "_send",
        "_socket",
        "_turn",
        "_waits_for_memory",
        "is_closed",
        "last_active_s",
        "origin",
    )

    def __init__(
        self,
        socket: Socket,
        listener_name: str,
        answering: Answering,
        memory: ReceiveMemory,
        cold_reader: ColdReader,
        turn: LoopTurn,
        *,
        frame_bytes_max: int,
        on_closed: Callable[["Connection", str], None],
    ) -> None:
        self.origin = Origin(socket.peer, listener_name)
        self.is_closed = False
        self._socket = socket
        self._recv_into, self._send = socket.recv_into, socket.send
        self._answering = answering
        self._memory = memory
        self._turn = turn
        self._frame_bytes_max = frame_bytes_max
        self._inbound = Inbound(memory, frame_bytes_max)
        self._outbound = Outbound(socket, cold_reader, on_progress=self._advance, on_broken=self.close)
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._pending: deque[Parts | Later] = deque()
        self._blocking: Pending | None = None
        self._hang_up_reason: str | None = None
        self._waits_for_memory = False
        self._is_plain = True
        """Nothing is in progress, nothing is kept, and no long request is expected."""
        self._is_reading = True
        self.last_active_s = self._loop.time()
        socket.on_readable(self._on_readable)

    @property
    def is_idle(self) -> bool:
        """Nothing is in progress: the client owes us the next request."""
        return not self._pending and not self._outbound.queued

    @property
    def holds_memory(self) -> bool:
        return self._inbound.holds_memory

    def close(self, reason: str) -> None:
        """Close at once; replies not yet sent are lost and waits are given up."""
        if self.is_closed:
            return
        self.is_closed = True
        self._socket.close()
        self._outbound.drop()
        self._inbound.drop()
        for pending in self._pending:
            if isinstance(pending, Later):
                pending.answer.cancel()
        self._pending.clear()
        self._on_closed(self, reason)

    def _on_readable(self) -> None:
        """The short way is for a request that is whole and alone, on a connection with nothing else to do: it
        touches little of what belongs to the connection, which with many of them is not in any cache."""
        if not self._is_plain:
            self._receive()
            return
        scratch, recv_into = self._memory.scratch, self._recv_into
        try:
            received = recv_into(scratch)
        except OSError as error:
            self._on_not_received(error)
            return
        self.last_active_s = self._loop.time()
        if not is_whole_frame(scratch, received, self._frame_bytes_max):
            self._inbound.take_scratch(received)
            self._go_on(received)
            return
        answer = self._answering.dispatch(scratch[4:received], self.origin)
        if type(answer) is list:
            self._reply(answer)
        else:
            self._take(answer)
            self._after_flush(True)

    def _receive(self) -> None:
        inbound, outbound = self._inbound, self._outbound
        try:
            if self._pending or outbound.queued or self._hang_up_reason is not None:
                frame: memoryview | int = inbound.fill(self._recv_into)
            else:
                frame = inbound.receive(self._recv_into)
        except OSError as error:
            self._on_not_received(error)
            return
        self.last_active_s = self._loop.time()
        if isinstance(frame, int):
            self._go_on(frame)
            return
        answer = self._answering.dispatch(frame, self.origin)
        is_long = inbound.own is not None
        if is_long:
            inbound.drop()
        if type(answer) is not list:
            self._take(answer)
            self._after_flush(True)
        elif is_long:
            self.send(answer)
        else:
            self._is_plain = inbound.is_plain
            self._reply(answer)

    def _on_not_received(self, error: OSError) -> None:
        if not isinstance(error, (BlockingIOError, InterruptedError)):
            self.close(error.strerror or str(error))

    def _go_on(self, received: int) -> None:
        if received:
            self._advance()
        else:
            self.close("")

    def _reply(self, answer: Parts) -> None:
        """At once, or with others of this turn."""
        turn = self._turn
        if turn.due_waits and len(turn.due_waits) == 1 and not turn.has_many_replies:
            turn.poll()
        turn.replies += 1
        if turn.has_many_replies or turn.replies % LOOK_EVERY == 0:
            turn.hold(self, answer)
        else:
            self.send(answer)

    def send(self, answer: Parts) -> None:
        """Send the reply to the only request that there was."""
        if self.is_closed:
            return
        if len(answer) == 1:
            send = self._send
            try:
                sent = send(answer[0])  # type: ignore[arg-type]
            except OSError:
                sent = 0  # What is the matter is found out below.
            if sent == len(answer[0]):
                return
            answer = [memoryview(answer[0])[sent:]]  # type: ignore[arg-type]
        self._outbound.send_now(answer)
        if self._outbound.queued:
            self._after_flush(True)

    def _advance(self) -> None:
        """Answer the requests that are here, send what can be sent, and read on if there is room."""
        if self.is_closed:
            return
        inbound = self._inbound
        try:
            for _ in range(_REQUESTS_PER_TURN):
                if not self._may_start():
                    break
                frame = inbound.next_frame()
                if frame is None:
                    break
                self._take(self._answering.dispatch(frame, self.origin))
            has_room = inbound.settle()
        except InvalidFrameSizeError as error:
            self._hang_up_reason = str(error)
            has_room = False
        if self._outbound.queued:
            self._outbound.flush()
        self._after_flush(has_room)

    def _may_start(self) -> bool:
        return (
            self._blocking is None
            and self._hang_up_reason is None
            and len(self._pending) < _REPLIES_PENDING_MAX
            and self._outbound.queued_bytes < _QUEUED_BYTES_MAX
        )

    def _take(self, answer: Answer | Later) -> None:
        if type(answer) is list:
            if self._pending:
                self._pending.append(answer)
            else:
                self._outbound.queue(answer)
        elif isinstance(answer, Later):
            self._pending.append(answer)
            if not answer.may_be_overtaken:
                self._blocking = answer.answer
            answer.answer.add_done_callback(self._on_answered)
        elif isinstance(answer, HangUp):
            self._hang_up_reason = answer.reason

    def _on_answered(self, answered: Pending) -> None:
        if self.is_closed:
            return
        if self._blocking is answered:
            self._blocking = None
        while self._pending:
            head = self._pending[0]
            if isinstance(head, Later):
                if not head.answer.done():
                    break
                if not self._queue_answer(head.answer):
                    break
            else:
                self._outbound.queue(head)
            self._pending.popleft()
        self._advance()

    def _queue_answer(self, answered: Pending) -> bool:
        """False when there is no reply and there can be none after it."""
        answer = HangUp("the request was given up") if answered.cancelled() else answered.result()
        if type(answer) is list:
            self._outbound.queue(answer)
        elif isinstance(answer, HangUp):
            self._hang_up_reason = answer.reason
            self._drop_pending()
            return False
        return True

    def _drop_pending(self) -> None:
        """The reply at the head will never come, so none after it may be sent either."""
        for pending in self._pending:
            if isinstance(pending, Later):
                pending.answer.cancel()
        self._pending.clear()

    def _after_flush(self, has_room: bool) -> None:
        if self.is_closed:
            return
        self._is_plain = self._hang_up_reason is None and self.is_idle and self._inbound.is_plain
        if self._hang_up_reason is not None:
            if self.is_idle:
                self.close(self._hang_up_reason)
                return
            has_room = False
        elif not has_room and not self._waits_for_memory:
            self._waits_for_memory = True
            self._memory.when_released(self._on_memory_released)
        may_start = self._may_start()
        if may_start and self._inbound.has_frame:
            # Either this turn was used up, or the replies that kept requests waiting have just gone. What is
            # here comes before what is still to be read, in a turn of its own.
            may_start = False
            self._loop.call_soon(self._advance)
        self._read_on(has_room and (may_start or self._may_read_ahead()))

    def _may_read_ahead(self) -> bool:
        """While a request holds back the others the socket is read still, up to the next whole request: a
        client that leaves during a long wait is noticed, and nothing of it is kept until the wait ends."""
        return (
            self._blocking is not None
            and self._hang_up_reason is None
            and not self._inbound.has_frame
            and self._outbound.queued_bytes < _QUEUED_BYTES_MAX
        )

    def _on_memory_released(self) -> None:
        self._waits_for_memory = False
        self._loop.call_soon(self._advance)

    def _read_on(self, reading: bool) -> None:
        if reading is not self._is_reading:
            self._is_reading = reading
            self._socket.on_readable(self._on_readable if reading else None)
