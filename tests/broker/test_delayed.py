"""Answers that come later without a task: asked at the right time, once, and given up in every case."""

import asyncio
from collections.abc import Callable

import pytest

from riverlog.broker.dispatch.dispatcher import Dispatcher
from riverlog.broker.dispatch.door import OpenDoor
from riverlog.broker.dispatch.route import AnyRoute, route
from riverlog.broker.exchange.context import Answer, RequestContext
from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply, PendingReply
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.net.connection import Later
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import NoMetrics
from riverlog.model.network import Address
from riverlog.model.rights import NO_RIGHTS
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.fetch import FetchRequest, FetchResponse
from tests.broker.raw_client import RawClient, fetch_request, fetches_waiting, produce_request
from tests.broker.sockets import run
from tests.broker.test_dispatch import StoppedClock
from tests.waiting import eventually, loop_turns


class Wait(DelayedReply):
    """Gives these, one after the other, each time that it is asked."""

    def __init__(self, turn: LoopTurn, *outcomes: object) -> None:
        super().__init__(turn)
        self._outcomes = list(outcomes)
        self.asked = self.dropped = 0

    def handle(self, request: object, context: RequestContext) -> "Wait":
        return self

    def make(self) -> object:
        self.asked += 1
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def drop(self) -> None:
        self.dropped += 1


def pending_reply(wait: Wait) -> tuple[PendingReply, list[Answer]]:
    """What the dispatcher makes of it, and the answers as they come."""
    frame = bytearray(encode_request(RequestHeader(ApiKey.FETCH, 12, 7, None), FetchRequest()))
    fetch: AnyRoute = route(FetchRequest, wait, NO_RIGHTS, may_be_overtaken=True)
    dispatcher = Dispatcher(
        {int(ApiKey.FETCH): fetch}, OpenDoor([fetch], NoMetrics()), StoppedClock(), NoMetrics()
    )
    later = dispatcher.dispatch(memoryview(frame)[4:], Origin(Address("127.0.0.1", 1), "PLAINTEXT"))
    assert isinstance(later, Later)
    assert isinstance(later.answer, PendingReply)
    assert later.may_be_overtaken
    answers: list[Answer] = []
    later.answer.add_done_callback(lambda pending: answers.append(pending.result()))
    return later.answer, answers


def decoded(answers: list[Answer]) -> FetchResponse:
    [reply] = answers
    assert isinstance(reply, list)
    assert isinstance(reply[0], bytes)
    response, _ = decode(FetchResponse, 12, reply[0], 9)
    return response


def in_loop(check: Callable[[], None], *more: Callable[[], None]) -> None:
    """Each in a turn of its own."""

    async def main() -> None:
        for each in (check, *more):
            each()
            await loop_turns()

    run(main)


def test_it_is_asked_once_for_all_that_came_in_a_turn_and_answers_at_once() -> None:
    wait = Wait(LoopTurn(), NOT_YET, [b"reply"])
    pending, answers = pending_reply(wait)

    def first() -> None:
        wait.poll_soon()
        wait.poll_soon()
        assert wait.asked == 0

    def second() -> None:
        assert (wait.asked, wait.dropped, answers) == (1, 0, [])
        wait.poll_soon()

    def third() -> None:
        assert (wait.asked, wait.dropped, answers) == (2, 1, [[b"reply"]])
        assert pending.done()
        wait.poll_soon()  # As a partition may that is just telling all of its readers.

    def fourth() -> None:
        assert (wait.asked, wait.dropped, answers) == (2, 1, [[b"reply"]])
        pending.cancel()
        assert wait.dropped == 1

    in_loop(first, second, third, fourth)


def test_a_response_is_encoded_by_its_route() -> None:
    turn = LoopTurn()
    wait = Wait(turn, FetchResponse(session_id=5))
    _, answers = pending_reply(wait)

    def check() -> None:
        wait.poll_soon()
        turn.poll()  # Sooner than in the next turn, as before the reply to the producer of the records.
        response = decoded(answers)
        assert response.session_id == 5

    in_loop(check)


