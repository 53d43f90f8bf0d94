"""Faults by request, seen by a client that sends exactly what the test says."""

import socket
from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.testing import Asked, Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.produce import ProduceResponse
from tests.broker.raw_client import RawClient, fetch_request, produce_request

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("other")
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def is_refused(broker: Broker) -> bool:
    """A reset may come while the client still connects."""
    try:
        with RawClient(broker) as refused:
            return refused.is_closed()
    except ConnectionResetError:
        return True


def values(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    return [each.value for each in broker.consume(topic)]


def test_an_error_is_answered_so_many_times_and_nothing_is_done(broker: Broker, client: RawClient) -> None:
    before = values(broker)
    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", times=2, topic="orders") as fault:
        assert [client.produce("orders").error_code for _ in range(2)] == [NOT_LEADER] * 2
        assert values(broker) == before
        assert client.produce("orders").error_code == ErrorCode.NONE
    assert fault.hits == 2
    assert len(values(broker)) == len(before) + 1


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_a_request_is_found_whichever_way_it_would_take(broker: Broker, version: int) -> None:
    """The short way of one batch, and that of repetitions, which are neither decoded nor looked up."""
    topic_id = broker.node.image.topics["orders"].topic_id
    with RawClient(broker) as client:
        request = produce_request("orders", None)
        request.topic_data[0].topic_id = topic_id

        def ask() -> int:
            reply: ProduceResponse = client.ask(ApiKey.PRODUCE, version, request)
            return reply.responses[0].partition_responses[0].error_code

        assert [ask() for _ in range(4)] == [ErrorCode.NONE] * 4
        with broker.faults.error("Produce", NOT_LEADER, topic="orders") as fault:
            assert ask() == NOT_LEADER
        assert (ask(), fault.hits) == (ErrorCode.NONE, 1)


def test_other_topics_clients_and_apis_are_left_alone(broker: Broker, client: RawClient) -> None:
    with (
        broker.faults.error("Produce", NOT_LEADER, topic="orders") as by_topic,
        broker.faults.error("Fetch", NOT_LEADER, client_id="another") as by_client,
        broker.faults.error("Metadata", ErrorCode.LEADER_NOT_AVAILABLE, when=lambda _: False) as by_predicate,
    ):
        assert client.produce("other").error_code == ErrorCode.NONE
        assert client.fetch("orders", 0).error_code == ErrorCode.NONE
        assert client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None)).topics[0].error_code == 0
    assert (by_topic.hits, by_client.hits, by_predicate.hits) == (0, 0, 0)


def test_a_predicate_sees_the_whole_request(broker: Broker, client: RawClient) -> None:
    seen: list[Asked] = []

    def when(asked: Asked) -> bool:
        seen.append(asked)
        return True

    with broker.faults.error("Produce", NOT_LEADER, when=when):
        assert client.produce("orders", version=12).error_code == NOT_LEADER
    [asked] = seen
    assert (asked.api, asked.version, asked.client_id, asked.topics) == (
        "Produce",
        12,
        "raw",
        frozenset({"orders"}),
    )


def test_a_predicate_that_fails_is_told_to_the_test_and_hurts_nobody(
    broker: Broker, client: RawClient
) -> None:
    def when(asked: Asked) -> bool:
        raise ZeroDivisionError

    with pytest.raises(RiverlogError, match="ZeroDivisionError"), broker.faults.disconnect(when=when):
        assert client.produce("orders").error_code == ErrorCode.NONE


def test_metadata_with_an_error_still_names_the_brokers(broker: Broker, client: RawClient) -> None:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    with broker.faults.error("Metadata", "LEADER_NOT_AVAILABLE", topic="new"):
        reply: MetadataResponse = client.ask(ApiKey.METADATA, 12, wanted)
    assert [(each.name, each.error_code) for each in reply.topics] == [
        ("new", ErrorCode.LEADER_NOT_AVAILABLE)
    ]
    assert len(reply.brokers) == 1
    assert "new" not in broker.node.image.topics


def test_a_fetch_in_a_session_begins_anew_so_that_its_topics_are_known(
    broker: Broker, client: RawClient
) -> None:
    full = fetch_request("orders", 0, session_id=0, session_epoch=0)
    session_id = client.ask(ApiKey.FETCH, 12, full).session_id
    assert session_id
    with broker.faults.error("Fetch", NOT_LEADER, topic="orders", times=1):
        reply: FetchResponse = client.ask(
            ApiKey.FETCH, 12, FetchRequest(session_id=session_id, session_epoch=1, topics=[])
        )
        assert reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        reply = client.ask(ApiKey.FETCH, 12, full)
        assert reply.responses[0].partitions[0].error_code == NOT_LEADER


