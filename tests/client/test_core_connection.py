"""The core of a connection driven by hand: bytes in any pieces, replies in any company, every end."""

import struct
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.client.core.connection import (
    ClientLimits,
    ConnectionCore,
    LoginRefused,
    LoginStep,
    RequestTooLarge,
)
from riverlog.client.core.events import Closed, Event, Opened, Outcome, Replied, Unanswered
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, decode_request_header, encode_response
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.list_groups import ListGroupsRequest

SERVED = {ApiKey.DESCRIBE_CLUSTER: (0, 1), ApiKey.FIND_COORDINATOR: (2, 4), ApiKey.LIST_GROUPS: (90, 99)}


def versions_reply(correlation_id: int = 1, error_code: int = 0) -> bytes:
    keys = [
        ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in SERVED.items()
    ]
    reply = ApiVersionsResponse(api_keys=keys, error_code=error_code)
    return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, reply)


def cluster_reply(correlation_id: int, cluster_id: str = "here") -> bytes:
    return encode_response(
        ApiKey.DESCRIBE_CLUSTER, 1, correlation_id, DescribeClusterResponse(cluster_id=cluster_id)
    )


def headers_of(stream: bytes) -> list[RequestHeader]:
    """Of the whole requests in the stream, as a broker would read them."""
    found = []
    while stream:
        size = int.from_bytes(stream[:4])
        found.append(decode_request_header(stream[4 : 4 + size])[0])
        stream = stream[4 + size :]
    return found


def taken(core: ConnectionCore[Any]) -> bytes:
    """Everything that there is to send, sent."""
    out = b""
    while pieces := core.to_send():
        out += b"".join(pieces)
        core.sent(sum(map(len, pieces)))
    return out


def opened(limits: ClientLimits | None = None) -> ConnectionCore[str]:
    core: ConnectionCore[str] = ConnectionCore("me", limits=limits or ClientLimits())
    core.start()
    taken(core)
    [event] = core.receive(versions_reply())
    assert isinstance(event, Opened)
    return core


def ask(core: ConnectionCore[str], tag: str) -> int:
    return core.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), tag).correlation_id


def told(events: list[Event[str]]) -> list[object]:
    """What a driver would tell those who asked."""
    plain: list[object] = []
    for event in events:
        match event:
            case Replied():
                plain.append((event.request.tag, event.message().cluster_id))
            case Unanswered():
                plain.append((event.request.tag, event.outcome))
            case Closed():
                plain.append(event.reason)
            case Opened():
                plain.append("opened")
    return plain


def test_nothing_is_asked_before_the_versions_are_known() -> None:
    core: ConnectionCore[str] = ConnectionCore("me")
    assert core.to_send() == []
    core.start()
    assert headers_of(taken(core)) == [(ApiKey.API_VERSIONS, 0, 1, "me")]
    assert not core.has_room
    assert told(core.receive(versions_reply())) == ["opened"]
    assert core.has_room


def test_requests_go_out_in_the_newest_version_of_both_sides_with_ids_of_their_own() -> None:
    core = opened()
    ask(core, "a")
    core.request(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), "b", version_max=3)
    ask(core, "c")
    assert headers_of(taken(core)) == [
        (ApiKey.DESCRIBE_CLUSTER, 1, 2, "me"),
        (ApiKey.FIND_COORDINATOR, 3, 3, "me"),
        (ApiKey.DESCRIBE_CLUSTER, 1, 4, "me"),
    ]
    found = FindCoordinatorResponse(host="there", port=1)
    replies = cluster_reply(2, "x") + encode_response(ApiKey.FIND_COORDINATOR, 3, 3, found) + cluster_reply(4)
    events = core.receive(replies)
    assert [each.request.tag for each in events if isinstance(each, Replied)] == ["a", "b", "c"]
    assert isinstance(events[1], Replied)
    assert events[1].message().host == "there"


