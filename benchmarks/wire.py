"""What decoding and encoding cost per request, by the compiled tables, and by hand where there is that.

`python -m benchmarks wire` prints it. Each figure is the best of many short runs, so that other work on
the machine disturbs it least.
"""

import timeit
from collections.abc import Callable, Iterator
from uuid import UUID

from benchmarks.figures import Figure
from riverlog.model.disk import FileSlice
from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.fetch_request import SingleFetch, decode_fetch
from riverlog.wire.by_hand.fetch_response import encode_single_fetch
from riverlog.wire.by_hand.produce_request import SingleBatch, decode_produce
from riverlog.wire.by_hand.produce_response import encode_single_produce
from riverlog.wire.by_hand.produce_template import VERSION_MIN as TEMPLATE_VERSION_MIN
from riverlog.wire.by_hand.produce_template import ProduceTemplate
from riverlog.wire.codec import decode
from riverlog.wire.framing import (
    RequestHeader,
    decode_request_header,
    encode_request,
    encode_response_in_parts,
)
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
RECORDS = FileSlice(None, 0, 200)  # type: ignore[arg-type]  # A codec does not touch the file.
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
    found = [fetch.PartitionData(partition_index=i, records=RECORDS) for i in range(partitions)]
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


def by_tables(
    label: str, key: ApiKey, version: int, messages: tuple[Message, Message]
) -> Iterator[tuple[str, float, str]]:
    """Decode the request and encode the response."""
    request, response = messages
    frame = framed(key, version, request)
    _, start = decode_request_header(frame)
    cls = type(request)
    yield f"{label}, decode by tables", best_us(lambda: decode(cls, version, frame, start)), "us"
    encode_us = best_us(lambda: encode_response_in_parts(key, version, 1, response))
    yield f"{label}, encode by tables", encode_us, "us"


def framed(key: ApiKey, version: int, request: Message) -> memoryview:
    return memoryview(encode_request(RequestHeader(key, version, 1, "bench"), request)[4:])


def produce_by_hand(version: int) -> Iterator[tuple[str, float, str]]:
    """One batch, in the short form and by a template."""
    label = f"Produce v{version}"
    frame = framed(ApiKey.PRODUCE, version, produce_messages(1)[0])
    header, start = decode_request_header(frame)
    single = decode_produce(frame, version, start)
    assert isinstance(single, SingleBatch)
    row = (0, 0, 10**6, -1, 0)
    yield f"{label}, decode by hand", best_us(lambda: decode_produce(frame, version, start)), "us"
    yield f"{label}, encode by hand", best_us(lambda: encode_single_produce(version, 1, single, row)), "us"
    if version >= TEMPLATE_VERSION_MIN:
        template = ProduceTemplate(frame, header, start, single)
        yield f"{label}, decode by template", best_us(lambda: template.match(frame)), "us"
        yield f"{label}, encode by template", best_us(lambda: template.encode_reply(1, 10**6, 0)), "us"


def fetch_by_hand(version: int) -> Iterator[tuple[str, float, str]]:
    label = f"Fetch v{version}"
    frame = framed(ApiKey.FETCH, version, fetch_messages(1)[0])
    _, start = decode_request_header(frame)
    single = decode_fetch(frame, version, start)
    assert isinstance(single, SingleFetch)
    row = (0, 10**6, 10**6, 0)
    encode_us = best_us(lambda: encode_single_fetch(version, 1, single, row, RECORDS, 0))
    yield f"{label}, decode by hand", best_us(lambda: decode_fetch(frame, version, start)), "us"
    yield f"{label}, encode by hand", encode_us, "us"


def measurements() -> Iterator[tuple[str, float, str]]:
    header = memoryview(bytes.fromhex("0000 000d 00000001 0007".replace(" ", "")) + b"rdkafka\0")
    yield "request header, decode", best_us(lambda: decode_request_header(header)), "us"
    for version in (8, 10, 13):
        yield from produce_by_hand(version)
        yield from by_tables(f"Produce v{version}", ApiKey.PRODUCE, version, produce_messages(1))
    yield from by_tables("Produce v13 x 50", ApiKey.PRODUCE, 13, produce_messages(50))
    for version in (11, 17):
        yield from fetch_by_hand(version)
        yield from by_tables(f"Fetch v{version}", ApiKey.FETCH, version, fetch_messages(1))
        yield from by_tables(f"Fetch v{version} x 50", ApiKey.FETCH, version, fetch_messages(50))
    for version in (5, 7):
        yield from by_tables(f"ListOffsets v{version}", ApiKey.LIST_OFFSETS, version, list_offsets_messages())
    for key, version, request, response in table_messages():
        yield from by_tables(f"{type(request).__name__[:-7]} v{version}", key, version, (request, response))


def run() -> list[Figure]:
    return [Figure(name, value, unit) for name, value, unit in measurements()]
