"""Errors for one topic of a request about several: that topic has it, the others are served."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.testing import Broker
from riverlog.testing.about_topics import answers_for, put_together, split, topics_of
from riverlog.testing.error_replies import error_reply
from riverlog.wire.apis import Api, ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.fetch import FetchRequest, FetchResponse
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from riverlog.wire.messages.produce import ProduceRequest, ProduceResponse
from riverlog.wire.schema import Message
from tests.broker.raw_client import RawClient, fetch_request, produce_request
from tests.testing.test_error_replies import EVERY_VERSION, codes_of, example
from tests.waiting import eventually

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
MEANT_ID, OTHER_ID = UUID(int=1), UUID(int=2)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(offsets_topic_num_partitions=1) as broker:
        for topic in ("orders", "other", "third"):
            broker.create_topic(topic)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def count(broker: Broker, topic: str) -> int:
    return len(broker.consume(topic))


def produce_to(broker: Broker, *topics: str, acks: int = -1) -> ProduceRequest:
    request = produce_request(topics[0], None, acks=acks)
    request.topic_data += [produce_request(topic, None).topic_data[0] for topic in topics[1:]]
    for each in request.topic_data:
        each.topic_id = broker.node.image.topics[each.name].topic_id
    return request


def codes_by_topic(broker: Broker, reply: ProduceResponse | FetchResponse) -> dict[str, int]:
    def name(given: str, topic_id: UUID | None) -> str:
        return given or broker.node.image.topic_names[topic_id or UUID(int=0)]

    if isinstance(reply, ProduceResponse):
        return {
            name(each.name, each.topic_id): each.partition_responses[0].error_code for each in reply.responses
        }
    return {name(each.topic, each.topic_id): each.partitions[0].error_code for each in reply.responses}


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_records_of_other_topics_are_written(broker: Broker, client: RawClient, version: int) -> None:
    before = count(broker, "orders"), count(broker, "other")
    with broker.faults.error("Produce", NOT_LEADER, topic="orders") as fault:
        reply = client.ask(ApiKey.PRODUCE, version, produce_to(broker, "orders", "other"))
    assert codes_by_topic(broker, reply) == {"orders": NOT_LEADER, "other": ErrorCode.NONE}
    assert fault.hits == 1
    assert (count(broker, "orders"), count(broker, "other")) == (before[0], before[1] + 1)


def test_without_a_reply_the_rest_is_written_and_the_connection_closed(broker: Broker) -> None:
    before = count(broker, "other")
    with broker.faults.error("Produce", NOT_LEADER, topic="orders"), RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, 12, produce_to(broker, "orders", "other", acks=0))
        assert client.is_closed()
    assert count(broker, "other") == before + 1


def test_each_of_several_faults_strikes_its_own_topic(broker: Broker, client: RawClient) -> None:
    with (
        broker.faults.error("Produce", NOT_LEADER, topic="orders") as first,
        broker.faults.error("Produce", STORAGE, topic="other") as second,
    ):
        reply = client.ask(ApiKey.PRODUCE, 12, produce_to(broker, "orders", "other", "third"))
    assert codes_by_topic(broker, reply) == {"orders": NOT_LEADER, "other": STORAGE, "third": 0}
    assert (first.hits, second.hits) == (1, 1)


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_a_fetch_has_the_error_and_the_records_of_the_others_at_once(
    broker: Broker, client: RawClient, version: int
) -> None:
    offset = count(broker, "other")
    client.produce("other")
    request: FetchRequest = fetch_request("orders", 0, max_wait_ms=60_000, min_bytes=2**20)
    request.topics += fetch_request("other", offset).topics
    for each in request.topics:
        each.topic_id = broker.node.image.topics[each.topic].topic_id
    request.session_epoch = 0
    with broker.faults.error("Fetch", NOT_LEADER, topic="orders"):
        reply: FetchResponse = client.ask(ApiKey.FETCH, version, request)
    assert codes_by_topic(broker, reply) == {"orders": NOT_LEADER, "other": ErrorCode.NONE}
    assert [bool(each.partitions[0].records) for each in reply.responses] == [True, False]
    assert reply.session_id == 0, "a session that lacks a partition would never send its records"


def test_metadata_of_other_topics_is_told_and_they_are_created(broker: Broker, client: RawClient) -> None:
    names = ("orders", "other", "made-by-asking", "not-made")
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True
    )
    error = ErrorCode.LEADER_NOT_AVAILABLE
    with (
        broker.faults.error("Metadata", error, topic="orders"),
        broker.faults.error("Metadata", error, topic="not-made"),
    ):
        reply = client.ask(ApiKey.METADATA, 12, asked)
    codes = {each.name: each.error_code for each in reply.topics}
    assert (codes["orders"], codes["other"], codes["not-made"]) == (error, ErrorCode.NONE, error)
    assert [each.port for each in reply.brokers] == [int(broker.bootstrap_servers.rpartition(":")[2])]
    eventually(lambda: "made-by-asking" in broker.node.image.topics)
    assert "not-made" not in broker.node.image.topics


def test_topics_below_groups_and_as_resources(broker: Broker, client: RawClient) -> None:
    client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
    eventually(lambda: client.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="i")).error_code == 0)
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("orders", "other")]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=topics) for group in ("g", "h")]
    groups.append(OffsetFetchRequestGroup(group_id="i", topics=[topics[1]]))
    with broker.faults.error("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, topic="orders"):
        reply = client.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups))
    told = {
        (group.group_id, topic.name): topic.partitions[0].error_code
        for group in reply.groups
        for topic in group.topics
    }
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert told == {
        ("g", "orders"): unstable,
        ("g", "other"): 0,
        ("h", "orders"): unstable,
        ("h", "other"): 0,
        ("i", "other"): 0,
    }

    resources = [
        DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=["retention.ms"])
        for name in ("orders", "other")
    ]
    with broker.faults.error("DescribeConfigs", STORAGE, topic="orders"):
        found = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=resources))
    assert {each.resource_name: each.error_code for each in found.results} == {"orders": STORAGE, "other": 0}
    assert sum(len(each.configs) for each in found.results) == 1


def test_what_is_answered_as_a_whole_fails_as_a_whole(broker: Broker, client: RawClient) -> None:
    topics = [DescribableLogDirTopic(topic=name, partitions=[0]) for name in ("orders", "other")]
    with broker.faults.error("DescribeLogDirs", STORAGE, topic="orders"):
        reply = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=topics))
    assert codes_of(reply, 4) == {0: {0}, 1: {STORAGE}}
    with broker.faults.error("Fetch", ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, topic="orders"):
        request = fetch_request("orders", 0)
        request.topics += fetch_request("other", 0).topics
        assert client.ask(ApiKey.FETCH, 12, request).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_administration_of_other_topics_is_done(broker: Broker, client: RawClient) -> None:
    client.produce("orders")
    client.produce("other")
    end = broker.consume("other")[-1].offset + 1
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])
        for name in ("orders", "other")
    ]
    with broker.faults.error("DeleteRecords", NOT_LEADER, topic="orders"):
        client.ask(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=5000))
    assert broker.consume("other") == []
    assert broker.consume("orders")
    starts = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
        for name in ("orders", "other")
    ]
    with broker.faults.error("ListOffsets", NOT_LEADER, topic="orders"):
        reply = client.ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=starts, replica_id=-1))
    assert {each.name: each.partitions[0].offset for each in reply.topics} == {"orders": -1, "other": end}


def _named(message: Message, topic: str, topic_id: UUID) -> Message:
    """An example that is about this topic alone."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.kind == "uuid" and value:
            setattr(message, field.name, topic_id)
        elif field.name == "resource_type" and not field.array:
            setattr(message, field.name, 2)
        elif isinstance(value, str) and field.name in ("name", "topic", "resource_name"):
            setattr(message, field.name, topic)
        elif field.array and value and "topic" in field.name and isinstance(value[0], str):
            setattr(message, field.name, [topic])
        elif field.array:
            for each in value or ():
                if isinstance(each, Message):
                    _named(each, topic, topic_id)
    return message


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_parts_of_a_request_are_the_whole_and_so_are_their_replies(api: Api, version: int) -> None:
    def name_of(topic_id: UUID) -> str | None:
        return {MEANT_ID: "meant", OTHER_ID: "other"}.get(topic_id)

    def whole() -> Message:
        """About both topics, in every array that can be about one."""
        request = _named(example(api.request, version), "meant", MEANT_ID)
        put_together(request, _named(example(api.request, version), "other", OTHER_ID), version)
        return request

    if topics_of(whole(), version, name_of) != {"meant", "other"}:
        return  # Not about topics.
    meant, rest = split(whole(), version, "meant", name_of)
    assert topics_of(meant, version, name_of) == {"meant"}
    assert topics_of(rest, version, name_of) == {"other"}
    failed = error_reply(meant, api.response, version, NOT_LEADER)
    reply = error_reply(rest, api.response, version, NOT_LEADER)
    assert failed is not None
    assert reply is not None
    if not answers_for(failed, version, "meant", name_of):
        assert api.key in WHOLE
        return
    assert api.key not in WHOLE
    put_together(reply, failed, version)
    for topic in ("meant", "other"):
        assert answers_for(reply, version, topic, name_of)