def test_topics_that_go_by_their_id_are_found_by_name(broker: Broker, client: RawClient) -> None:
    topic_id = broker.node.image.topics["orders"].topic_id
    wanted = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])
    with broker.faults.error("Fetch", NOT_LEADER, topic="orders"):
        reply: FetchResponse = client.ask(ApiKey.FETCH, 17, FetchRequest(topics=[wanted]))
    assert reply.responses[0].topic_id == topic_id
    assert reply.responses[0].partitions[0].error_code == NOT_LEADER


def test_a_delayed_request_is_let_in_later_and_those_behind_it_wait(
    broker: Broker, client: RawClient
) -> None:
    before = values(broker)
    with broker.faults.delay("Produce", seconds=60) as fault:
        client.send(ApiKey.PRODUCE, 12, produce_request("orders", None))
        client.send(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
        fault.wait()
        assert client.hears_nothing()
        assert values(broker) == before
    with broker.faults.delay("Produce", seconds=0.01, times=1) as fault, RawClient(broker) as other:
        other.send(ApiKey.PRODUCE, 12, produce_request("orders", None))
        other.send(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
        assert other.receive(ApiKey.PRODUCE, 12).responses[0].partition_responses[0].error_code == 0
        other.receive(ApiKey.API_VERSIONS, 2)
    assert len(values(broker)) == len(before) + 1


@pytest.mark.parametrize("done", [False, True])
def test_a_disconnect_comes_before_anything_is_done_or_after_it(broker: Broker, done: bool) -> None:
    before = values(broker)
    with broker.faults.disconnect("Produce", done=done) as fault, RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 12, produce_request("orders", None))
        assert client.is_closed()
    assert fault.hits == 1
    assert len(values(broker)) == len(before) + done


def test_a_dropped_reply_leaves_the_connection_silent_and_the_records_written(
    broker: Broker, client: RawClient
) -> None:
    before = values(broker)
    with broker.faults.drop_reply("Produce", times=1) as fault:
        client.send(ApiKey.PRODUCE, 12, produce_request("orders", None))
        client.send(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
        fault.wait()
        assert client.hears_nothing()
    assert client.hears_nothing(), "what was dropped does not come back when the fault has gone"
    assert len(values(broker)) == len(before) + 1


def test_a_dropped_long_poll_ends_with_its_connection(broker: Broker) -> None:
    with broker.faults.drop_reply("Fetch") as fault, RawClient(broker) as client:
        client.send(ApiKey.FETCH, 12, fetch_request("orders", 10_000_000, max_wait_ms=60_000))
        fault.wait()


def test_a_produce_without_reply_is_not_for_dropping_and_fails_by_a_closed_connection(broker: Broker) -> None:
    silent = produce_request("orders", None, acks=0)
    before = values(broker)
    with broker.faults.drop_reply("Produce") as fault, RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 12, silent)
        client.ask(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
    assert (fault.hits, len(values(broker))) == (0, len(before) + 1)
    with broker.faults.error("Produce", NOT_LEADER) as fault, RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 12, silent)
        assert client.is_closed()
    assert (fault.hits, len(values(broker))) == (1, len(before) + 1)


def test_new_connections_are_reset_and_counted_and_those_that_are_there_stay(
    broker: Broker, client: RawClient
) -> None:
    client.produce("orders")
    for hits in (1, 2):
        with broker.faults.refuse_connections() as fault, broker.faults.refuse_connections() as younger:
            for _ in range(hits):
                assert is_refused(broker)
            assert client.produce("orders").error_code == ErrorCode.NONE
        assert (fault.hits, younger.hits) == (hits, 0)
        with RawClient(broker) as taken:
            assert taken.produce("orders").error_code == ErrorCode.NONE


def test_a_client_is_told_that_its_connection_was_reset(broker: Broker) -> None:
    host, port = broker.bootstrap_servers.rsplit(":", 1)

    def knock() -> None:
        with socket.create_connection((host, int(port)), timeout=10) as connected:
            connected.recv(1)

    with broker.faults.refuse_connections(), pytest.raises(ConnectionResetError):
        knock()


def test_connections_are_refused_from_the_start_and_until_the_fault_is_gone() -> None:
    broker = Broker()
    fault = broker.faults.refuse_connections()
    try:
        broker.start()
        assert is_refused(broker)
        broker.restart()
        assert is_refused(broker)
        assert fault.hits == 2
        fault.remove()
        with RawClient(broker) as client:
            client.create_topic("orders")
    finally:
        broker.stop()
    fault.remove()


def test_so_many_connections_are_refused(broker: Broker, client: RawClient) -> None:
    client.produce("orders")  # So that this connection has been taken before.
    with broker.faults.refuse_connections(times=2) as fault:
        for _ in range(2):
            assert is_refused(broker)
        assert client.produce("orders").error_code == ErrorCode.NONE
        with RawClient(broker) as taken:
            assert taken.produce("orders").error_code == ErrorCode.NONE
    assert fault.hits == 2


def test_every_request_is_meant_when_no_api_is_named(broker: Broker) -> None:
    with broker.faults.disconnect(client_id="raw", times=2) as fault:
        for key, version, request in (
            (ApiKey.API_VERSIONS, 2, ApiVersionsRequest()),
            (ApiKey.METADATA, 12, MetadataRequest(topics=[])),
        ):
            with RawClient(broker) as client:
                client.send(key, version, request)
                assert client.is_closed()
    assert fault.hits == 2


def test_bytes_that_cannot_be_decoded_are_judged_as_ever(broker: Broker) -> None:
    with broker.faults.disconnect(when=lambda _: True) as fault:
        for frame in (
            b"\0\0\0\1\0",
            b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\1\xff\xff",
            b"\0\0\0\x0a\0\0\0\x0c\0\0\0\1\xff\xff",
        ):
            with RawClient(broker) as client:
                client.socket.sendall(frame)
                assert client.is_closed()
    assert fault.hits == 0


def test_the_oldest_fault_that_fits_is_the_one_that_strikes(broker: Broker, client: RawClient) -> None:
    with (
        broker.faults.error("Produce", NOT_LEADER, times=1) as first,
        broker.faults.error("Produce", "KAFKA_STORAGE_ERROR", times=1) as second,
    ):
        told = [client.produce("orders").error_code for _ in range(3)]
    assert told == [NOT_LEADER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert (first.hits, second.hits) == (1, 1)


def test_faults_outlive_a_restart() -> None:
    with Broker() as broker:
        fault = broker.faults.error("Produce", NOT_LEADER, topic="orders")
        broker.create_topic("orders")
        broker.restart()
        with RawClient(broker) as client:
            assert client.produce("orders").error_code == NOT_LEADER
            fault.remove()
            assert client.produce("orders").error_code == ErrorCode.NONE


def test_without_faults_connections_ask_the_dispatcher_itself(broker: Broker) -> None:
    node = broker.node
    answering = node.serving.connections._answering
    assert answering.dispatch == node.dispatcher.dispatch
    with broker.faults.error("Produce", NOT_LEADER):
        assert answering.dispatch != node.dispatcher.dispatch
    assert answering.dispatch == node.dispatcher.dispatch


def test_a_wait_for_a_fault_that_does_not_strike_says_so(broker: Broker) -> None:
    with (
        broker.faults.disconnect("Produce", topic="orders") as fault,
        pytest.raises(
            TimeoutError,
            match=r"faults.disconnect\('Produce', topic='orders'\) \[0 hits\] has not struck 1 times",
        ),
    ):
        fault.wait(timeout=0.01)


@pytest.mark.parametrize(
    ("api", "error", "told"),
    [
        ("produce", "NONE", "Did you mean 'Produce'?"),
        ("OffsetComit", "NONE", "Did you mean 'OffsetCommit'?"),
        ("Produce", "NOT_LEADER", "Did you mean 'NOT_LEADER_OR_FOLLOWER'?"),
        ("Produce", 12345, "no error with the code 12345"),
    ],
)
def test_what_kafka_does_not_have_is_an_error_that_names_the_nearest(
    broker: Broker, api: str, error: str | int, told: str
) -> None:
    with pytest.raises(RiverlogError) as raised:
        broker.faults.error(api, error)
    assert told in str(raised.value)
    assert not len(broker.faults)


def test_limits_that_mean_nothing_are_errors(broker: Broker) -> None:
    with pytest.raises(ValueError, match="times is 1 or more"):
        broker.faults.disconnect(times=0)
    with pytest.raises(ValueError, match="must not be negative"):
        broker.faults.delay(seconds=-1)


def test_clear_removes_them_all(broker: Broker, client: RawClient) -> None:
    broker.faults.disconnect("Produce")
    broker.faults.refuse_connections()
    broker.faults.clear()
    assert list(broker.faults) == []
    assert client.produce("orders").error_code == ErrorCode.NONE
    with socket.create_connection(tuple(broker.bootstrap_servers.rsplit(":", 1)), 10):  # type: ignore[arg-type]
        pass
