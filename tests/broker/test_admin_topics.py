"""CreateTopics, CreatePartitions, DeleteTopics over a socket. Expectations were read off Kafka 4.3.1."""

from collections.abc import Iterator
from itertools import count
from uuid import UUID, uuid4

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.raw_client import RawClient

NONE = ErrorCode.NONE
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=2) as broker, RawClient(broker) as client:
        client.create_topic("there")
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def fresh() -> str:
    return f"topic{next(_numbers)}"


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assigned: tuple[tuple[int, list[int]], ...] = (),
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assigned
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def create(
    client: RawClient,
    *topics: CreatableTopic,
    version: int = 7,
    validate_only: bool = False,
    timeout_ms: int = 10_000,
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only, timeout_ms=timeout_ms)
    response: CreateTopicsResponse = client.ask(ApiKey.CREATE_TOPICS, version, request)
    assert response.throttle_time_ms == 0
    return response.topics


def codes(results: list[CreatableTopicResult]) -> list[tuple[str, int]]:
    for result in results:
        if result.error_code in (NONE, ErrorCode.REQUEST_TIMED_OUT):
            assert result.error_message is None
        else:
            assert result.error_message
    return [(result.name, result.error_code) for result in results]


def partition_count(client: RawClient, name: str) -> int | None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    [found] = client.ask(ApiKey.METADATA, 12, request).topics
    return None if found.error_code else len(found.partitions)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_answered_with_what_the_version_knows(client: RawClient, version: int) -> None:
    name = fresh()
    [result] = create(client, topic(name, 3, retention_ms="5000"), version=version)
    assert codes([result]) == [(name, NONE)]
    assert partition_count(client, name) == 3
    assert (result.topic_id is not None) == (version >= 7)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    shown = {config.name: (config.value, config.config_source) for config in result.configs or []}
    if version >= 5:
        assert shown["retention.ms"] == ("5000", 1)
        assert shown["cleanup.policy"] == ("delete", 5)
        assert list(shown) == sorted(shown)
    else:
        assert shown == {}


@pytest.mark.parametrize("version", range(2, 8))
def test_minus_one_asks_for_the_defaults_in_every_version(client: RawClient, version: int) -> None:
    name = fresh()
    assert codes(create(client, topic(name, -1, -1), version=version)) == [(name, NONE)]
    assert partition_count(client, name) == 2


@pytest.mark.parametrize("version", range(2, 8))
def test_a_refused_topic_has_no_id_no_settings_and_a_message(client: RawClient, version: int) -> None:
    [result] = create(client, topic("there"), version=version)
    assert codes([result]) == [("there", ErrorCode.TOPIC_ALREADY_EXISTS)]
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (None, -1, -1)
    assert result.configs == []


def test_validation_answers_in_full_and_creates_nothing(client: RawClient) -> None:
    name = fresh()
    [result] = create(client, topic(name, 3), validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id is not None) == (NONE, 3, True)
    assert partition_count(client, name) is None


