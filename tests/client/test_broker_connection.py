"""One blocking connection to a broker, and to things that only look like one."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from riverlog.client.broker_connection import BrokerConnection, Transport
from riverlog.client.core.events import Outcome, Replied, Unanswered
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import encode_response
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from riverlog.wire.schema import Message


def connected(address: Address, timeout_s: float = 10) -> BrokerConnection:
    return BrokerConnection(address, timeout_s=timeout_s, client_id="test")


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield Address(host, int(port))


def test_questions_are_answered_one_after_the_other(address: Address) -> None:
    with connected(address) as broker:
        for _ in range(3):
            described = broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
            assert [(each.host, each.port) for each in described.brokers] == [address]
        assert broker.ask(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest()).error_code == ErrorCode.NONE


def test_a_version_can_be_held_down(address: Address) -> None:
    request = FindCoordinatorRequest(key="somebody", key_type=1)
    with connected(address) as broker:
        old = broker.ask(ApiKey.FIND_COORDINATOR, request, version_max=3)
        assert old.coordinators == []


def test_an_api_that_the_broker_does_not_serve_is_not_asked(address: Address) -> None:
    with connected(address) as broker, pytest.raises(UnsupportedApiError, match="DescribeQuorum"):
        broker.ask(ApiKey.DESCRIBE_QUORUM, Message())


@contextmanager
def pretending(*answers: bytes) -> Iterator[Address]:
    """Something that answers each request with the next of these bytes, and then hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        link, _ = listening.accept()
        with link:
            for answer in answers:
                link.recv(1 << 16)
                link.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield Address(*listening.getsockname())
    finally:
        thread.join(10)
        listening.close()


def served(correlation_id: int, *ranges: tuple[ApiKey, int, int]) -> bytes:
    keys = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, first, last in ranges]
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, ApiVersionsResponse(api_keys=keys))


ALL_OF_DESCRIBE_CLUSTER = served(1, (ApiKey.DESCRIBE_CLUSTER, 0, 2))


@pytest.mark.parametrize(
    "make_answers",
    [
        lambda: [b""],
        lambda: [b"\x00\x00"],
        lambda: [struct.pack(">i", -1)],
        lambda: [struct.pack(">i", 2**31 - 1)],
        lambda: [served(7)],
        lambda: [ALL_OF_DESCRIBE_CLUSTER],
    ],
    ids=["nothing", "half a size", "negative size", "huge size", "another's answer", "one answer of two"],
)
def test_what_is_no_answer_is_a_failed_connection(make_answers: Callable[[], list[bytes]]) -> None:
    with (
        pretending(*make_answers()) as address,
        connected(address) as broker,
        pytest.raises(ConnectionError),
    ):
        broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())


def test_an_answer_that_cannot_be_read_is_malformed() -> None:
    garbage = struct.pack(">iib", 5, 2, 0)
    with (
        pretending(ALL_OF_DESCRIBE_CLUSTER, garbage) as address,
        connected(address) as broker,
        pytest.raises(MalformedMessage),
    ):
        broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())


def test_a_reply_that_comes_too_late_is_not_taken_for_the_next_one() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        connected(Address(*listening.getsockname()), timeout_s=0.3) as broker,
        listening.accept()[0] as link,
    ):
        link.sendall(ALL_OF_DESCRIBE_CLUSTER)
        with pytest.raises(TimeoutError):
            broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
        late = DescribeClusterResponse(cluster_id="late")
        link.sendall(encode_response(ApiKey.DESCRIBE_CLUSTER, 2, 2, late))
        with pytest.raises(ConnectionError, match="lost before"):
            broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())


def test_replies_that_came_before_the_end_are_told_with_the_requests_that_have_none() -> None:
    replies = b"".join(
        encode_response(ApiKey.DESCRIBE_CLUSTER, 2, number, DescribeClusterResponse(cluster_id=f"{number}"))
        for number in (2, 3)
    )
    with pretending(ALL_OF_DESCRIBE_CLUSTER, replies) as address:
        transport: Transport[str] = Transport(address, timeout_s=10, client_id="test")
        transport.open()
        for tag in ("a", "b", "c"):
            transport.core.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), tag)
        transport.send()
        assert transport.next_reply().request.tag == "a"
        assert transport.outstanding == 2
        answered, unanswered = transport.close()
        assert isinstance(answered, Replied)
        assert (answered.request.tag, answered.message().cluster_id) == ("b", "3")
        assert isinstance(unanswered, Unanswered)
        assert (unanswered.request.tag, unanswered.outcome) == ("c", Outcome.UNKNOWN)
        assert transport.outstanding == 0
        assert transport.close() == []


def test_silence_ends_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        connected(Address(*listening.getsockname()), timeout_s=0.2) as broker,
        pytest.raises(TimeoutError),
    ):
        broker.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
