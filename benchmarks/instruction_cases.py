"""The requests of `benchmarks.instructions`: what is done before, and one step of what is counted."""

import itertools
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from benchmarks import load
from benchmarks.asking import ask
from riverlog.records.builder import build_batch
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.messages.sync_group import SyncGroupRequest

Step = Callable[[], object]
Prepare = Callable[[socket.socket, socket.socket], Step]
TIMESTAMP_MS = 1_700_000_000_000
_MARKERS_S = (
    0.1  # After the reply to a commit, until its markers stand: asked too soon, a broker is asked twice.
)
_names = (f"topic-{number}" for number in itertools.count())


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    prepare: Prepare
    times: int = 100
    warm_up: int = 80


def produced(version: int, acks: int, *batches: bytes, transactional_id: str | None = None) -> Prepare:
    """Requests with these batches, one for each partition, of one topic; each like the one before it."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, len(batches))
        frame = _produce(topic, version, acks, dict(enumerate(batches)), transactional_id)
        return lambda: load.call(client, frame)

    return prepare


def in_turns(version: int, acks: int, batch: bytes) -> Prepare:
    """To two partitions in turns, so that no request is like the one before it. A step is two requests."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, 2)
        frames = [_produce(topic, version, acks, {index: batch}) for index in range(2)]
        return lambda: [load.call(client, frame) for frame in frames]

    return prepare


def unanswered(batch: bytes) -> Prepare:
    """acks=0, and a small request after it, since something must tell that it was read."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client)
        frame = _produce(topic, 9, 0, {0: batch})
        asked = load.frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

        def step() -> None:
            client.sendall(frame)
            load.call(client, asked)

        return step

    return prepare


def idempotent(version: int, records: int, value_bytes: int) -> Prepare:
    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client)
        producer = _producer(client, None)
        sequences = itertools.count(0, records)
        data = [_record(value_bytes)] * records

        def step() -> None:
            batch = build_batch(
                data, producer_id=producer[0], producer_epoch=producer[1], base_sequence=next(sequences)
            )
            load.call(client, _produce(topic, version, -1, {0: batch}))

        return step

    return prepare


def fetched(version: int, partitions: int, batch: bytes, max_bytes: int) -> Prepare:
    """The same records of each partition again and again, outside of a session."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, partitions)
        for index in range(partitions):
            for _ in range(3):
                load.call(client, _produce(topic, 9, 1, {index: batch}))
        frame = _fetch(topic, version, dict.fromkeys(range(partitions), 0), max_bytes=max_bytes)
        return lambda: load.call(client, frame)

    return prepare


