"""Error replies made from requests: of every served API and version, well formed, for all that was asked."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.testing.error_replies import error_reply
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.codec import decode, encode
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.schema import DEFAULT, Field, Message
from tests.broker.raw_client import RawClient

TOPIC_ID = UUID(int=77)
PARTITION = 7
SERVED = [
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.API_VERSIONS,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.OFFSET_DELETE,
    ApiKey.UPDATE_FEATURES,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
]
PARTITION_NAMES = {"partition_index", "partition_id", "partition", "index", "partitions", "partition_indexes"}
EVERY_VERSION = [
    pytest.param(APIS[key], version, id=f"{APIS[key].name}-{version}")
    for key in SERVED
    for version in range(APIS[key].request.VERSIONS[0], APIS[key].max_version + 1)
]


def example(kind: type[Message], version: int) -> Message:
    """A request that names one of everything."""
    message = kind()
    for field in kind.FIELDS:
        if field.is_in(version):
            value = _value(field, version)
            setattr(message, field.name, [value] if field.array else value)
    return message


def _value(field: Field, version: int) -> Any:
    if field.struct is not None:
        return example(field.struct, version)
    if field.name in PARTITION_NAMES:
        return PARTITION
    match field.kind:
        case "string":
            return f"the {field.name}"
        case "uuid":
            return TOPIC_ID
        case "bytes":
            return b""
        case "records":
            return None
        case _:
            return 0 if field.default is DEFAULT or field.array else field.default


def values_of(message: Message, version: int, depth: int = 0) -> Iterator[tuple[int, str, Any]]:
    """Every value of a message that is not a structure, with its depth and the name of its field."""
    for field in message.FIELDS:
        if not field.is_in(version):
            continue
        value = getattr(message, field.name)
        for each in value if field.array and value is not None else [value]:
            if isinstance(each, Message):
                yield from values_of(each, version, depth + 1)
            else:
                yield depth, field.name, each


def made(api: Api, version: int, error: ErrorCode) -> tuple[Message, Message]:
    """A request, and the reply to it as a client decodes it."""
    request = example(api.request, version)
    reply = error_reply(request, api.response, version, error)
    assert reply is not None
    data = encode(reply, version)
    decoded, end = decode(api.response, version, data)
    assert end == len(data)
    return request, decoded


def codes_of(reply: Message, version: int) -> dict[int, set[int]]:
    """The error codes, by depth."""
    found: dict[int, set[int]] = {}
    for depth, name, value in values_of(reply, version):
        if name in ("error_code", "partition_error_code"):
            found.setdefault(depth, set()).add(value)
    return found


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_an_error_of_a_partition_is_told_at_the_innermost_place(api: Api, version: int) -> None:
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    request, reply = made(api, version, error)
    codes = codes_of(reply, version)
    assert codes[max(codes)] == {error}
    assert all(codes[depth] == {ErrorCode.NONE} for depth in codes if depth < max(codes))
    asked = {(name, value) for _, name, value in values_of(request, version)}
    if api.key not in (ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_LOG_DIRS) and max(codes) == 2:
        told = list(values_of(reply, version))
        assert [value for _, name, value in told if name in PARTITION_NAMES] == [PARTITION]
        names = {value for _, name, value in told if name in ("name", "topic", "topic_name", "topic_id")}
        assert names <= {value for _, value in asked}
        assert names


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_any_other_error_is_told_at_the_outermost_place(api: Api, version: int) -> None:
    error = ErrorCode.NOT_COORDINATOR
    _, reply = made(api, version, error)
    codes = codes_of(reply, version)
    assert codes[min(codes)] == {error}
    assert set().union(*codes.values()) == {error}


def test_what_an_error_leaves_unknown_is_minus_one() -> None:
    def found(key: ApiKey, *names: str) -> set[Any]:
        api = APIS[key]
        _, reply = made(api, api.max_version, ErrorCode.KAFKA_STORAGE_ERROR)
        return {value for _, name, value in values_of(reply, api.max_version) if name in names}

    assert found(ApiKey.PRODUCE, "base_offset") == {-1}
    assert found(ApiKey.FETCH, "high_watermark", "last_stable_offset") == {-1}
    assert found(ApiKey.LIST_OFFSETS, "offset", "timestamp") == {-1}
    assert found(ApiKey.OFFSET_FETCH, "committed_offset") == {-1}
    assert found(ApiKey.FIND_COORDINATOR, "node_id", "port") == {-1}
    assert found(ApiKey.INIT_PRODUCER_ID, "producer_id", "producer_epoch") == {-1}
    assert found(ApiKey.WRITE_TXN_MARKERS, "producer_id") == {0}, "it says whose markers these are"


def test_a_request_that_names_nothing_has_no_place_for_an_error_of_its_parts() -> None:
    api = APIS[ApiKey.OFFSET_COMMIT]
    assert error_reply(api.request(), api.response, 9, ErrorCode.NOT_COORDINATOR) is None


def test_every_served_api_is_in_this_list_and_answers_its_own_version_with_the_error() -> None:
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with Broker() as broker:
        with RawClient(broker) as client:
            advertised = client.ask(ApiKey.API_VERSIONS, 2, ApiVersionsRequest()).api_keys
        assert {each.api_key for each in advertised} == set(SERVED)
        for key in SERVED:
            api = APIS[key]
            for version in {api.request.VERSIONS[0], api.max_version}:
                request = example(api.request, version)
                if key is ApiKey.PRODUCE:
                    request.acks = -1  # type: ignore[attr-defined]
                with broker.faults.error(api.name, error) as fault, RawClient(broker) as client:
                    reply = client.ask(key, version, request)
                codes = codes_of(reply, version)
                assert error in set().union(*codes.values()), api.name
                assert fault.hits == 1
