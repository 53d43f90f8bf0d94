"""The door: every request passes it once, whichever way it takes, and what it refuses is not done."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

import pytest

from riverlog.broker.dispatch import routes
from riverlog.broker.dispatch.door import DoorRefusal, OpenDoor
from riverlog.broker.dispatch.route import AnyRoute
from riverlog.broker.exchange.context import HangUp, Parts
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.produce.handler import SERVED_VERSION_MIN
from riverlog.broker.produce.templated_writes import TemplatedWrites
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics
from riverlog.model.rights import ANONYMOUS, Principal
from riverlog.testing import Broker
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.by_hand.fetch_request import (
    NAMED_SINGLE_VERSION,
    SINGLE_VERSION_MIN,
    SingleFetch,
    decode_fetch,
)
from riverlog.wire.by_hand.produce_request import SingleBatch, decode_produce
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.fetch import FetchRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.produce import ProduceRequest
from tests.broker.raw_client import RawClient, fetch_request, produce_request

LATEST = -1


class Passed(NamedTuple):
    api: ApiKey
    client_id: str | None
    principal: Principal
    is_whole_frame: bool


class WatchedDoor(OpenDoor):
    """Notes who passes, and refuses the APIs that it was told to."""

    def __init__(self, routes: Iterable[AnyRoute], metrics: Metrics) -> None:
        super().__init__(routes, metrics)
        self.passed: list[Passed] = []
        self.refused: dict[ApiKey, DoorRefusal] = {}
        self.refuses_all: DoorRefusal | None = None

    def admit(
        self, route: AnyRoute, origin: Origin, client_id: str | None, frame_bytes: int
    ) -> DoorRefusal | None:
        super().admit(route, origin, client_id, frame_bytes)
        self.passed.append(Passed(route.api.key, client_id, origin.principal, frame_bytes > 10))
        return self.refuses_all or self.refused.get(route.api.key)


class Watched(NamedTuple):
    broker: Broker
    door: WatchedDoor
    decoded: list[type]
    """What produce and fetch requests were decoded to, which is the way that they take."""


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    made: list[WatchedDoor] = []
    decoded: list[type] = []

    def noting(decode: Callable[..., object]) -> Callable[..., object]:
        def noted(data: memoryview, version: int, start: int) -> object:
            request = decode(data, version, start)
            decoded.append(type(request))
            return request

        return noted

    monkeypatch.setattr(routes, "decode_produce", noting(decode_produce))
    monkeypatch.setattr(routes, "decode_fetch", noting(decode_fetch))

    def door(routes: Iterable[AnyRoute], metrics: Metrics) -> WatchedDoor:
        made.append(WatchedDoor(routes, metrics))
        return made[-1]

    with Broker(door=door) as broker:
        yield Watched(broker, made[-1], decoded)


def advertised(broker: Broker) -> list[tuple[ApiKey, int]]:
    """Every API with every version that is really served."""
    with RawClient(broker) as client:
        reply = client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    served_since = {ApiKey.PRODUCE: SERVED_VERSION_MIN}
    return [
        (ApiKey(each.api_key), version)
        for each in reply.api_keys
        for version in range(served_since.get(each.api_key, each.min_version), each.max_version + 1)
    ]


def end_offset(broker: Broker, topic: str) -> int:
    with RawClient(broker) as client:
        partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        wanted = [ListOffsetsTopic(name=topic, partitions=[partition])]
        reply = client.ask(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=wanted))
    offset: int = reply.topics[0].partitions[0].offset
    return offset


def test_every_api_and_version_passes_once_and_is_turned_away(watched: Watched) -> None:
    broker, door, _ = watched
    served = advertised(broker)
    assert len({key for key, _ in served}) == 47
    door.refuses_all = HangUp("nobody comes in")
    for key, version in served:
        door.passed.clear()
        with RawClient(broker) as client:
            header = RequestHeader(key, version, 1, "visitor")
            client.socket.sendall(encode_request(header, APIS[key].request()))
            assert client.is_closed(), (key, version)
        assert door.passed == [Passed(key, "visitor", ANONYMOUS, True)], (key, version)


def test_a_refusal_by_error_is_told_where_the_reply_has_a_place_for_it(watched: Watched) -> None:
    broker, door, _ = watched
    door.refused[ApiKey.DESCRIBE_CLUSTER] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    door.refused[ApiKey.LIST_OFFSETS] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with RawClient(broker) as client:
        reply = client.ask(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest())
        assert reply.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        client.send(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1))
        assert client.is_closed()


@pytest.mark.parametrize("version", [8, 9, 12, 13])
def test_each_way_of_a_produce_passes_once(
    watched: Watched, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, door, _ = watched
    by_template: list[int] = []
    answer = TemplatedWrites.answer

    def counting(self: TemplatedWrites, correlation_id: int, records: memoryview) -> Parts | None:
        by_template.append(correlation_id)
        return answer(self, correlation_id, records)

    monkeypatch.setattr(TemplatedWrites, "answer", counting)
    with RawClient(broker) as client:
        request = produce_request("here", None)
        request.topic_data[0].topic_id = new_topic(client, "here")
        door.passed.clear()
        for _ in range(10):
            reply = client.ask(ApiKey.PRODUCE, version, request)
            assert reply.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert [each.api for each in door.passed] == [ApiKey.PRODUCE] * 10
        assert bool(by_template) is (version >= 9)
        door.refused[ApiKey.PRODUCE] = HangUp("no more")
        client.send(ApiKey.PRODUCE, version, request)
        assert client.is_closed()
    assert len(door.passed) == 11
    assert end_offset(broker, "here") == 10


PRODUCE_VERSIONS = range(SERVED_VERSION_MIN, APIS[ApiKey.PRODUCE].max_version + 1)
FETCH_VERSIONS = range(APIS[ApiKey.FETCH].min_version, APIS[ApiKey.FETCH].max_version + 1)
WAYS = {"one partition": 1, "several partitions": 2}


@pytest.mark.parametrize("partitions", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_every_version_of_a_produce_passes_once_and_is_refused_once(
    watched: Watched, version: int, partitions: int
) -> None:
    broker, door, decoded = watched
    with RawClient(broker) as client:
        request = produce_request("here", None)
        topic = request.topic_data[0]
        topic.topic_id = new_topic(client, "here", partitions)
        batches = [produce_request("here", None, partition=index) for index in range(partitions)]
        topic.partition_data = [each.topic_data[0].partition_data[0] for each in batches]
        door.passed.clear()
        reply = client.ask(ApiKey.PRODUCE, version, request)
        assert {each.error_code for each in reply.responses[0].partition_responses} == {ErrorCode.NONE}
        door.refused[ApiKey.PRODUCE] = HangUp("no more")
        client.send(ApiKey.PRODUCE, version, request)
        assert client.is_closed()
    assert [each.api for each in door.passed] == [ApiKey.PRODUCE] * 2
    is_single = partitions == 1 and version >= 8
    assert decoded == [SingleBatch if is_single else ProduceRequest]
    assert end_offset(broker, "here") == 1


@pytest.mark.parametrize("partitions", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_every_version_of_a_fetch_passes_once_and_is_refused_once(
    watched: Watched, version: int, partitions: int
) -> None:
    broker, door, decoded = watched
    with RawClient(broker) as client:
        topic_id = new_topic(client, "here", partitions)
        client.produce("here")
        decoded.clear()
        door.passed.clear()
        request = fetch_request("here", 0, session_epoch=-1)
        topic = request.topics[0]
        topic.topic_id = topic_id
        wanted = [fetch_request("here", 0, partition=index) for index in range(partitions)]
        topic.partitions = [each.topics[0].partitions[0] for each in wanted]
        reply = client.ask(ApiKey.FETCH, version, request)
        assert {each.error_code for each in reply.responses[0].partitions} == {ErrorCode.NONE}
        door.refused[ApiKey.FETCH] = HangUp("no more")
        client.send(ApiKey.FETCH, version, request)
        assert client.is_closed()
    assert [each.api for each in door.passed] == [ApiKey.FETCH] * 2
    is_single = partitions == 1 and (version == NAMED_SINGLE_VERSION or version >= SINGLE_VERSION_MIN)
    assert decoded == [SingleFetch if is_single else FetchRequest]


def test_a_long_poll_passes_when_it_comes_and_not_when_it_is_answered(watched: Watched) -> None:
    broker, door, _ = watched
    with RawClient(broker) as reader, RawClient(broker) as writer:
        new_topic(writer, "here")
        door.passed.clear()
        reader.send_long_poll("here")
        writer.produce("here")
        assert reader.receive(ApiKey.FETCH, 12).responses[0].partitions[0].records
    assert [each.api for each in door.passed] == [ApiKey.FETCH, ApiKey.PRODUCE]


def new_topic(client: RawClient, name: str, partitions: int = 1) -> UUID:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    reply = client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    topic_id: UUID = reply.topics[0].topic_id
    return topic_id