def long_poll(version: int, partitions: int, batch: bytes) -> Prepare:
    """A reader at the end is told of one record; a step is its fetch and the produce that ends its wait."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, partitions)
        produce = _produce(topic, 9, 1, {0: batch})
        offsets = dict.fromkeys(range(partitions), 0)

        def step() -> None:
            other.sendall(_fetch(topic, version, offsets, max_wait_ms=60_000))
            ask(client, ApiKey.API_VERSIONS, 0, ApiVersionsRequest())  # The fetch was read before.
            load.call(client, produce)
            load.read_reply(other)
            offsets[0] += 1

        return step

    return prepare


def fetched_in_session(partitions: int, batch: bytes) -> Prepare:
    """A session of many partitions, and a record in one of them for each fetch."""

    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, partitions)
        produce = _produce(topic, 9, 1, {0: batch})
        request = _fetch_request(topic, 11, dict.fromkeys(range(partitions), 0), session_epoch=0)
        session_id = ask(client, ApiKey.FETCH, 11, request).session_id
        epochs, offset = itertools.count(1), itertools.count()

        def step() -> None:
            load.call(client, produce)
            again = _fetch_request(topic, 11, {0: next(offset)}, session_epoch=next(epochs))
            again.session_id = session_id
            load.call(client, load.frame(ApiKey.FETCH, 11, again))

        return step

    return prepare


def offsets_listed(version: int, partitions: int, timestamp: int) -> Prepare:
    def prepare(client: socket.socket, other: socket.socket) -> Step:
        topic = _topic(client, partitions)
        for index in range(partitions):
            load.call(client, _produce(topic, 9, 1, {index: SMALL}))
        asked = [
            ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(partitions)
        ]
        listed = ListOffsetsTopic(name=topic[0], partitions=asked)
        frame = load.frame(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(topics=[listed]))
        return lambda: load.call(client, frame)

    return prepare


def metadata(client: socket.socket, other: socket.socket) -> Step:
    name, _ = _topic(client, 4)
    frame = load.frame(ApiKey.METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
    return lambda: load.call(client, frame)


def api_versions(client: socket.socket, other: socket.socket) -> Step:
    request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    frame = load.frame(ApiKey.API_VERSIONS, 3, request)
    return lambda: load.call(client, frame)


def transaction(client: socket.socket, other: socket.socket) -> Step:
    """One that adds its partition, writes one batch and commits."""
    topic, name = _topic(client), "paid"
    producer_id, epoch = _producer(client, name)
    sequences = itertools.count()
    added = [AddPartitionsToTxnTopic(name=topic[0], partitions=[0])]

    def begin() -> int:
        reply = ask(
            client,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=added,
            ),
        )
        error: int = reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return error

    def step() -> None:
        assert begin() == 0
        batch = build_batch(
            [_record(100)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=next(sequences),
            transactional=True,
        )
        load.call(client, _produce(topic, 9, -1, {0: batch}, name))
        end = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        assert ask(client, ApiKey.END_TXN, 3, end).error_code == 0
        time.sleep(_MARKERS_S)

    return step


def heartbeat(client: socket.socket, other: socket.socket) -> Step:
    member_id, generation = _member(client, "group")
    request = HeartbeatRequest(group_id="group", generation_id=generation, member_id=member_id)
    frame = load.frame(ApiKey.HEARTBEAT, 4, request)
    return lambda: load.call(client, frame)


def offset_commit(client: socket.socket, other: socket.socket) -> Step:
    name, _ = _topic(client)
    member_id, generation = _member(client, "committing")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="committing",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=[partition])],
    )
    frame = load.frame(ApiKey.OFFSET_COMMIT, 8, request)
    return lambda: load.call(client, frame)


Topic = tuple[str, UUID]


def _topic(client: socket.socket, partitions: int = 1) -> Topic:
    name = next(_names)
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    reply = ask(client, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    assert reply.topics[0].error_code == 0
    return name, reply.topics[0].topic_id


def _producer(client: socket.socket, transactional_id: str | None) -> tuple[int, int]:
    if transactional_id is not None:
        _find_coordinator(client, transactional_id, of_transactions=True)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    while (reply := ask(client, ApiKey.INIT_PRODUCER_ID, 4, request)).error_code:
        pass  # The coordinator is loading.
    return reply.producer_id, reply.producer_epoch


def _find_coordinator(client: socket.socket, key: str, *, of_transactions: bool) -> None:
    """Which has the internal topic made where it is not there."""
    request = FindCoordinatorRequest(key=key, key_type=1 if of_transactions else 0)
    while ask(client, ApiKey.FIND_COORDINATOR, 3, request).error_code:
        pass


def _member(client: socket.socket, group: str) -> tuple[str, int]:
    _find_coordinator(client, group, of_transactions=False)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    while (reply := ask(client, ApiKey.JOIN_GROUP, 5, request)).error_code:
        request.member_id = reply.member_id
    synced = SyncGroupRequest(group_id=group, generation_id=reply.generation_id, member_id=reply.member_id)
    assert ask(client, ApiKey.SYNC_GROUP, 3, synced).error_code == 0
    return reply.member_id, reply.generation_id


def _record(value_bytes: int) -> tuple[int, None, bytes, tuple[()]]:
    return TIMESTAMP_MS, None, bytes(value_bytes), ()


def _batch(records: int, value_bytes: int) -> bytes:
    return build_batch([_record(value_bytes)] * records)


def _produce(
    topic: Topic, version: int, acks: int, batches: dict[int, bytes], transactional_id: str | None = None
) -> bytes:
    data = [PartitionProduceData(index=index, records=batch) for index, batch in batches.items()]
    name, topic_id = (topic[0], None) if version < 13 else ("", topic[1])
    topics = [TopicProduceData(name=name, topic_id=topic_id, partition_data=data)]
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=topics
    )
    return load.frame(ApiKey.PRODUCE, version, request)


def _fetch_request(
    topic: Topic,
    version: int,
    offsets: dict[int, int],
    *,
    max_bytes: int = 1_000_000,
    max_wait_ms: int = 500,
    session_epoch: int = -1,
) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        for index, offset in offsets.items()
    ]
    name, topic_id = (topic[0], None) if version < 13 else ("", topic[1])
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50_000_000,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=wanted)],
    )


def _fetch(
    topic: Topic, version: int, offsets: dict[int, int], *, max_bytes: int = 1_000_000, max_wait_ms: int = 500
) -> bytes:
    request = _fetch_request(topic, version, offsets, max_bytes=max_bytes, max_wait_ms=max_wait_ms)
    return load.frame(ApiKey.FETCH, version, request)


SMALL = _batch(1, 100)
KB = _batch(10, 90)
KB_10 = _batch(10, 1000)
KB_100 = _batch(100, 1000)
MB = _batch(1000, 985)
LATEST = -1

CASES = [
    Case("produce 1 record, v9, acks 1, repeated", produced(9, 1, SMALL)),
    Case("produce 1 record, v12, acks all, repeated", produced(12, -1, SMALL)),
    Case("produce 1 record, v13, acks 1, repeated", produced(13, 1, SMALL)),
    Case("produce 1 record, v8, acks 1, single", produced(8, 1, SMALL)),
    Case("produce 1 record, v9, acks 1, single, twice", in_turns(9, 1, SMALL)),
    Case("produce 1 record, v13, acks all, single, twice", in_turns(13, -1, SMALL)),
    Case("produce 1 record, v7, acks 1, general", produced(7, 1, SMALL)),
    Case("produce 1 record, v9, acks 0, and ApiVersions", unanswered(SMALL)),
    Case("produce 1 record each to 3 partitions, v9, general", produced(9, 1, SMALL, SMALL, SMALL)),
    Case("produce 1 record each to 3 partitions, v13, general", produced(13, 1, SMALL, SMALL, SMALL)),
    Case("produce 1 record, idempotent, v9", idempotent(9, 1, 100)),
    Case("produce 10 records, idempotent, v13", idempotent(13, 10, 100)),
    Case("produce 1 KB, v9", produced(9, 1, KB)),
    Case("produce 10 KB, v9", produced(9, 1, KB_10)),
    Case("produce 10 KB, v9, single, twice", in_turns(9, 1, KB_10)),
    Case("produce 100 KB, v9", produced(9, 1, KB_100), times=50),
    Case("produce 1 MB, v9", produced(9, 1, MB), times=20, warm_up=10),
    Case("fetch 1 partition, v11, hot", fetched(11, 1, SMALL, 1_000_000)),
    Case("fetch 1 partition, v16, hot", fetched(16, 1, SMALL, 1_000_000)),
    Case("fetch 1 partition, v10, hot", fetched(10, 1, SMALL, 1_000_000)),
    Case("fetch 1 partition, v11, 1 MB", fetched(11, 1, MB, 1_100_000), times=20, warm_up=10),
    Case("fetch 20 partitions, v11, hot", fetched(11, 20, SMALL, 1_000_000), times=50),
    Case("fetch 20 partitions, v16, hot", fetched(16, 20, SMALL, 1_000_000), times=50),
    Case("long poll, 1 partition, v11, and its produce", long_poll(11, 1, SMALL)),
    Case("long poll, 1 partition, v16, and its produce", long_poll(16, 1, SMALL)),
    Case("long poll, 20 partitions, v11, and its produce", long_poll(11, 20, SMALL), times=50),
    Case("fetch session of 20 partitions, and its produce", fetched_in_session(20, SMALL)),
    Case("list offsets, 1 partition, v5, latest", offsets_listed(5, 1, LATEST)),
    Case("list offsets, 10 partitions, v9, latest", offsets_listed(9, 10, LATEST)),
    Case("list offsets, 1 partition, v9, by time", offsets_listed(9, 1, TIMESTAMP_MS)),
    Case("transaction of one batch", transaction, times=30, warm_up=20),
    Case("heartbeat of a classic group", heartbeat),
    Case("offset commit", offset_commit),
    Case("metadata of one topic, v12", metadata),
    Case("api versions, v3", api_versions),
]
