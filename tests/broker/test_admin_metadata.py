"""Metadata, DescribeCluster, DescribeTopicPartitions over a socket. Expectations were read off Kafka."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from riverlog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.broker.raw_client import RawClient

TOPIC_OPERATIONS = 3576
CLUSTER_OPERATIONS = 8096
NOT_ASKED = -(2**31)
ALL_VERSIONS = range(APIS[ApiKey.METADATA].min_version, APIS[ApiKey.METADATA].max_version + 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=2, broker_rack="r1") as broker, RawClient(broker) as client:
        for name, partitions in (("a", 5), ("b", 3), ("c", 2)):
            client.create_topic(name, partitions)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def ask(
    client: RawClient,
    version: int,
    names: list[str] | None,
    *,
    ids: tuple[UUID, ...] = (),
    create: bool = False,
    **flags: bool,
) -> MetadataResponse:
    topics: list[MetadataRequestTopic] | None = None
    if names is not None or ids:
        topics = [MetadataRequestTopic(name=name) for name in names or []]
        topics += [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create, **flags)
    response: MetadataResponse = client.ask(ApiKey.METADATA, version, request)
    return response


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def topic_id(client: RawClient, name: str) -> UUID:
    found = ask(client, 12, [name]).topics[0].topic_id
    assert found is not None
    return found


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_is_described_with_leader_replicas_and_broker(client: RawClient, version: int) -> None:
    response = ask(client, version, ["b"])
    [topic] = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "b", False)
    assert (topic.topic_id is not None) == (version >= 10)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    first = topic.partitions[0]
    assert (first.error_code, first.leader_id, first.replica_nodes, first.isr_nodes) == (0, 1, [1], [1])
    assert first.leader_epoch == (0 if version >= 7 else -1)
    assert first.offline_replicas == []
    [node] = response.brokers
    address = client.socket.getpeername()
    assert (node.node_id, node.host, node.port) == (1, address[0], address[1])
    assert node.rack == ("r1" if version >= 1 else None)
    assert response.controller_id == (1 if version >= 1 else -1)
    assert (response.cluster_id is not None) == (version >= 2)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_null_asks_for_all_topics_and_the_empty_list_for_none_except_in_version_0(
    client: RawClient, version: int
) -> None:
    if version == 0:
        assert {"a", "b", "c"} <= set(errors(ask(client, 0, [])))
        return
    assert {"a", "b", "c"} <= set(errors(ask(client, version, None)))
    assert ask(client, version, []).topics == []


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version >= 4])
def test_an_unknown_topic_is_not_created_when_that_is_not_allowed(client: RawClient, version: int) -> None:
    for _ in range(2):
        assert errors(ask(client, version, ["none", "a", "a"])) == {
            "a": ErrorCode.NONE,
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_that_is_asked_for_comes_into_being_and_is_there_next_time(
    client: RawClient, version: int
) -> None:
    name = f"auto{version}"
    assert errors(ask(client, version, [name], create=True)) == {name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    [topic] = ask(client, version, [name], create=True).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 2)


def test_names_that_no_topic_can_have_are_invalid_and_not_created(client: RawClient) -> None:
    names = ["", ".", "..", "a b", "x" * 250, "ü"]
    assert errors(ask(client, 12, names, create=True)) == dict.fromkeys(
        names, ErrorCode.INVALID_TOPIC_EXCEPTION
    )


def test_a_name_that_collides_is_only_unknown(client: RawClient) -> None:
    client.create_topic("x.y")
    for _ in range(2):
        answer = errors(ask(client, 12, ["x_y"], create=True))
        assert answer == {"x_y": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_internal_topics_are_marked_whether_they_exist_or_not(client: RawClient) -> None:
    [topic] = ask(client, 12, ["__transaction_state"]).topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    ask(client, 12, ["__consumer_offsets"], create=True)
    [topic] = ask(client, 12, ["__consumer_offsets"]).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 50)


@pytest.mark.parametrize("version", [12, 13])
def test_topics_can_be_asked_for_by_id_and_names_beside_ids_are_passed_over(
    client: RawClient, version: int
) -> None:
    known, unknown = topic_id(client, "a"), uuid4()
    response = ask(client, version, ["b"], ids=(known, unknown, known))
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        ("a", known, ErrorCode.NONE),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("version", [10, 11])
def test_before_version_12_an_id_makes_the_whole_request_invalid(client: RawClient, version: int) -> None:
    known = topic_id(client, "a")
    response = ask(client, version, ["b"], ids=(known,))
    assert response.brokers == []
    assert response.cluster_id is None
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        ("b", None, ErrorCode.INVALID_REQUEST),
        ("", known, ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize("version", [12, 13])
def test_neither_name_nor_id_fails_the_whole_request(client: RawClient, version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None), MetadataRequestTopic(name="a")])
    response = client.ask(ApiKey.METADATA, version, request)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("", -1), ("a", -1)]
    assert response.error_code == (-1 if version == 13 else 0)


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version >= 8])
def test_authorized_operations_come_when_they_are_asked_for(client: RawClient, version: int) -> None:
    response = ask(
        client,
        version,
        ["a", "none", "a b"],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=version <= 10,
    )
    assert {topic.topic_authorized_operations for topic in response.topics} == {TOPIC_OPERATIONS}
    assert response.cluster_authorized_operations == (CLUSTER_OPERATIONS if version <= 10 else NOT_ASKED)
    plain = ask(client, version, ["a"])
    assert plain.topics[0].topic_authorized_operations == NOT_ASKED
    assert plain.cluster_authorized_operations == NOT_ASKED


def test_each_listener_answers_with_its_own_advertised_address() -> None:
    with Broker(
        listeners="INNER://127.0.0.1:0,OUTER://127.0.0.1:0",
        listener_security_protocol_map="INNER:PLAINTEXT,OUTER:PLAINTEXT",
        advertised_listeners="INNER://127.0.0.1:0,OUTER://outer.example:4711",
        inter_broker_listener_name="INNER",
    ) as broker:
        outer = broker.node.addresses["OUTER"]

        class Outer:
            bootstrap_servers = str(outer)

        with RawClient(Outer()) as client:
            [node] = ask(client, 12, []).brokers
            assert (node.host, node.port) == ("outer.example", 4711)
            [shown] = describe_cluster(client, 2).brokers
            assert (shown.host, shown.port) == ("outer.example", 4711)
        with RawClient(broker) as client:
            [node] = ask(client, 12, []).brokers
            assert (node.host, node.port) == client.socket.getpeername()


def test_nothing_is_created_when_the_broker_does_not_allow_it() -> None:
    with Broker(auto_create_topics_enable=False) as broker, RawClient(broker) as client:
        for version in (0, 4, 13):
            for _ in range(2):
                answer = errors(ask(client, version, ["t"], create=True))
                assert answer == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def describe_cluster(client: RawClient, version: int, **fields: int) -> DescribeClusterResponse:
    request = DescribeClusterRequest(**fields)  # type: ignore[arg-type]
    response: DescribeClusterResponse = client.ask(ApiKey.DESCRIBE_CLUSTER, version, request)
    return response


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_described(client: RawClient, version: int) -> None:
    response = describe_cluster(client, version)
    assert (response.error_code, response.error_message, response.controller_id) == (0, None, 1)
    assert response.cluster_id == ask(client, 12, []).cluster_id
    assert response.cluster_authorized_operations == NOT_ASKED
    assert [(node.broker_id, node.rack, node.is_fenced) for node in response.brokers] == [(1, "r1", False)]
    asked = describe_cluster(client, version, include_cluster_authorized_operations=True)
    assert asked.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_other_endpoints_than_brokers_are_refused(
    client: RawClient, version: int, endpoint_type: int, error: ErrorCode
) -> None:
    response = describe_cluster(client, version, endpoint_type=endpoint_type)
    assert response.error_code == error
    assert response.error_message
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


Page = tuple[list[tuple[str | None, int, list[int]]], tuple[str, int] | None]


def page(
    client: RawClient, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Page:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit
    )
    if cursor is not None:
        request.cursor = DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1])
    response: DescribeTopicPartitionsResponse = client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    following = response.next_cursor
    return (
        [
            (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
            for topic in response.topics
        ],
        None if following is None else (following.topic_name, following.partition_index),
    )


ABC = ["c", "a", "none", "b"]
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_come_in_the_order_of_topic_names(client: RawClient) -> None:
    everything = [("a", 0, [0, 1, 2, 3, 4]), ("b", 0, [0, 1, 2]), ("c", 0, [0, 1]), ("none", UNKNOWN, [])]
    assert page(client, [*ABC, "a"]) == (everything, None)


@pytest.mark.parametrize(
    ("limit", "cursor", "expected"),
    [
        (4, None, ([("a", 0, [0, 1, 2, 3])], ("a", 4))),
        (5, None, ([("a", 0, [0, 1, 2, 3, 4])], ("b", 0))),
        (6, None, ([("a", 0, [0, 1, 2, 3, 4]), ("b", 0, [0])], ("b", 1))),
        (0, None, ([("a", 0, [0])], ("a", 1))),
        (-1, None, ([("a", 0, [0])], ("a", 1))),
        (4, ("a", 4), ([("a", 0, [4]), ("b", 0, [0, 1, 2])], ("c", 0))),
        (4, ("b", 1), ([("b", 0, [1, 2]), ("c", 0, [0, 1])], ("none", 0))),
        (4, ("b", 7), ([("b", 0, []), ("c", 0, [0, 1]), ("none", UNKNOWN, [])], None)),
        (4, ("none", 1), ([("none", UNKNOWN, [])], None)),
    ],
)
def test_pages_end_at_the_limit_and_begin_at_the_cursor(
    client: RawClient, limit: int, cursor: tuple[str, int] | None, expected: Page
) -> None:
    assert page(client, ABC, limit, cursor) == expected


@pytest.mark.parametrize("cursor", [("aa", 1), ("z", 0), ("b", -1)])
def test_a_cursor_that_leads_nowhere_makes_the_request_invalid(
    client: RawClient, cursor: tuple[str, int]
) -> None:
    assert page(client, ABC, 4, cursor) == ([(name, ErrorCode.INVALID_REQUEST, []) for name in ABC], None)


def test_naming_no_topic_walks_through_all_of_them(client: RawClient) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = ("", 0)
    while cursor is not None:
        topics, cursor = page(client, [], 3, cursor)
        assert sum(len(partitions) for _, _, partitions in topics) <= 3
        seen += [(name, index) for name, _, partitions in topics for index in partitions]
    described = ask(client, 12, None).topics
    expected = sorted((topic.name or "", len(topic.partitions)) for topic in described)
    assert seen == [(name, index) for name, count in expected for index in range(count)]


def test_described_topics_have_ids_and_operations(client: RawClient) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="a"), TopicRequest(name="a b")])
    response: DescribeTopicPartitionsResponse = client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    known, invalid = response.topics
    assert known.topic_id == topic_id(client, "a")
    assert known.topic_authorized_operations == invalid.topic_authorized_operations == TOPIC_OPERATIONS
    assert (known.partitions[0].eligible_leader_replicas, known.partitions[0].last_known_elr) == ([], [])
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_partitions_without_a_reachable_leader_say_so() -> None:
    """Two brokers in the image, one without the listener that is asked."""
    one, two, three = NodeId(1), NodeId(2), NodeId(3)
    image = ClusterImage(
        brokers={
            one: BrokerImage(one, {"OUTER": Address("h", 1)}),
            two: BrokerImage(two, {"INNER": Address("h", 2)}),
        }
    )

    def seen(leader: NodeId | None, version: int) -> tuple[ErrorCode, int, list[int], list[int]]:
        partition = PartitionImage((one, two, three), (one, two), leader, LeaderEpoch(0), 0)
        view = ClusterView(image, "OUTER").partition(
            TopicImage("t", TopicId(UUID(int=1)), (partition,)), 0, version
        )
        return view.error, view.leader_id, view.replicas, view.offline

    everyone = [1, 2, 3]
    assert seen(one, 9) == (ErrorCode.NONE, 1, everyone, [2, 3])
    assert seen(one, 0) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1], [2, 3])
    assert seen(two, 9) == (ErrorCode.LISTENER_NOT_FOUND, -1, everyone, [2, 3])
    assert seen(two, 5) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, everyone, [2, 3])
    assert seen(None, 9) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, everyone, [2, 3])
    assert seen(three, 9) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, everyone, [2, 3])
