"""A response in parts is the same frame, in which records stand as they are and are not copied."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.disk import FileSlice
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.framing import encode_response, encode_response_in_parts
from riverlog.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from riverlog.wire.messages.list_offsets import ListOffsetsResponse
from riverlog.wire.messages.produce import ProduceResponse
from riverlog.wire.schema import Message, RecordData
from tests.wire.message_values import listed_apis, random_message, slice_of, versions_of

FETCH_VERSIONS = versions_of(FetchResponse)


def size_of(part: RecordData) -> int:
    return part.length if isinstance(part, FileSlice) else len(part)


def frame_of(parts: Sequence[RecordData]) -> bytes:
    return b"".join(part for part in parts if not isinstance(part, FileSlice))


@pytest.mark.parametrize("key", listed_apis(), ids=lambda key: key.name)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_parts_of_any_response_are_its_frame(key: ApiKey, seed: int) -> None:
    random = Random(seed)
    cls = APIS[key].response
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        parts = encode_response_in_parts(key, version, 77, message)
        assert all(size_of(part) for part in parts)
        assert frame_of(parts) == encode_response(key, version, 77, message), version


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_response_holding_fields_of_other_versions_leaves_them_out(version: int) -> None:
    random = Random(5)
    for _ in range(20):
        message = random_message(FetchResponse, FETCH_VERSIONS[-1], random)
        parts = encode_response_in_parts(ApiKey.FETCH, version, 1, message)
        assert frame_of(parts) == encode_response(ApiKey.FETCH, version, 1, message)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_records_are_handed_on_as_they_are(version: int) -> None:
    in_file = slice_of(5_000)
    in_memory, view = b"m" * 200, memoryview(b"v" * 300)
    partitions = [
        PartitionData(partition_index=i, records=r)
        for i, r in enumerate((in_file, None, in_memory, b"", view))
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode_response_in_parts(ApiKey.FETCH, version, 9, response)
    handed_on = [part for part in parts if any(part is each for each in (in_file, in_memory, view))]
    assert handed_on == [in_file, in_memory, view]
    assert int.from_bytes(bytes(parts[0][:4])) == sum(map(size_of, parts)) - 4  # type: ignore[arg-type]
    partitions[0].records = b"f" * 5_000
    filled = [b"f" * 5_000 if isinstance(part, FileSlice) else part for part in parts]
    assert frame_of(filled) == encode_response(ApiKey.FETCH, version, 9, response)


@pytest.mark.parametrize("length", [1, 126, 127, 128, 16_382, 16_383])
@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_length_of_a_slice_is_written_as_that_of_bytes(version: int, length: int) -> None:
    def parts_with(records: RecordData) -> list[RecordData]:
        topic = FetchableTopicResponse(partitions=[PartitionData(records=records)])
        return encode_response_in_parts(ApiKey.FETCH, version, 9, FetchResponse(responses=[topic]))

    by_bytes = parts_with(b"r" * length)
    by_slice = parts_with(slice_of(length))
    assert [by_slice[0], *by_slice[2:]] == [by_bytes[0], *by_bytes[2:]]
    assert size_of(by_slice[1]) == size_of(by_bytes[1]) == length


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_no_aborted_transactions_and_none_known_are_different_bytes(version: int) -> None:
    def frame(aborted: list[Any] | None) -> bytes:
        partition = PartitionData(aborted_transactions=aborted)
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
        return frame_of(encode_response_in_parts(ApiKey.FETCH, version, 1, response))

    assert frame(None) != frame([])


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (ApiKey.FETCH, 11, FetchResponse(throttle_time_ms=2**31)),
        (ApiKey.PRODUCE, 9, ProduceResponse(throttle_time_ms=2**31)),
        (ApiKey.LIST_OFFSETS, 6, ListOffsetsResponse(throttle_time_ms=2**31)),
    ],
)
def test_a_value_out_of_range_is_a_value_error(key: ApiKey, version: int, message: Message) -> None:
    with pytest.raises(ValueError, match=f"{type(message).__name__} v{version}"):
        encode_response_in_parts(key, version, 1, message)
