"""Answers that come later without a task: asked at the right time, once, and given up in every case."""

import asyncio
from collections.abc import Callable

import pytest

from riverlog.broker.connection import Later, Origin
from riverlog.broker.context import Answer, RequestContext
from riverlog.broker.dispatch import Dispatcher
from riverlog.broker.postponed import NOT_YET, Postponed, Promise
from riverlog.broker.route import route
from riverlog.broker.turn import Turn
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import NoMetrics
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.fetch import FetchRequest, FetchResponse
from tests.broker.raw_client import RawClient, fetch_request, fetches_waiting, produce_request
from tests.broker.sockets import run
from tests.broker.test_dispatch import StoppedClock
from tests.waiting import eventually


class Wait(Postponed):
    """Gives these, one after the other, each time that it is asked."""

    def __init__(self, turn: Turn, *outcomes: object) -> None:
        super().__init__(turn)
        self._outcomes = list(outcomes)
        self.asked = self.dropped = 0

    def handle(self, request: object, context: RequestContext) -> object:
        return self

    def make(self) -> object:
        self.asked += 1
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def drop(self) -> None:
        self.dropped += 1


def promised(wait: Wait) -> tuple[Promise, list[Answer]]:
    """What the dispatcher makes of it, and the answers as they come."""
    frame = bytearray(encode_request(RequestHeader(ApiKey.FETCH, 12, 7, None), FetchRequest()))
    table = {int(ApiKey.FETCH): route(ApiKey.FETCH, wait, may_be_overtaken=True)}
    dispatcher = Dispatcher(table, StoppedClock(), NoMetrics())
    later = dispatcher.dispatch(memoryview(frame)[4:], Origin(Address("127.0.0.1", 1), "PLAINTEXT"))
    assert isinstance(later, Later)
    assert isinstance(later.answer, Promise)
    assert later.may_be_overtaken
    answers: list[Answer] = []
    later.answer.add_done_callback(lambda promise: answers.append(promise.result()))
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
            await asyncio.sleep(0)

    run(main)


def test_it_is_asked_once_for_all_that_came_in_a_turn_and_answers_at_once() -> None:
    wait = Wait(Turn(), NOT_YET, [b"reply"])
    promise, answers = promised(wait)

    def first() -> None:
        wait.ask_soon()
        wait.ask_soon()
        assert wait.asked == 0

    def second() -> None:
        assert (wait.asked, wait.dropped, answers) == (1, 0, [])
        wait.ask_soon()

    def third() -> None:
        assert (wait.asked, wait.dropped, answers) == (2, 1, [[b"reply"]])
        assert promise.done()
        wait.ask_soon()  # As a partition may that is just telling all of its readers.

    def fourth() -> None:
        assert (wait.asked, wait.dropped, answers) == (2, 1, [[b"reply"]])
        promise.cancel()
        assert wait.dropped == 1

    in_loop(first, second, third, fourth)


def test_a_response_is_encoded_by_its_route() -> None:
    turn = Turn()
    wait = Wait(turn, FetchResponse(session_id=5))
    _, answers = promised(wait)

    def check() -> None:
        wait.ask_soon()
        turn.ask()  # Sooner than in the next turn, as before the reply to whoever brought the records.
        response = decoded(answers)
        assert response.session_id == 5

    in_loop(check)


def test_a_bug_becomes_an_error_and_ends_the_wait(caplog: pytest.LogCaptureFixture) -> None:
    wait = Wait(Turn(), ZeroDivisionError())
    _, answers = promised(wait)

    def check() -> None:
        response = decoded(answers)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert wait.dropped == 1
        assert "ZeroDivisionError" in caplog.text

    in_loop(wait.ask_soon, check)


def test_whoever_leaves_is_not_asked_any_more() -> None:
    wait = Wait(Turn())
    promise, answers = promised(wait)

    def leave() -> None:
        wait.ask_soon()
        promise.cancel()
        promise.cancel()

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