def test_a_bug_becomes_an_error_and_ends_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    wait = Wait(LoopTurn(), ZeroDivisionError())
    _, answers = pending_reply(wait)

    def check() -> None:
        response = decoded(answers)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert wait.dropped == 1
        assert "ZeroDivisionError" in caplog.text

    in_loop(wait.poll_soon, check)


def test_whoever_leaves_is_not_asked_any_more() -> None:
    wait = Wait(LoopTurn())
    pending, answers = pending_reply(wait)

    def leave() -> None:
        wait.poll_soon()
        pending.cancel()
        pending.cancel()

    def check() -> None:
        assert (wait.asked, wait.dropped, answers) == (0, 1, [])

    in_loop(leave, check)


@pytest.mark.parametrize("readers", [1, 2, 5])
def test_waiting_readers_get_what_a_producer_on_another_connection_brings(readers: int) -> None:
    with Broker() as broker, RawClient(broker) as producer:
        producer.create_topic("orders")
        clients = [RawClient(broker) for _ in range(readers)]
        for offset in range(20):
            for client in clients:
                client.send_long_poll("orders", offset)
            assert producer.produce("orders").base_offset == offset
            for client in clients:
                [topic] = client.receive(ApiKey.FETCH, 12).responses
                assert topic.partitions[0].high_watermark == offset + 1
                assert topic.partitions[0].records
        assert fetches_waiting(broker) == 0
        for client in clients:
            client.socket.close()


def test_a_client_that_waits_and_produces_on_one_connection_gets_both_replies_in_order() -> None:
    with Broker() as broker, RawClient(broker) as client:
        client.create_topic("orders")
        for offset in range(10):
            client.send_long_poll("orders", offset)
            client.send(ApiKey.PRODUCE, 12, produce_request("orders", None))
            [fetched] = client.receive(ApiKey.FETCH, 12).responses
            assert fetched.partitions[0].records
            [produced] = client.receive(ApiKey.PRODUCE, 12).responses
            assert produced.partition_responses[0].base_offset == offset


def test_clients_that_leave_leave_no_wait_behind() -> None:
    with Broker() as broker, RawClient(broker) as producer:
        producer.create_topic("orders")
        clients = [RawClient(broker) for _ in range(20)]
        wanted = fetch_request("orders", 0, max_wait_ms=60_000, min_bytes=10**6)
        for client in clients:
            client.send_long_poll("orders", 0)
        for client in clients:
            client.send(ApiKey.FETCH, 12, wanted)
        eventually(lambda: fetches_waiting(broker) == 40)
        for client in clients:
            client.socket.close()
        eventually(lambda: fetches_waiting(broker) == 0)
        assert producer.produce("orders").base_offset == 0


def test_a_task_that_waits_for_an_answer_asks_until_there_is_one() -> None:
    async def main() -> None:
        response, wait = FetchResponse(), Wait(LoopTurn(), NOT_YET, NOT_YET)
        wait._outcomes.append(response)
        waiting = asyncio.ensure_future(wait.answer())
        for asked in range(1, 4):
            await loop_turns()
            assert wait.asked == asked - 1, "not before it is worth while"
            wait.poll_soon()
            wait.poll_soon()
            await loop_turns(3)
            assert wait.asked == asked
        assert await waiting is response
        assert wait.dropped == 1

    run(main)


def test_a_task_that_is_given_up_ends_its_wait() -> None:
    async def main() -> None:
        for wait in (Wait(LoopTurn(), ValueError("a bug")), Wait(LoopTurn())):
            waiting = asyncio.ensure_future(wait.answer())
            await loop_turns()
            if wait._outcomes:
                wait.poll_soon()
            else:
                waiting.cancel()
            with pytest.raises((ValueError, asyncio.CancelledError)):
                await waiting
            assert wait.dropped == 1

    run(main)