WHOLE = {
    ApiKey.CREATE_ACLS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
"""APIs of which a request is about topics and its reply has one error for all of them."""


def test_every_request_is_counted_once_whatever_strikes_it(broker: Broker) -> None:
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)

    def counted(api: str) -> float:
        return metrics.value("riverlog_requests_total", api=api)

    def metadata() -> Message:
        return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("orders", "other")])

    produces, metadatas = counted("Produce"), counted("Metadata")
    with RawClient(broker) as client:
        with broker.faults.error("Produce", NOT_LEADER, times=2):
            client.produce("orders")
            client.ask(ApiKey.PRODUCE, 12, produce_to(broker, "orders", "other"))
        with broker.faults.error("Produce", NOT_LEADER, topic="orders"):
            client.ask(ApiKey.PRODUCE, 12, produce_to(broker, "orders", "other"))
        with broker.faults.delay("Produce", seconds=0):
            client.produce("orders")
        assert counted("Produce") == produces + 4
        with broker.faults.error("Metadata", NOT_LEADER):
            client.ask(ApiKey.METADATA, 12, metadata())
        with broker.faults.error("Metadata", NOT_LEADER, topic="orders"):
            client.ask(ApiKey.METADATA, 12, metadata())
        assert counted("Metadata") == metadatas + 2
    for done in (False, True):
        with broker.faults.disconnect("Produce", done=done), RawClient(broker) as client:
            client.send(ApiKey.PRODUCE, 12, produce_to(broker, "orders"))
            assert client.is_closed()
    assert counted("Produce") == produces + 6
