"""Frames: sizes, headers, unknown keys and versions, order of answers."""

from __future__ import annotations

from tests.differential import codec
from tests.differential.sequences.common import VERSIONS, created, fetch, wanted
from tests.differential.steps import Call, Collect, Frame, Later, Script, Step, Together, append, truncate

_NAMED = {"client_software_name": "a", "client_software_version": "1"}


def scripts() -> list[Script]:
    return [
        Script("Framing", "sizes that cannot be", _sizes()),
        Script("Framing", "headers that break off", _headers()),
        Script("Framing", "client ids", _client_ids()),
        Script("Framing", "keys that no client may use", _keys()),
        Script("Framing", "versions that are not offered", _versions()),
        Script("Framing", "many requests in one write", _pipelined()),
        Script("Framing", "a broken request after good ones", _broken_after_good()),
        Script("Framing", "a waiting fetch holds the answers behind it", _held()),
        Script("Framing", "tagged fields", _tagged()),
    ]


def header(
    key: int, version: int, correlation: int = 99, client: bytes = b"\x00\x01x", tail: bytes = b""
) -> bytes:
    fixed = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return fixed + correlation.to_bytes(4, "big", signed=True) + client + tail


def _sizes() -> list[Step]:
    return [
        Frame(b"", "size 0", size=0),
        Frame(b"", "size -1", size=-1),
        Frame(b"", "the smallest integer as size", size=-(2**31)),
        Frame(b"", "one byte more than socket.request.max.bytes", size=104857601),
        Frame(b"", "the largest integer as size", size=2**31 - 1),
        Frame(b"\x00", "size 1", size=1),
        Frame(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "a web browser", with_size=False),
        Call("ApiVersions", 0),
    ]


def _headers() -> list[Step]:
    whole = header(18, 0)
    frames: list[Step] = [Frame(whole[:end], f"{end} bytes of a header") for end in (2, 4, 7, 8, 9, 10)]
    return [*frames, Call("ApiVersions", 0)]


def _client_ids() -> list[Step]:
    reads = ("ApiVersions", 0)
    return [
        Frame(header(18, 0, client=b"\xff\xff"), "no client id", reads_as=reads),
        Frame(header(18, 0, client=b"\x00\x00"), "an empty client id", reads_as=reads),
        Frame(header(18, 0, client=b"\xff\xfe"), "a client id of length -2", reads_as=reads),
        Frame(header(18, 0, client=b"\x7f\xff"), "a client id longer than the frame", reads_as=reads),
        Frame(header(18, 0, client=b"\x00\x02\xc3\x28"), "a client id that is not UTF-8", reads_as=reads),
        Frame(header(18, 0, client=b"\x00\x03a\x00b"), "a client id with a zero byte", reads_as=reads),
        Frame(header(18, 0, correlation=-7), "a negative correlation id", reads_as=reads),
        Call("Metadata", 12, {"topics": []}, client_id=None),
        Call("Metadata", 12, {"topics": []}, client_id=""),
        Call("Metadata", 12, {"topics": []}, client_id="ünïcode"),
    ]


def _keys() -> list[Step]:
    unknown = [-1, 93, 999, 32767]
    removed = [4, 5, 6, 7]
    between_brokers = [52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82]
    keys = unknown + removed + between_brokers
    return [Frame(header(key, 0, tail=b"\x00" * 16), f"key {key}, version 0") for key in keys]


def _versions() -> list[Step]:
    frames: list[Step] = []
    for api, versions in VERSIONS.items():
        if api == "ApiVersions":
            continue
        key = codec.api_key(api)
        first = 0 if api == "Produce" else versions[0]
        beyond = versions[-1] + (2 if api == "InitProducerId" else 1)  # we serve its version 6, Kafka not
        absent = (beyond, -1, 32767, *range(first))
        frames += [Frame(header(key, v, tail=bytes(40)), f"{api} version {v}") for v in absent]
    return frames


def _pipelined() -> list[Step]:
    calls = (
        Call("ApiVersions", 3, _NAMED),
        Call("Metadata", 0, {"topics": [{"name": "pipelined"}]}),
        Call("DescribeCluster", 0),
        Call("ApiVersions", 0),
        Call("InitProducerId", 1, {"transactional_id": None, "transaction_timeout_ms": 1000}),
        Call("ListOffsets", 1, {"replica_id": -1, "topics": []}),
        Call("DescribeLogDirs", 1, {"topics": []}),
    )
    return [
        *created("pipelined"),
        Together(calls),
        Together(tuple(Call("Metadata", v, {"topics": []}) for v in range(1, 13))),
    ]


def _broken_after_good() -> list[Step]:
    good = Call("DescribeCluster", 0)
    return [
        Together((good, good, Call("Metadata", 9, {"topics": []}, edits=(truncate(1),)))),
        Together((good, Frame(header(999, 0), "an unknown key"))),
        Together((Frame(header(999, 0), "an unknown key first"), good)),
        good,
    ]


def _held() -> list[Step]:
    waiting = fetch(11, "held", wanted(0, 0), max_wait_ms=400, min_bytes=1)
    behind = Call("Metadata", 1, {"topics": []})
    other = Call("Metadata", 1, {"topics": []}, on="other")
    return [*created("held"), Together((waiting, behind)), Later("held", waiting), other, Collect("held")]


def _tagged() -> list[Step]:
    """A flexible body ends in a count of tagged fields; unknown ones are skipped."""
    plain = Call("DescribeCluster", 0)
    cut = truncate(1)
    tails = {
        "one unknown tag": b"\x01\x63\x02ab",
        "an unknown tag without content": b"\x01\x63\x00",
        "three unknown tags": b"\x03\x61\x01a\x62\x01b\x63\x01c",
        "tags out of order": b"\x02\x63\x01a\x61\x01b",
        "the same tag twice": b"\x02\x63\x01a\x63\x01b",
        "a tag longer than the frame": b"\x01\x63\x7fab",
        "a count without tags": b"\x7f",
        "a count in six bytes": b"\xff\xff\xff\xff\xff\x0f",
    }
    calls: list[Step] = [Call("DescribeCluster", 0, edits=(cut, append(tail))) for tail in tails.values()]
    return [plain, *calls]
