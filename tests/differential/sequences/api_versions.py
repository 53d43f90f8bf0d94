"""ApiVersions: the one API that answers in a version it was not asked in."""

from __future__ import annotations

from tests.differential.sequences.common import VERSIONS
from tests.differential.steps import Call, Frame, Script

_CLIENT = {"client_software_name": "riverlog-differential", "client_software_version": "1.0"}


def scripts() -> list[Script]:
    return [
        *(
            Script("ApiVersions", f"version {v}", [Call("ApiVersions", v, _CLIENT)])
            for v in VERSIONS["ApiVersions"]
        ),
        Script("ApiVersions", "client names that are refused", _bad_names()),
        Script("ApiVersions", "versions from the future", _future()),
    ]


def _bad_names() -> list[Call]:
    names = ["", "-starts-with-dash", "with space", "ends-with-dash-", "ok", "ünïcode", "dots.and-dashes.ok"]
    calls = []
    for version in (3, 4):
        for name in names:
            fields = {"client_software_name": name, "client_software_version": "1"}
            calls.append(Call("ApiVersions", version, fields))
        fields = {"client_software_name": "ok", "client_software_version": "not ok!"}
        calls.append(Call("ApiVersions", version, fields))
    return calls


def _future() -> list[Frame]:
    """Header version 1 or 2 cannot be known to the broker, which must answer all the same."""
    bodies = {
        "a body in the shape of version 3": b"\x03ab\x02c\x00",
        "no body": b"",
        "garbage": b"\xff" * 20,
    }
    frames = []
    for version in (5, 9, 32767):
        for about, body in bodies.items():
            header = b"\x00\x12" + version.to_bytes(2, "big") + b"\x00\x00\x00\x63\x00\x01x\x00"
            frames.append(Frame(header + body, f"version {version}, {about}", reads_as=("ApiVersions", 0)))
    negative = b"\x00\x12\xff\xff\x00\x00\x00\x63\x00\x01x\x00"
    frames.append(Frame(negative, "version -1", reads_as=("ApiVersions", 0)))
    return frames
