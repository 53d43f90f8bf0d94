"""What decoding and encoding cost per request, by hand and by the compiled tables.

`python -m benchmarks wire` prints it. Each figure is the best of many short runs, so that other work on
the machine disturbs it least.
"""

import timeit
from collections.abc import Callable, Iterator
from uuid import UUID

from benchmarks.figures import Figure
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, decode_request_header, encode_request, encode_response
from riverlog.wire.hot_fetch import decode_fetch_request, encode_fetch_response
from riverlog.wire.hot_list_offsets import decode_list_offsets_request, encode_list_offsets_response
from riverlog.wire.hot_produce import decode_produce_request, encode_produce_response
from riverlog.wire.messages import (
    api_versions,
    create_topics,
    describe_configs,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from riverlog.wire.schema import Message

TOPIC_ID = UUID("6f1d7a0c-4a52-4a9e-9d53-1f7f3f0a4d11")
ROUNDS, CALLS = 40, 200


def best_us(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def produce_messages(partitions: int) -> tuple[Message, Message]:
    batches = [produce.PartitionProduceData(index=i, records=b"r" * 200) for i in range(partitions)]
    taken = [produce.PartitionProduceResponse(index=i, base_offset=10**6) for i in range(partitions)]
    asked = produce.TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=batches)
    answered = produce.TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=taken)
    return (
        produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[asked]),
        produce.ProduceResponse(responses=[answered]),
    )


def fetch_messages(partitions: int) -> tuple[Message, Message]:
    wanted = [fetch.FetchPartition(partition=i, fetch_offset=10**6) for i in range(partitions)]
    found = [fetch.PartitionData(partition_index=i, records=b"r" * 200) for i in range(partitions)]
    asked = fetch.FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=wanted)
    answered = fetch.FetchableTopicResponse(topic="orders", topic_id=TOPIC_ID, partitions=found)
    return fetch.FetchRequest(max_wait_ms=500, topics=[asked]), fetch.FetchResponse(responses=[answered])


def list_offsets_messages() -> tuple[Message, Message]:
    wanted = list_offsets.ListOffsetsTopic(name="orders", partitions=[list_offsets.ListOffsetsPartition()])
    found = [list_offsets.ListOffsetsPartitionResponse(offset=10**6)]
    answered = list_offsets.ListOffsetsTopicResponse(name="orders", partitions=found)
    return list_offsets.ListOffsetsRequest(topics=[wanted]), list_offsets.ListOffsetsResponse(
        topics=[answered]
    )


def table_messages() -> Iterator[tuple[ApiKey, int, Message, Message]]:
    """Requests that come once in a while, which the tables alone serve."""
    partitions = [
        metadata.MetadataResponsePartition(partition_index=i, replica_nodes=[1], isr_nodes=[1])
        for i in range(12)
    ]
    topic = metadata.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)
    broker = metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="orders")])
    yield ApiKey.METADATA, 12, asked, metadata.MetadataResponse(brokers=[broker], topics=[topic])
    keys = [api_versions.ApiVersion(api_key=i, max_version=9) for i in range(75)]
    software = api_versions.ApiVersionsRequest(client_software_name="lib", client_software_version="2.8")
    yield ApiKey.API_VERSIONS, 3, software, api_versions.ApiVersionsResponse(api_keys=keys)
    new = create_topics.CreatableTopic(name="orders", num_partitions=12, replication_factor=1)
    made = create_topics.CreatableTopicResult(name="orders", topic_id=TOPIC_ID, num_partitions=12)
    yield (
        ApiKey.CREATE_TOPICS,
        7,
        create_topics.CreateTopicsRequest(topics=[new]),
        create_topics.CreateTopicsResponse(topics=[made]),
    )
    resource = describe_configs.DescribeConfigsResource(resource_type=2, resource_name="orders")
    configs = [
        describe_configs.DescribeConfigsResourceResult(name=f"some.key.{i}", value="1") for i in range(40)
    ]
    described = describe_configs.DescribeConfigsResult(resource_name="orders", configs=configs)
    yield (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        describe_configs.DescribeConfigsRequest(resources=[resource]),
        describe_configs.DescribeConfigsResponse(results=[described]),
    )
    yield (
        ApiKey.INIT_PRODUCER_ID,
        4,
        init_producer_id.InitProducerIdRequest(),
        init_producer_id.InitProducerIdResponse(producer_id=1),
    )


def both_ways(
    label: str,
    key: ApiKey,
    version: int,
    messages: tuple[Message, Message],
    by_hand: tuple[Callable[..., object], Callable[..., object]] | None = None,
) -> Iterator[tuple[str, float, str]]:
    """Decode the request and encode the response."""
    request, response = messages
    frame = memoryview(encode_request(RequestHeader(key, version, 1, "bench"), request))
    _, start = decode_request_header(frame, 4)
    cls = type(request)
    if by_hand is not None:
        read, write = by_hand
        yield f"{label}, decode by hand", best_us(lambda: read(frame, version, start)), "us"
    yield f"{label}, decode by tables", best_us(lambda: decode(cls, version, frame, start)), "us"
    if by_hand is not None:
        yield f"{label}, encode by hand", best_us(lambda: write(version, 1, response)), "us"
    yield f"{label}, encode by tables", best_us(lambda: encode_response(key, version, 1, response)), "us"


def measurements() -> Iterator[tuple[str, float, str]]:
    header = memoryview(bytes.fromhex("0000 000d 00000001 0007".replace(" ", "")) + b"rdkafka\0")
    yield "request header, decode", best_us(lambda: decode_request_header(header)), "us"
    hot_produce = (decode_produce_request, encode_produce_response)
    hot_fetch = (decode_fetch_request, encode_fetch_response)
    hot_offsets = (decode_list_offsets_request, encode_list_offsets_response)
    for version in (7, 10, 13):
        yield from both_ways(f"Produce v{version}", ApiKey.PRODUCE, version, produce_messages(1), hot_produce)
    yield from both_ways("Produce v13 x 50", ApiKey.PRODUCE, 13, produce_messages(50), hot_produce)
    for version in (11, 17):
        yield from both_ways(f"Fetch v{version}", ApiKey.FETCH, version, fetch_messages(1), hot_fetch)
    yield from both_ways("Fetch v11 x 50", ApiKey.FETCH, 11, fetch_messages(50), hot_fetch)
    yield from both_ways("Fetch v17 x 50", ApiKey.FETCH, 17, fetch_messages(50), hot_fetch)
    for version in (5, 7):
        label = f"ListOffsets v{version}"
        yield from both_ways(label, ApiKey.LIST_OFFSETS, version, list_offsets_messages(), hot_offsets)
    for key, version, request, response in table_messages():
        yield from both_ways(f"{type(request).__name__[:-7]} v{version}", key, version, (request, response))


def run() -> list[Figure]:
    return [Figure(name, value, unit) for name, value, unit in measurements()]
