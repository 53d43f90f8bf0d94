"""The event-loop driver of a connection: with a real broker, and with brokers that misbehave."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from riverlog.broker.net.network import AsyncNetwork
from riverlog.client.core.connection import ClientLimits, RequestTooLarge
from riverlog.client.core.events import Outcome, Replied, Unanswered
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.peer_connection import PeerConnection, UnansweredError
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest
from tests.broker.raw_client import RawClient, one_record
from tests.client.scripted_broker import CLUSTER, Answer, cluster, scripted, versions


def run(main: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main

    asyncio.run(bounded())


def address_of(broker: Broker) -> Address:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Address(host, int(port))


async def opened(address: Address, timeout_s: float = 20, **options: Any) -> PeerConnection:
    connection = PeerConnection(AsyncNetwork(), address, client_id="peer", timeout_s=timeout_s, **options)
    await connection.open()
    return connection


def test_many_requests_on_the_way_are_answered_each_with_its_own_in_order() -> None:
    async def main() -> None:
        connection = await opened(address_of(broker))
        order: list[int] = []
        asked = []
        for number in range(40):
            key = CLUSTER if number % 2 else ApiKey.METADATA
            answer = connection.ask(
                key, DescribeClusterRequest() if number % 2 else MetadataRequest(topics=None)
            )
            answer.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
            asked.append(answer)
        assert connection.in_flight == 40
        assert asyncio.all_tasks() == {asyncio.current_task()}, "no request has a task"
        replies = await asyncio.gather(*asked)
        assert [type(each).__name__ for each in replies] == [
            "MetadataResponse",
            "DescribeClusterResponse",
        ] * 20
        assert order == list(range(40))
        assert connection.in_flight == 0
        connection.close()

    with Broker() as broker:
        run(main())


def test_a_large_reply_comes_in_pieces_and_is_whole() -> None:
    async def main() -> None:
        connection = await opened(address_of(broker))
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**25)
        topics = [FetchTopic(topic="t", partitions=[partition])]
        fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=2**25, topics=topics)
        asked = [connection.ask(ApiKey.FETCH, fetch, version_max=12) for _ in range(3)]
        asked.append(connection.ask(CLUSTER, DescribeClusterRequest()))
        *fetched, described = await asyncio.gather(*asked)
        for each in fetched:
            records = bytes(each.responses[0].partitions[0].records)
            assert [records.count(bytes([65 + n]) * 900_000) for n in range(8)] == [1] * 8
        assert described.cluster_id
        connection.close()

    with Broker() as broker, RawClient(broker) as client:
        client.create_topic("t")
        for number in range(8):
            client.produce("t", one_record(bytes([65 + number]) * 900_000))
        run(main())


def test_a_request_that_the_socket_does_not_take_at_once_goes_in_pieces() -> None:
    """The broker hears nothing until the loop turns, and the socket cannot hold all of it."""

    async def main() -> None:
        connection = await opened(address_of(broker))
        topics = [FetchTopic(topic=f"{'t' * 200}{n}", partitions=[]) for n in range(2_000)]
        fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=100, topics=topics)
        asked = [connection.ask(ApiKey.FETCH, fetch, version_max=12) for _ in range(40)]
        assert len(await asyncio.gather(*asked)) == 40
        connection.close()

    with Broker() as broker:
        run(main())


def test_a_broker_that_is_not_there_is_a_connection_refused() -> None:
    async def main() -> None:
        async with scripted() as (address, _):
            pass
        closed: list[str] = []
        connection = PeerConnection(
            AsyncNetwork(), address, client_id="peer", timeout_s=20, on_closed=closed.append
        )
        with pytest.raises(ConnectionRefusedError):
            await connection.open()
        assert connection.is_closed
        assert not closed, "it was never open"
        with pytest.raises(UnansweredError) as caught:
            await connection.ask(CLUSTER, DescribeClusterRequest())
        assert caught.value.outcome is Outcome.NOT_SENT

    run(main())


@pytest.mark.parametrize("answers", [(), (lambda _: b"",), (lambda _: struct.pack(">ii", -1, 1),)])
def test_an_opening_that_does_not_succeed_says_why(answers: tuple[Answer, ...]) -> None:
    async def main() -> None:
        async with scripted(*answers) as (address, _):
            with pytest.raises(ConnectionError, match=r"closed the connection|announced|no connection to"):
                await opened(address, timeout_s=20 if answers else 0.05)

    run(main())


def test_a_hang_up_within_a_reply_leaves_the_request_and_those_behind_it_without_one() -> None:
    async def main() -> None:
        closed: list[str] = []

        def cut(header: RequestHeader) -> bytes:
            loop.call_later(0.01, lambda: writers[0].transport.abort())
            return cluster(header)[:9]

        loop = asyncio.get_running_loop()
        async with scripted(versions, cluster, cut) as (address, writers):
            connection = await opened(address, on_closed=closed.append)
            asked = [connection.ask(CLUSTER, DescribeClusterRequest()) for _ in range(3)]
            assert (await asked[0]).cluster_id == "here"
            for each in asked[1:]:
                with pytest.raises(UnansweredError) as caught:
                    await each
                assert caught.value.outcome is Outcome.UNKNOWN
            assert len(closed) == 1
            assert connection.is_closed

    run(main())


def test_a_request_without_a_reply_in_time_ends_the_connection() -> None:
    async def main() -> None:
        async with scripted(versions, cluster, lambda _: None, lambda _: None) as (address, _):
            connection = await opened(address)
            assert (await connection.ask(CLUSTER, DescribeClusterRequest())).cluster_id == "here"
            patient = connection.ask(CLUSTER, DescribeClusterRequest())
            impatient = connection.ask(CLUSTER, DescribeClusterRequest(), timeout_s=0.05)
            for each in (patient, impatient):
                with pytest.raises(UnansweredError, match="did not answer in time") as caught:
                    await each
                assert caught.value.outcome is Outcome.UNKNOWN
            assert connection.is_closed

    run(main())


def test_the_one_timer_that_rings_for_an_answered_request_is_set_for_those_that_wait() -> None:
    async def main() -> None:
        async with scripted(versions, cluster, lambda _: None) as (address, _):
            connection = await opened(address)
            assert (await connection.ask(CLUSTER, DescribeClusterRequest())).cluster_id == "here"
            waiting = connection.ask(CLUSTER, DescribeClusterRequest(), timeout_s=3600)
            first_s = connection._timer.when_s
            assert first_s is not None
            assert first_s < asyncio.get_running_loop().time() + 100, "that of the first"
            connection._timer.cancel()
            connection._on_timer()
            then_s = connection._timer.when_s
            assert then_s is not None
            assert then_s > asyncio.get_running_loop().time() + 100
            assert not waiting.done()
            connection.close()
            await asyncio.gather(waiting, return_exceptions=True)

    run(main())


def test_closing_tells_everybody_once_and_at_once() -> None:
    async def main() -> None:
        closed: list[str] = []
        async with scripted(versions, lambda _: None) as (address, _):
            connection = await opened(address, on_closed=closed.append)
            answer = connection.ask(CLUSTER, DescribeClusterRequest())
            connection.close()
            connection.close()
            with pytest.raises(UnansweredError, match="closed here"):
                await answer
            assert not closed, "who closes it knows"

    run(main())


def test_closing_while_it_is_opened_ends_the_opening() -> None:
    async def main() -> None:
        async with scripted(lambda _: None) as (address, _):
            connection = PeerConnection(AsyncNetwork(), address, client_id="peer", timeout_s=20)
            opening = connection.open()
            connection.close()
            with pytest.raises(ConnectionError, match="closed here"):
                await opening

    run(main())


def test_a_cancelled_request_loses_its_reply_and_nothing_else() -> None:
    async def main() -> None:
        async with scripted(versions, cluster, lambda header: cluster(header, "there")) as (address, _):
            connection = await opened(address)
            cancelled = connection.ask(CLUSTER, DescribeClusterRequest())
            cancelled.cancel()
            assert (await connection.ask(CLUSTER, DescribeClusterRequest())).cluster_id == "there"
            connection.close()

    run(main())


def test_a_reply_that_cannot_be_read_ends_the_connection() -> None:
    async def main() -> None:
        def garbage(header: RequestHeader) -> bytes:
            return struct.pack(">ii", 6, header.correlation_id) + b"\0\xff"

        async with scripted(versions, garbage) as (address, _):
            connection = await opened(address)
            with pytest.raises(MalformedMessage):
                await connection.ask(CLUSTER, DescribeClusterRequest())
            assert connection.is_closed

    run(main())


def test_what_cannot_be_sent_is_refused_and_the_connection_goes_on() -> None:
    async def main() -> None:
        async with scripted(versions, cluster) as (address, _):
            limits = ClientLimits(request_bytes_max=500, in_flight_max=1)
            connection = await opened(address, limits=limits)
            with pytest.raises(UnsupportedApiError):
                connection.ask(ApiKey.METADATA, MetadataRequest())
            with pytest.raises(RequestTooLarge):
                connection.request_pieces(CLUSTER, 0, lambda _: [bytes(1000)], lambda _: None)
            answer = connection.ask(CLUSTER, DescribeClusterRequest())
            assert [connection.has_room, (await answer).cluster_id, connection.has_room] == [
                False,
                "here",
                True,
            ]
            connection.close()

    run(main())


def test_callbacks_hear_their_outcomes_in_order_even_when_one_of_them_ends_the_connection() -> None:
    async def main() -> None:
        told: list[object] = []
        done = asyncio.Event()

        def note(name: str) -> Callable[[Replied[Any] | Unanswered[Any]], None]:
            def on_outcome(outcome: Replied[Any] | Unanswered[Any]) -> None:
                told.append((name, type(outcome).__name__))
                if name == "first":
                    connection.close()
                if name == "last":
                    done.set()

            return on_outcome

        both: list[bytes] = []

        def hold(header: RequestHeader) -> None:
            both.append(cluster(header))

        def release(header: RequestHeader) -> bytes:
            return both[0] + cluster(header)

        async with scripted(versions, hold, release, lambda _: None) as (address, _):
            connection = await opened(address)
            for name in ("first", "second", "last"):
                connection.request_pieces(
                    CLUSTER, 0, lambda header: [encode_request(header, DescribeClusterRequest())], note(name)
                )
            await done.wait()
        assert told == [("first", "Replied"), ("second", "Replied"), ("last", "Unanswered")]

    run(main())
