"""Finding the right broker, and what happens while it is not there."""

import socket
import threading
import time

import pytest

from riverlog.client.cluster import BrokerRefused, ClientSettings, Cluster, ClusterUnreachable, Question
from riverlog.client.core.metadata import CoordinatorKind
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest


def settings_for(broker: Broker, **knobs: float) -> ClientSettings:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return ClientSettings(bootstrap=(Address(host, int(port)),), client_id="test", **knobs)


def create(cluster: Cluster, name: str, partitions: int = 2) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    reply = cluster.ask_any(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert reply.topics[0].error_code == ErrorCode.NONE


def test_topics_are_seen_with_their_partitions_and_ids() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        create(cluster, "seen", 3)
        found = cluster.topics()["seen"]
        assert list(found.partitions) == [0, 1, 2]
        assert found.topic_id is not None
        assert set(cluster.brokers()) == {found.partitions[0].leader}
        missing = cluster.topics(["missing"])["missing"]
        assert (missing.error, dict(missing.partitions)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})


def test_leader_and_coordinator_are_found_and_asked() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        create(cluster, "led")
        request = DescribeProducersRequest(topics=[TopicRequest(name="led", partition_indexes=[1])])
        answer = cluster.ask_leader("led", 1, ApiKey.DESCRIBE_PRODUCERS, request)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        fetch = OffsetFetchRequest(group_id="somebody", topics=None)
        fetched = cluster.ask_coordinator(
            CoordinatorKind.GROUP, "somebody", ApiKey.OFFSET_FETCH, fetch, version_max=7
        )
        assert fetched.error_code == ErrorCode.NONE


def test_a_topic_that_is_not_there_is_refused_by_name() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        with pytest.raises(BrokerRefused, match="nowhere") as refused:
            cluster.ask_leader("nowhere", 0, ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest())
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_restarted_broker_is_found_again() -> None:
    broker = Broker().start()
    try:
        with Cluster(settings_for(broker)) as cluster:
            create(cluster, "kept", 1)
            broker.kill()
            back = threading.Timer(0.5, broker.restart)
            back.start()
            assert "kept" in cluster.topics()
            back.join()
    finally:
        broker.stop()


def test_a_coordinator_is_found_again_though_every_connection_is_dead() -> None:
    """The address to begin with is not the advertised one: there are two connections to the same broker."""
    broker = Broker().start()
    try:
        _, _, port = broker.bootstrap_servers.rpartition(":")
        settings = ClientSettings(bootstrap=(Address("localhost", int(port)),), retry_deadline_s=20)
        fetch = OffsetFetchRequest(group_id="somebody", topics=None)
        with Cluster(settings) as cluster:
            for _ in range(2):
                answer = cluster.ask_coordinator(
                    CoordinatorKind.GROUP, "somebody", ApiKey.OFFSET_FETCH, fetch, version_max=7
                )
                assert answer.error_code == ErrorCode.NONE
                broker.kill()
                broker.restart()
    finally:
        broker.stop()


def test_nobody_there_is_one_line_within_the_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
    began = time.monotonic()
    with (
        Cluster(ClientSettings(bootstrap=(address,), request_timeout_s=0.5)) as cluster,
        pytest.raises(ClusterUnreachable, match=f"reached at {address}: Connection refused"),
    ):
        cluster.topics()
    assert time.monotonic() - began < 2


def test_a_broker_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address(*silent.getsockname())
        began = time.monotonic()
        with (
            Cluster(ClientSettings(bootstrap=(address,), request_timeout_s=0.3)) as cluster,
            pytest.raises(ClusterUnreachable, match="timed out"),
        ):
            cluster.topics()
        assert time.monotonic() - began < 2


def test_a_code_is_tried_again_only_while_it_may_change() -> None:
    with Broker() as broker, Cluster(settings_for(broker, retry_deadline_s=0.3)) as cluster:
        codes = iter([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE])
        assert cluster.retrying(lambda: next(codes), int, doing="asking") == ErrorCode.NONE
        with pytest.raises(BrokerRefused, match="asking: INVALID_TXN_STATE"):
            cluster.retrying(lambda: ErrorCode.INVALID_TXN_STATE, int, doing="asking")
        with pytest.raises(BrokerRefused, match="NOT_COORDINATOR"):
            cluster.retrying(lambda: ErrorCode.NOT_COORDINATOR, int, doing="asking")


def test_several_questions_are_on_the_way_at_the_same_time() -> None:
    """Those that must be looked up first are, before anything is sent; a lost connection has no answers."""
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        questions = [
            Question.to_coordinator(
                CoordinatorKind.GROUP,
                f"group-{number}",
                ApiKey.OFFSET_FETCH,
                OffsetFetchRequest(group_id=f"group-{number}", topics=None),
                version_max=7,
            )
            for number in range(120)
        ]
        answers = cluster.ask_at_once(questions)
        assert [each and each.error_code for each in answers] == [ErrorCode.NONE] * 120
        lost = broker.faults.disconnect("OffsetFetch", times=1)
        answers = cluster.ask_at_once(questions[:40])
        assert lost.hits == 1
        assert answers == [None] * 40
        assert None not in cluster.ask_at_once(questions)