@pytest.mark.parametrize(
    ("key", "request_"),
    [(ApiKey.LIST_GROUPS, ListGroupsRequest()), (ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"))],
)
def test_what_is_not_served_is_not_sent_and_costs_no_reply(key: ApiKey, request_: Any) -> None:
    core = opened()
    with pytest.raises(UnsupportedApiError):
        core.request(key, request_, "a", version_max=1)
    assert core.to_send() == []
    assert told(core.receive(cluster_reply(ask(core, "b")))) == [("b", "here")]


@given(st.data())
def test_replies_are_the_same_however_the_bytes_are_cut(data: st.DataObject) -> None:
    """Small replies, and one that is larger than what is received before its size is known."""
    core: ConnectionCore[str] = ConnectionCore("me")
    core.start()
    names = ["a", "b" * 6000, "c", "d" * 300]
    stream = versions_reply()
    events = _in_pieces(core, stream, data)
    ids = [ask(core, name[0]) for name in names]
    stream = b"".join(cluster_reply(number, name) for number, name in zip(ids, names, strict=True))
    events += _in_pieces(core, stream, data)
    assert told(events) == ["opened", *((name[0], name) for name in names)]
    assert core.in_flight == 0


def _in_pieces(core: ConnectionCore[str], stream: bytes, data: st.DataObject) -> list[Event[str]]:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    events: list[Event[str]] = []
    for piece in pieces:
        if data.draw(st.booleans()):
            events += core.receive(piece)
            continue
        rest = memoryview(piece)
        while rest:
            room = core.room()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            events += core.received(count)
            rest = rest[count:]
    return events


def test_every_byte_may_come_alone() -> None:
    core = opened()
    stream = cluster_reply(ask(core, "a"), "x") + cluster_reply(ask(core, "b"), "y")
    events = [event for byte in stream for event in core.receive(bytes([byte]))]
    assert told(events) == [("a", "x"), ("b", "y")]


def test_a_stream_may_be_cut_in_two_anywhere() -> None:
    """Within a size too, whose bytes are not all the same."""
    for cut in range(len(cluster_reply(2, "x") + cluster_reply(3, "y" * 700))):
        core = opened()
        stream = cluster_reply(ask(core, "a"), "x") + cluster_reply(ask(core, "b"), "y" * 700)
        assert told(core.receive(stream[:cut]) + core.receive(stream[cut:])) == [("a", "x"), ("b", "y" * 700)]


def test_a_reply_stays_as_it_is_when_others_follow() -> None:
    core = opened()
    ids = [ask(core, "a"), ask(core, "b")]
    [first] = core.receive(cluster_reply(ids[0], "x" * 500))
    core.receive(cluster_reply(ids[1], "y" * 500))
    assert told([first]) == [("a", "x" * 500)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_what_is_sent_in_pieces_is_one_stream(counts: list[int]) -> None:
    core = opened()
    asked = [ask(core, "a"), ask(core, "b"), ask(core, "c")]
    out = b""
    for count in counts:
        rest = b"".join(core.to_send())
        out += rest[:count]
        core.sent(min(count, len(rest)))
    out += taken(core)
    assert [header.correlation_id for header in headers_of(out)] == asked


def test_pieces_are_sent_as_they_lie_in_memory() -> None:
    core = opened()
    large = bytearray(100_000)
    core.request_pieces(ApiKey.PRODUCE, 9, "a", lambda header: [b"head", large, b"tail"])
    assert [piece.obj is large for piece in core.to_send()] == [False, True, False]


def test_more_pieces_than_a_system_call_takes_are_sent_in_turns() -> None:
    core = opened()
    core.request_pieces(ApiKey.PRODUCE, 9, "a", lambda header: [b"%4d" % n for n in range(2000)])
    assert len(core.to_send()) < 1024
    assert taken(core) == b"".join(b"%4d" % n for n in range(2000))


def test_a_connection_that_is_lost_tells_each_request_its_outcome() -> None:
    core = opened()
    first = ask(core, "answered")
    ask(core, "sent")
    taken(core)
    ask(core, "sent to the last byte")
    core.sent(sum(map(len, core.to_send())))
    ask(core, "sent but for a byte")
    core.sent(sum(map(len, core.to_send())) - 1)
    ask(core, "waiting")
    assert told(core.receive(cluster_reply(first))) == [("answered", "here")]
    assert told(core.lost("the cable is cut")) == [
        ("sent", Outcome.UNKNOWN),
        ("sent to the last byte", Outcome.UNKNOWN),
        ("sent but for a byte", Outcome.NOT_SENT),
        ("waiting", Outcome.NOT_SENT),
        "the cable is cut",
    ]
    assert core.lost("again") == []
    assert core.receive(cluster_reply(first + 1)) == []
    assert core.to_send() == []


def test_the_end_of_the_stream_is_a_lost_connection() -> None:
    core = opened()
    ask(core, "a")
    taken(core)
    core.receive(cluster_reply(2)[:7])
    assert told(core.received(0)) == [("a", Outcome.UNKNOWN), "the broker closed the connection"]


@pytest.mark.parametrize("size", [-1, 0, 3, 1001, 2**31 - 1])
def test_a_frame_of_a_size_that_cannot_be_ends_the_connection_before_memory_is_taken(size: int) -> None:
    core = opened(ClientLimits(reply_bytes_max=1000))
    first = ask(core, "a")
    ask(core, "b")
    taken(core)
    events = core.receive(cluster_reply(first) + struct.pack(">i", size) + b"rest")
    assert told(events) == [
        ("a", "here"),
        ("b", Outcome.UNKNOWN),
        f"the broker announced an answer of {size} bytes",
    ]
    assert not core.has_room


def test_the_largest_frame_that_may_be_is_taken() -> None:
    reply = cluster_reply(2, "x" * 900)
    core = opened(ClientLimits(reply_bytes_max=len(reply) - 4))
    ask(core, "a")
    assert told(core.receive(reply)) == [("a", "x" * 900)]


@pytest.mark.parametrize("answered", [3, 1, -7])
def test_a_reply_to_anything_but_the_oldest_request_ends_the_connection(answered: int) -> None:
    core = opened()
    assert [ask(core, "a"), ask(core, "b")] == [2, 3]
    taken(core)
    assert told(core.receive(cluster_reply(answered))) == [
        ("a", Outcome.UNKNOWN),
        ("b", Outcome.UNKNOWN),
        "the broker answered something that was not asked",
    ]


def test_a_reply_that_nobody_asked_for_ends_the_connection() -> None:
    core = opened()
    assert told(core.receive(cluster_reply(2))) == ["the broker answered something that was not asked"]


@pytest.mark.parametrize("reply", [versions_reply(2), versions_reply(1, 35), b"\0\0\0\5\0\0\0\1\xff"])
def test_a_broker_that_does_not_tell_its_versions_is_of_no_use(reply: bytes) -> None:
    core: ConnectionCore[str] = ConnectionCore("me")
    core.start()
    taken(core)
    [event] = core.receive(reply)
    assert isinstance(event, Closed)


def test_requests_are_bounded_in_number_and_size() -> None:
    core = opened(ClientLimits(in_flight_max=2, request_bytes_max=200))
    with pytest.raises(RequestTooLarge, match="at most 200 can"):
        core.request_pieces(ApiKey.PRODUCE, 9, "large", lambda header: [bytes(205)])
    core.request_pieces(ApiKey.PRODUCE, 9, "as large as can be", lambda header: [bytes(204)])
    second = ask(core, "b")
    assert second == 3, "what was not sent has used no number"
    assert core.in_flight == 2
    assert not core.has_room


@dataclass
class Password:
    """A login in two steps; what it sends does not matter to the core."""

    refuses: bool = False
    seen: list[Any] = field(default_factory=list)

    def step(self, reply: Any | None) -> LoginStep | None:
        self.seen.append(reply)
        if self.refuses and len(self.seen) == 2:
            raise LoginRefused("the password is wrong")
        return LoginStep(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()) if len(self.seen) < 3 else None


def test_a_login_comes_between_the_versions_and_the_first_request() -> None:
    login = Password()
    core: ConnectionCore[str] = ConnectionCore("me", login=login)
    core.start()
    taken(core)
    assert core.receive(versions_reply()) == []
    assert headers_of(taken(core)) == [(ApiKey.DESCRIBE_CLUSTER, 1, 2, "me")]
    assert core.receive(cluster_reply(2, "challenge")) == []
    assert not core.has_room
    assert headers_of(taken(core)) == [(ApiKey.DESCRIBE_CLUSTER, 1, 3, "me")]
    assert told(core.receive(cluster_reply(3, "welcome"))) == ["opened"]
    assert login.seen[0] is None
    assert [each.cluster_id for each in login.seen[1:]] == ["challenge", "welcome"]
    assert told(core.receive(cluster_reply(ask(core, "a")))) == [("a", "here")]


def test_a_login_that_is_refused_ends_the_connection() -> None:
    core: ConnectionCore[str] = ConnectionCore("me", login=Password(refuses=True))
    core.start()
    core.receive(versions_reply())
    assert told(core.receive(cluster_reply(2))) == ["the password is wrong"]
    assert not core.has_room


def test_a_login_by_an_api_that_is_not_served_ends_the_connection() -> None:
    class Old:
        def step(self, reply: Any | None) -> LoginStep | None:
            return LoginStep(ApiKey.LIST_GROUPS, ListGroupsRequest())

    core: ConnectionCore[str] = ConnectionCore("me", login=Old())
    core.start()
    [event] = core.receive(versions_reply())
    assert isinstance(event, Closed)
    assert "ListGroups" in event.reason


def test_the_error_of_a_reply_is_for_who_asked() -> None:
    core = opened()
    reply = DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    [event] = core.receive(encode_response(ApiKey.DESCRIBE_CLUSTER, 1, ask(core, "a"), reply))
    assert isinstance(event, Replied)
    assert event.message().error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert core.has_room
