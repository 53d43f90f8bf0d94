"""Valid requests to start from: those of the differential sequences, aimed at a topic that exists.

Every version that the broker offers has at least one; a version without a sequence gets the request that its
schema's defaults make. Topics are only tried, not made: a mutation that asks for ten thousand partitions is a
valid wish, and granting it is not what is tested here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.differential import batches, codec
from tests.differential.sequences import SCRIPTS
from tests.differential.steps import Call, Later, Script, Step, Together

Json = Any

TOPIC = "hostile"
PER_VERSION_MAX = 8
_CORRELATION = 77
_NO_ID = "00000000-0000-4000-8000-00000000beef"
_MAKES_TOPICS = ("CreateTopics", "CreatePartitions")
_NAMES_TOPICS = ("CreateTopics", "DeleteTopics")


class Sample(NamedTuple):
    """A request's payload, and where its body begins."""

    api: str
    version: int
    payload: bytes
    body_at: int


def build(offered: Mapping[str, range], topic_id: str) -> list[Sample]:
    """Samples of every offered version, a few of each; ``topic_id`` is that of the topic to aim at."""
    found: dict[tuple[str, int], dict[bytes, None]] = {
        (api, version): {} for api, versions in offered.items() for version in versions
    }
    for call, created in _calls():
        wanted = found.get((call.api, call.version))
        if wanted is not None and len(wanted) < PER_VERSION_MAX:
            harmless = call.api not in _NAMES_TOPICS
            fields = _aimed(call.fields, created if harmless else set(), topic_id if harmless else _NO_ID)
            if call.api in _MAKES_TOPICS:
                fields["validate_only"] = True
            wanted[_encoded(call.api, call.version, fields)] = None
    return [
        Sample(api, version, payload, _header_bytes(api, version))
        for (api, version), payloads in found.items()
        for payload in payloads or [_default(api, version)]
    ]


def _calls() -> Iterator[tuple[Call, set[str]]]:
    for script in SCRIPTS:
        created = _created(script)
        for step in script.steps:
            for call in _inside(step):
                yield call, created


def _inside(step: Step) -> Iterator[Call]:
    match step:
        case Call(edits=()):
            yield step
        case Together(calls):
            yield from (call for call in calls if isinstance(call, Call) and not call.edits)
        case Later(call=call):
            yield call
        case _:
            pass


def _created(script: Script) -> set[str]:
    names: set[str] = set()
    for step in script.steps:
        for call in _inside(step):
            if call.api == "CreateTopics":
                names |= {topic["name"] for topic in call.fields["topics"]}
    return names


def _aimed(value: Json, created: set[str], topic_id: str) -> Json:
    match value:
        case {"$var": str(name)}:
            given = {"topic_id": topic_id, "producer": 900_500, "session": 900_500}
            return given.get(name.partition(":")[0], "hostile")
        case {"$batch": description}:
            return {"$hex": batches.build(_aimed(description, created, topic_id)).hex()}
        case {"$batches": parts}:
            return {"$hex": "".join(_aimed(part, created, topic_id)["$hex"] for part in parts)}
        case Mapping():
            return {key: _aimed(inner, created, topic_id) for key, inner in value.items()}
        case list() | tuple():
            return [_aimed(inner, created, topic_id) for inner in value]
        case str() if value in created:
            return TOPIC
        case _:
            return value


def _encoded(api: str, version: int, fields: Json) -> bytes:
    return codec.encode_request(api, version, fields, _CORRELATION, "hostile")


def _default(api: str, version: int) -> bytes:
    if version not in codec.versions_known(api):
        # Produce 0-2, of which there is no schema any more: the header alone.
        head = codec.api_key(api).to_bytes(2, "big") + version.to_bytes(2, "big")
        return head + _CORRELATION.to_bytes(4, "big") + b"\x00\x07hostile" + bytes(10)
    return _encoded(api, version, {})


def _header_bytes(api: str, version: int) -> int:
    fixed = 2 + 2 + 4 + 2 + len("hostile")
    return fixed + (1 if codec.is_flexible(api, version) else 0)