def test_outcomes_come_in_the_order_of_the_request_and_duplicates_last_and_once(client: RawClient) -> None:
    good, better, twice = fresh(), fresh(), fresh()
    results = create(
        client, topic(good), topic(twice), topic("there"), topic("a b"), topic(twice), topic(better, 0)
    )
    assert codes(results) == [
        (good, NONE),
        ("there", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (better, ErrorCode.INVALID_PARTITIONS),
        (twice, ErrorCode.INVALID_REQUEST),
    ]
    assert partition_count(client, good) == 1
    assert partition_count(client, twice) is None


def test_settings_are_checked(client: RawClient) -> None:
    for configs in ({"nope": "1"}, {"retention_ms": "x"}, {"segment_bytes": "1"}, {"retention_ms": None}):
        name = fresh()
        assert codes(create(client, topic(name, **configs))) == [(name, ErrorCode.INVALID_CONFIG)]


def test_of_a_setting_that_is_given_twice_the_last_counts(client: RawClient) -> None:
    wanted = topic(fresh(), retention_ms="1")
    wanted.configs.append(CreatableTopicConfig(name="retention.ms", value="2"))
    [result] = create(client, wanted)
    assert [config.value for config in result.configs or [] if config.name == "retention.ms"] == ["2"]


def test_replicas_can_be_assigned_by_hand(client: RawClient) -> None:
    name = fresh()
    [result] = create(client, topic(name, -1, -1, ((1, [1]), (0, [1]))))
    assert (result.error_code, result.num_partitions) == (NONE, 2)
    name = fresh()
    assert codes(create(client, topic(name, -1, -1, ((0, [2]),)))) == [
        (name, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    ]
    assert codes(create(client, topic(name, 1, 1, ((0, [1]),)))) == [(name, ErrorCode.INVALID_REQUEST)]


def test_no_time_left_means_nothing_is_done(client: RawClient) -> None:
    name = fresh()
    late = ErrorCode.REQUEST_TIMED_OUT
    for timeout_ms in (0, -1):
        results = create(client, topic(name), topic(name), topic("a b"), timeout_ms=timeout_ms)
        assert codes(results) == [(name, late), (name, late), ("a b", late)]
    assert partition_count(client, name) is None
    assert create(client, timeout_ms=0) == []


def test_too_many_partitions_refuse_every_entry_of_the_request(client: RawClient) -> None:
    name = fresh()
    results = create(client, topic(name), topic(name), topic("a b"), topic(fresh(), 20_000))
    assert [code for _, code in codes(results)] == [ErrorCode.POLICY_VIOLATION] * 4


def grow(
    client: RawClient,
    *topics: tuple[str, int] | tuple[str, int, list[list[int]]],
    version: int = 3,
    validate_only: bool = False,
    timeout_ms: int = 10_000,
) -> list[tuple[str, int, bool]]:
    """Name, error, and whether there is a message."""
    request = CreatePartitionsRequest(timeout_ms=timeout_ms, validate_only=validate_only)
    for name, partitions, *assigned in topics:
        assignments = (
            [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned[0]] if assigned else None
        )
        request.topics.append(CreatePartitionsTopic(name=name, count=partitions, assignments=assignments))
    response: CreatePartitionsResponse = client.ask(ApiKey.CREATE_PARTITIONS, version, request)
    return [(result.name, result.error_code, bool(result.error_message)) for result in response.results]


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_and_never_shrinks(client: RawClient, version: int) -> None:
    name = fresh()
    create(client, topic(name, 2))
    assert grow(client, (name, 3), version=version) == [(name, NONE, False)]
    assert partition_count(client, name) == 3
    for partitions in (3, 2, 0, -1):
        answer = grow(client, (name, partitions), version=version)
        assert answer == [(name, ErrorCode.INVALID_PARTITIONS, True)]
    assert partition_count(client, name) == 3


def test_growth_is_answered_per_topic(client: RawClient) -> None:
    one, other = fresh(), fresh()
    create(client, topic(one), topic(other))
    answers = grow(client, ("none", 5), (one, 2), (other, 2), (one, 3), validate_only=True)
    assert answers == [
        (one, ErrorCode.INVALID_REQUEST, True),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (other, NONE, False),
    ]
    assert partition_count(client, other) == 1
    assert grow(client, (other, 2, [[1]]), (one, 2, [[9]])) == [
        (other, NONE, False),
        (one, ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
    ]
    assert partition_count(client, other) == 2
    assert grow(client, (one, 2), timeout_ms=0) == [(one, ErrorCode.REQUEST_TIMED_OUT, False)]
    assert partition_count(client, one) == 1
    assert grow(client, (one, 20_000)) == [(one, ErrorCode.UNKNOWN_SERVER_ERROR, False)]
    assert grow(client) == []


def test_records_can_be_written_to_a_new_partition_at_once(client: RawClient) -> None:
    name = fresh()
    create(client, topic(name))
    grow(client, (name, 2))
    assert client.produce(name, partition=1).error_code == NONE


def delete(
    client: RawClient, *topics: str | UUID | DeleteTopicState, version: int = 6, timeout_ms: int = 10_000
) -> set[tuple[str | None, UUID | None, int, bool]]:
    """Name, id, error, and whether there is a message; in no order, since Kafka shuffles them."""
    request = DeleteTopicsRequest(timeout_ms=timeout_ms)
    for each in topics:
        if isinstance(each, str):
            request.topic_names.append(each)
            request.topics.append(DeleteTopicState(name=each))
        elif isinstance(each, UUID):
            request.topics.append(DeleteTopicState(topic_id=each))
        else:
            request.topics.append(each)
    response: DeleteTopicsResponse = client.ask(ApiKey.DELETE_TOPICS, version, request)
    answers = [
        (result.name, result.topic_id, result.error_code, bool(result.error_message))
        for result in response.responses
    ]
    assert len(set(answers)) == len(answers)
    return set(answers)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_deleted_by_name(client: RawClient, version: int) -> None:
    name = fresh()
    [created] = create(client, topic(name))
    shown = created.topic_id if version >= 6 else None
    has_message = version >= 5
    assert delete(client, name, "none", version=version) == {
        (name, shown, NONE, False),
        ("none", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, has_message),
    }
    assert partition_count(client, name) is None


def test_a_topic_is_deleted_by_id_and_answered_with_its_name(client: RawClient) -> None:
    name, unknown = fresh(), uuid4()
    [created] = create(client, topic(name))
    assert created.topic_id is not None
    assert delete(client, created.topic_id, unknown) == {
        (name, created.topic_id, NONE, False),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID, True),
    }


def test_ambiguous_deletions_are_refused(client: RawClient) -> None:
    name = fresh()
    [created] = create(client, topic(name))
    topic_id = created.topic_id
    assert topic_id is not None
    invalid = ErrorCode.INVALID_REQUEST
    assert delete(client, name, name, version=5) == {(name, None, invalid, True)}
    assert delete(client, topic_id, topic_id) == {(None, topic_id, invalid, True)}
    assert delete(client, name, topic_id) == {(name, topic_id, invalid, True)}
    assert delete(client, DeleteTopicState(name=name, topic_id=topic_id), DeleteTopicState()) == {
        (name, topic_id, invalid, True),
        (None, None, invalid, True),
    }
    assert delete(client, name, timeout_ms=0) == {(name, None, ErrorCode.REQUEST_TIMED_OUT, False)}
    assert delete(client) == set()
    assert partition_count(client, name) == 1


def test_deletion_can_be_switched_off() -> None:
    with Broker(delete_topic_enable=False) as broker, RawClient(broker) as client:
        client.create_topic("t")
        for version in range(1, 7):
            code = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
            assert delete(client, "t", "none", version=version) == {
                ("t", None, code, False),
                ("none", None, code, False),
            }
        assert partition_count(client, "t") == 1


def test_topics_their_ids_and_partitions_survive_restarts_and_crashes() -> None:
    with Broker() as broker:
        with RawClient(broker) as client:
            [created] = create(client, topic("t", 3, retention_ms="7"))
        broker.restart()
        broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            [found] = client.ask(ApiKey.METADATA, 12, request).topics
            assert (found.topic_id, len(found.partitions)) == (created.topic_id, 3)
