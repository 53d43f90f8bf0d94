"""What the recordings must hold: every offered version, going well and going wrong, and nothing stale."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential import codec, recording_files
from tests.differential.connection import Connection
from tests.differential.sequences import SCRIPTS
from tests.differential.steps import Call, Frame, Together

Json = Any

CANNOT_SUCCEED = {
    *(("Produce", version) for version in range(3)),
    *(("DescribeAcls", version) for version in range(1, 4)),
}
"""Offered so that old clients compress, and refused when used; and ACLs, which need an authorizer."""

CANNOT_FAIL = {(api, version) for api in ("ApiVersions", "ListGroups") for version in range(3)}
"""A request without fields has nothing that could be wrong; a wrong header has no version."""

OURS_ALONE = {("InitProducerId", 6)}
"""Served here and not by Kafka: KIP-939."""

NOT_RECORDED_YET: set[str] = set()
"""APIs that are served before their sequences are written. Whoever writes them takes the name out."""

_TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


def test_recordings_are_those_of_the_sequences(recorded: dict[str, list[Json]]) -> None:
    written = {script.id: [step.to_json() for step in script.steps] for script in SCRIPTS}
    assert recorded.keys() == written.keys()
    for name, steps in written.items():
        shown = [_sent(exchange) for exchange in recorded[name]]
        assert shown == json.loads(json.dumps(steps)), f"{name} has changed: run make record-oracle"


def test_recordings_are_written_in_the_one_format() -> None:
    for path in recording_files.DIRECTORY.glob("*.json"):
        text = path.read_text()
        assert text == recording_files.pretty(json.loads(text)) + "\n", path.name


def test_sequences_do_not_share_topics() -> None:
    """A topic that two sequences create would make one depend on the other."""
    creators: dict[str, str] = {}
    for script in SCRIPTS:
        for name in _created(script.steps):
            if _TOPIC_NAME.fullmatch(name):
                assert creators.setdefault(name, script.id) == script.id, name


def test_every_offered_version_is_recorded_in_success_and_in_error(
    recorded: dict[str, list[Json]], offered: dict[str, range]
) -> None:
    succeeded: set[tuple[str, int]] = set()
    failed: set[tuple[str, int]] = set()
    for api, version, outcome in _outcomes(recorded):
        (failed if _is_error(outcome) else succeeded).add((api, version))
    wanted = {(api, version) for api, versions in offered.items() for version in versions} - OURS_ALONE
    wanted = {(api, version) for api, version in wanted if api not in NOT_RECORDED_YET}
    assert wanted - succeeded == CANNOT_SUCCEED
    assert wanted - failed == CANNOT_FAIL
    assert not NOT_RECORDED_YET & {api for api, _ in succeeded}, "these are recorded by now"


def test_offered_versions_are_those_that_kafka_offers(
    recorded: dict[str, list[Json]], offered: dict[str, range]
) -> None:
    (exchange,) = recorded["ApiVersions/version 4"]
    kafka = _ranges(exchange["reply"])
    ours = {(api, version) for api, versions in offered.items() for version in versions}
    assert ours - OURS_ALONE == {(api, version) for api in offered for version in kafka[api]}


@pytest.fixture(scope="session")
def offered(address: tuple[str, int]) -> dict[str, range]:
    """The version ranges that the broker under test advertises."""
    fields = {"client_software_name": "a", "client_software_version": "b"}
    request = codec.encode_request("ApiVersions", 4, fields, 1, None)
    connection = Connection(*address, 10.0)
    connection.send(struct.pack(">i", len(request)) + request)
    reply = codec.decode_reply("ApiVersions", 4, connection.receive())
    connection.close()
    return _ranges(reply)


def _ranges(reply: Json) -> dict[str, range]:
    return {
        codec.api_name(entry["api_key"]): range(entry["min_version"], entry["max_version"] + 1)
        for entry in reply["api_keys"]
    }


def _sent(exchange: Json) -> Json:
    if "together" in exchange:
        return {"together": [inner["send"] for inner in exchange["together"]]}
    return exchange["send"]


def _outcomes(recorded: dict[str, list[Json]]) -> Iterator[tuple[str, int, Json]]:
    for exchanges in recorded.values():
        for exchange in exchanges:
            for inner in exchange.get("together", [exchange]):
                send = inner["send"].get("call", inner["send"])
                if "api" in send:
                    yield send["api"], send["version"], inner
                elif _has_whole_header(frame := bytes.fromhex(send.get("frame", ""))):
                    key, version = struct.unpack_from(">hh", frame)
                    if key in _NAMES:
                        yield _NAMES[key], version, inner


def _has_whole_header(frame: bytes) -> bool:
    if len(frame) < 10:
        return False
    (client_id_bytes,) = struct.unpack_from(">h", frame, 8)
    return bool(-1 <= client_id_bytes <= len(frame) - 10)


_NAMES = {codec.api_key(script.api): script.api for script in SCRIPTS if script.api != "Framing"}


def _is_error(outcome: Json) -> bool:
    """A closed connection, or an error code anywhere in the reply."""
    return "reply" not in outcome or any(code != "NONE" for code in _error_codes(outcome["reply"]))


def _error_codes(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "error_code":
                yield inner
            else:
                yield from _error_codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _error_codes(inner)


def _created(steps: Any) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Together):
            yield from _created(step.calls)
        elif isinstance(step, Call) and step.api == "CreateTopics" and not step.edits:
            yield from (topic["name"] for topic in step.fields["topics"])
        else:
            assert not isinstance(step, Frame) or step.about
