"""Frames, headers and the table of APIs."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.wire.apis import APIS, ApiKey, message_class
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.framing import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.wire.kio_bridge import kio_encode, kio_headers, kio_request_header, kio_versions_of_api
from tests.wire.message_values import listed_apis

# What Apache Kafka 4.3.1 answers to ApiVersions, in the order of the keys: key, first and last version.
# InitProducerId (22) goes one further: version 6 is KIP-939.
ADVERTISED = """
0 0 13, 1 4 18, 2 1 11, 3 0 13, 8 2 10, 9 1 10, 10 0 6, 11 0 9, 12 0 4, 13 0 5, 14 0 5, 15 0 6, 16 0
5, 17 0 1, 18 0 4, 19 2 7, 20 1 6, 21 0 2, 22 0 6, 23 2 4, 24 0 5, 25 0 4, 26 0 5, 27 1 2, 28 0 5,
29 1 3, 30 1 3, 31 1 3, 32 1 4, 33 0 2, 34 1 2, 35 1 5, 36 0 2, 37 0 3, 38 1 3, 39 1 2, 40 1 2, 41 1
3, 42 0 2, 43 0 2, 44 0 1, 45 0 1, 46 0 0, 47 0 0, 48 0 1, 49 0 1, 50 0 0, 51 0 0, 55 0 2, 57 0 2,
60 0 2, 61 0 0, 64 0 0, 65 0 0, 66 0 2, 68 0 1, 69 0 1, 74 0 1, 75 0 0, 76 1 1, 77 1 1, 78 1 2, 79 1
2, 80 0 1, 81 0 0, 83 0 0, 84 0 0, 85 0 1, 86 0 0, 87 0 1, 88 0 0, 89 0 0, 90 0 1, 91 0 0, 92 0 0
"""


def test_the_table_holds_what_kafka_advertises() -> None:
    expected = [tuple(map(int, row.split())) for row in ADVERTISED.split(",")]
    advertised = [api for api in APIS.values() if api.key is not ApiKey.ENVELOPE]
    assert [(api.key, api.min_version, api.max_version) for api in advertised] == expected


def test_every_api_with_messages_has_them_of_all_versions_but_produce_0_to_2() -> None:
    for key, api in listed_apis().items():
        for cls in (api.request, api.response):
            first = 3 if key is ApiKey.PRODUCE else api.min_version
            assert cls.VERSIONS[0] == first
            assert cls.VERSIONS[1] >= api.max_version
            assert api.flexible_version == cls.FLEXIBLE
            assert cls.__name__.startswith(api.name)


def test_requests_and_responses_have_the_same_versions() -> None:
    for key in listed_apis():
        assert message_class(key, "Request").VERSIONS == message_class(key, "Response").VERSIONS


def test_header_versions_follow_the_flexible_versions_except_for_api_versions_responses() -> None:
    fetch, api_versions = APIS[ApiKey.FETCH], APIS[ApiKey.API_VERSIONS]
    assert [fetch.request_header_version(v) for v in (11, 12)] == [1, 2]
    assert [fetch.response_header_version(v) for v in (11, 12)] == [0, 1]
    assert [api_versions.request_header_version(v) for v in (2, 3)] == [1, 2]
    assert [api_versions.response_header_version(v) for v in (0, 3, 4)] == [0, 0, 0]
    assert APIS[ApiKey.SASL_HANDSHAKE].request_header_version(1) == 1


@given(
    key=st.sampled_from([*APIS]),
    version=st.integers(-1, 30),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=200),
)
def test_request_headers_are_read_as_kio_writes_them(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None
) -> None:
    header = kio_request_header(APIS[key].request_header_version(version))(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    raw = kio_encode(header)
    read, end = decode_request_header(b"size" + raw + b"body", 4)
    assert read == RequestHeader(key, version, correlation_id, client_id)
    assert end == 4 + len(raw)
    for cut in range(len(raw)):
        with pytest.raises(MalformedMessage):
            decode_request_header(raw[:cut])


def test_the_header_of_an_unknown_api_versions_version_can_be_read() -> None:
    header, end = decode_request_header(bytes.fromhex("0012 0063 0000004d 0001 78 00".replace(" ", "")))
    assert (header, end) == (RequestHeader(18, 99, 77, "x"), 12)


def test_the_header_of_an_unknown_api_can_be_read() -> None:
    header, _ = decode_request_header(bytes.fromhex("03e7 0000 00000001 ffff".replace(" ", "")))
    assert header == RequestHeader(999, 0, 1, None)


def test_tags_in_a_request_header_are_skipped() -> None:
    raw = bytes.fromhex("0012 0004 00000001 ffff".replace(" ", "")) + b"\x01\x05\x02ab" + b"body"
    assert decode_request_header(raw) == (RequestHeader(18, 4, 1, None), len(raw) - 4)


def test_a_produce_request_too_old_to_decode_has_a_readable_header() -> None:
    raw = bytes.fromhex("0000 0002 00000001 0001 61 ffff".replace(" ", ""))
    assert decode_request_header(raw) == (RequestHeader(0, 2, 1, "a"), 11)
    with pytest.raises(ValueError, match="versions 3 to 13"):
        decode(APIS[ApiKey.PRODUCE].request, 2, raw, 11)


def test_golden_requests() -> None:
    plain = encode_request(RequestHeader(3, 1, 7, "c"), MetadataRequest(topics=None))
    assert plain.hex(" ") == "00 00 00 0f 00 03 00 01 00 00 00 07 00 01 63 ff ff ff ff"
    named = encode_request(
        RequestHeader(3, 9, 7, None), MetadataRequest(topics=[MetadataRequestTopic(name="ab")])
    )
    expected = "00 00 00 14 00 03 00 09 00 00 00 07 ff ff 00 02 03 61 62 00 01 00 00 00"
    assert named.hex(" ") == expected
    asked = encode_request(
        RequestHeader(18, 3, 1, "c"),
        ApiVersionsRequest(client_software_name="lib", client_software_version="1"),
    )
    assert asked.hex(" ") == "00 00 00 13 00 12 00 03 00 00 00 01 00 01 63 00 04 6c 69 62 02 31 00"
    fetch = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[FetchPartition()])]
    )
    assert encode(fetch, 4).hex() == (
        "ffffffff000001f4000000017fffffff00" + "00000001" + "000174" + "00000001" + "00" * 16
    )


def test_golden_responses() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=4)])
    frame = encode_response(ApiKey.API_VERSIONS, 0, 77, refusal)
    assert frame.hex() == "000000100000004d002300000001001200000004"  # as Kafka answers to version 99
    newest = encode_response(ApiKey.API_VERSIONS, 4, 77, ApiVersionsResponse())
    assert newest.hex(" ") == "00 00 00 0c 00 00 00 4d 00 00 01 00 00 00 00 00"
    flexible = encode_response(ApiKey.METADATA, 9, 77, MetadataResponse(controller_id=1))
    assert flexible[:9] == b"\0\0\0\x15" + b"\0\0\0\x4d" + b"\0"


def test_header_versions_are_kios_also_of_apis_without_messages() -> None:
    for key, api in APIS.items():
        telling = {api.min_version, api.flexible_version - 1, api.flexible_version, api.max_version}
        for version in telling.intersection(kio_versions_of_api(key)):
            request_header, response_header = kio_headers(key, version)
            assert request_header.__version__ == api.request_header_version(version), (key, version)
            assert response_header.__version__ == api.response_header_version(version), (key, version)


def test_response_heads_are_kios() -> None:
    for key, api in listed_apis().items():
        for version in range(api.response.VERSIONS[0], api.max_version + 1):
            _, response_header = kio_headers(key, version)
            head = kio_encode(response_header(correlation_id=-5))
            body = encode(api.response(), version)
            size = (len(head) + len(body)).to_bytes(4)
            frame = encode_response(key, version, -5, api.response())
            assert frame == size + head + body
            assert decode_response_header(key, version, frame, 4) == (-5, 4 + len(head))
            with pytest.raises(MalformedMessage):
                decode_response_header(key, version, head[:-1])


def test_values_that_do_not_fit_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="MetadataRequest v1"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name="n" * 40_000)]), 1)
    with pytest.raises(ValueError, match="MetadataRequest v1"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 1)
    with pytest.raises(ValueError, match="MetadataRequest v0"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(ValueError, match="versions 0 to 13, not 14"):
        encode(MetadataRequest(), 14)


def test_importing_the_tables_of_apis_loads_no_message() -> None:
    script = (
        "import sys, riverlog.wire.apis as apis, riverlog.wire.framing;"
        "loaded = lambda: [m for m in sys.modules if m.startswith('riverlog.wire.messages.')];"
        "assert loaded() == [], loaded();"
        "apis.APIS[apis.ApiKey.FETCH].request;"
        "assert loaded() == ['riverlog.wire.messages.fetch'], loaded()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
