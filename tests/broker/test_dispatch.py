"""Header, version, body: what is answered, what closes the connection, and that the broker outlives it."""

import asyncio
import struct
from typing import Any

import pytest

from riverlog.broker.dispatch.dispatcher import Dispatcher
from riverlog.broker.dispatch.door import OpenDoor
from riverlog.broker.dispatch.route import AnyRoute, Handler, route
from riverlog.broker.exchange.context import HangUp, InOrder, RequestContext
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.handlers.api_versions import ApiVersionsHandler
from riverlog.broker.net.connection import Later
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import NoMetrics
from riverlog.model.network import Address
from riverlog.model.rights import NO_RIGHTS
from riverlog.testing import Broker
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from riverlog.wire.messages.produce import ProduceRequest
from riverlog.wire.schema import Message
from tests.broker.raw_client import RawClient

SERVED = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
}
"""What Apache Kafka 4.3.1 advertises, of what a single node needs at least; InitProducerId 6 is KIP-939."""


def framed(key: int, version: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    head = struct.pack(">hhih", key, version, 7, 1) + b"x" + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head + body)) + head + body


@pytest.mark.parametrize("version", range(5))
def test_the_served_apis_are_advertised_with_kafkas_ranges(riverlog_broker: Broker, version: int) -> None:
    with RawClient(riverlog_broker) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        reply: ApiVersionsResponse = client.ask(ApiKey.API_VERSIONS, version, request)
        assert reply.error_code == ErrorCode.NONE
        advertised = {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}
        assert SERVED.items() <= advertised.items()
        assert list(advertised) == sorted(advertised)


@pytest.mark.parametrize("version", [5, 99, -1, 32767])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(
    riverlog_broker: Broker, version: int
) -> None:
    with RawClient(riverlog_broker) as client:
        client.socket.sendall(framed(ApiKey.API_VERSIONS, version, b"whatever", flexible=version > 2))
        frame = client.receive_frame()
        assert frame == struct.pack(">ihihhh", 7, ErrorCode.UNSUPPORTED_VERSION, 1, ApiKey.API_VERSIONS, 0, 4)


@pytest.mark.parametrize("name", ["", "with space", "-dash", "dash-", "ünïcode"])
def test_a_client_must_name_its_software_properly(riverlog_broker: Broker, name: str) -> None:
    with RawClient(riverlog_broker) as client:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
        reply = client.ask(ApiKey.API_VERSIONS, 3, request)
        assert (reply.error_code, reply.api_keys) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    "bad",
    [
        framed(999, 0),
        framed(-1, 0),
        framed(ApiKey.JOIN_GROUP + 500, 0),
        framed(52, 0),
        framed(ApiKey.METADATA, 99, flexible=True),
        framed(ApiKey.METADATA, -1),
        framed(ApiKey.PRODUCE, 14, flexible=True),
        framed(ApiKey.FETCH, 3, struct.pack(">iii", -1, 0, 0)),
        framed(ApiKey.METADATA, 1, struct.pack(">i", 2**31 - 1)),
        framed(ApiKey.METADATA, 1, struct.pack(">ih", 1, 30_000)),
        framed(
            ApiKey.PRODUCE, 9, b"\0" + struct.pack(">hi", 1, 1000) + b"\xff\xff\xff\xff\x0f", flexible=True
        ),
        framed(ApiKey.FETCH, 12, b"", flexible=True),
        framed(ApiKey.LIST_OFFSETS, 2, b"\0\0"),
        struct.pack(">i", 0),
        struct.pack(">i", -5),
        struct.pack(">i", 104_857_601),
        struct.pack(">i", 3) + b"abc",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_bytes_that_mean_nothing_close_the_connection_and_harm_nobody(
    riverlog_broker: Broker, bad: bytes
) -> None:
    with RawClient(riverlog_broker) as other, RawClient(riverlog_broker) as client:
        client.socket.sendall(bad)
        assert client.is_closed()
        assert other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE


def test_bytes_after_a_request_are_ignored_as_kafka_does(riverlog_broker: Broker) -> None:
    with RawClient(riverlog_broker) as client:
        client.socket.sendall(framed(ApiKey.API_VERSIONS, 0, b"left over"))
        frame = client.receive_frame()
        assert struct.unpack_from(">ih", frame) == (7, ErrorCode.NONE)


class Fixed:
    def __init__(self, outcome: object) -> None:
        self._outcome = outcome

    def handle(self, request: object, context: RequestContext) -> Any:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class StoppedClock:
    def wall_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return 0.0


ORIGIN = Origin(Address("127.0.0.1", 1), "PLAINTEXT")


def dispatcher_of(*routes: AnyRoute) -> Dispatcher:
    table = {int(each.api.key): each for each in routes}
    return Dispatcher(table, OpenDoor(routes, NoMetrics()), StoppedClock(), NoMetrics())


def dispatch(key: ApiKey, version: int, request: Message, handler: Handler[Any, Any]) -> object:
    frame = bytearray(encode_request(RequestHeader(key, version, 7, None), request))
    dispatcher = dispatcher_of(route(type(request), handler, NO_RIGHTS))
    return dispatcher.dispatch(memoryview(frame)[4:], ORIGIN)


def test_a_bug_in_a_handler_becomes_unknown_server_error(caplog: pytest.LogCaptureFixture) -> None:
    answer = dispatch(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), Fixed(ZeroDivisionError()))
    assert isinstance(answer, list)
    reply, _ = decode(DescribeClusterResponse, 0, answer[0], 4 + 4 + 1)
    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "ZeroDivisionError" in caplog.text


def test_a_bug_in_produce_closes_the_connection_instead(caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(dispatch(ApiKey.PRODUCE, 9, ProduceRequest(), Fixed(KeyError("x"))), HangUp)
    assert "KeyError" in caplog.text


def test_a_handler_may_have_no_reply() -> None:
    assert dispatch(ApiKey.PRODUCE, 9, ProduceRequest(), Fixed(None)) is None


def test_a_handler_can_forbid_that_its_request_is_overtaken() -> None:
    async def main() -> None:
        for wrap, may_be_overtaken in ((lambda answer: answer, True), (InOrder, False)):
            answer = asyncio.get_running_loop().create_future()
            handler = Fixed(wrap(answer))
            frame = bytearray(encode_request(RequestHeader(ApiKey.PRODUCE, 9, 7, None), ProduceRequest()))
            dispatcher = dispatcher_of(route(ProduceRequest, handler, NO_RIGHTS, may_be_overtaken=True))
            later = dispatcher.dispatch(memoryview(frame)[4:], ORIGIN)
            assert isinstance(later, Later)
            assert later.may_be_overtaken is may_be_overtaken
            answer.set_result(None)
            assert isinstance(later.answer, asyncio.Future)
            assert await later.answer is None

    asyncio.run(main())


def test_only_what_is_routed_is_advertised() -> None:
    handler = ApiVersionsHandler([APIS[ApiKey.FETCH]], ClusterImage)
    context = RequestContext(RequestHeader(18, 0, 1, None), ORIGIN)
    reply = handler.handle(ApiVersionsRequest(), context)
    assert [each.api_key for each in reply.api_keys] == [ApiKey.FETCH, ApiKey.API_VERSIONS]


def test_a_log_of_complaints_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = dispatcher_of()
    for _ in range(1000):
        assert isinstance(dispatcher.dispatch(memoryview(framed(1, 0)[4:]), ORIGIN), HangUp)
    assert len(caplog.records) < 10
    assert not isinstance(dispatcher, Later)
