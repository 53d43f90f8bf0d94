"""Metadata: by name, by id, all or none, and topics that come to be because someone asked."""

from __future__ import annotations

from tests.differential.sequences.common import NO_SUCH_ID, VERSIONS, created, deleted, ready
from tests.differential.steps import Call, Script, Step, replace, var

_VERSIONS = VERSIONS["Metadata"]


def scripts() -> list[Script]:
    return [
        Script("Metadata", "all topics and none", _all_and_none(), empty_broker=True),
        *(Script("Metadata", f"by name, version {v}", _by_name(v)) for v in _VERSIONS),
        *(Script("Metadata", f"auto-creation, version {v}", _auto_created(v)) for v in _VERSIONS),
        *(Script("Metadata", f"by id, version {v}", _by_id(v)) for v in range(10, 14)),
        Script("Metadata", "names that are refused", _bad_names()),
        Script("Metadata", "authorised operations", _operations()),
        Script("Metadata", "counts that lie", _hostile(), empty_broker=True),
    ]


def _asked(*names: str, auto: bool = False) -> dict[str, object]:
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": auto}


def _all_and_none() -> list[Step]:
    """In version 0 an empty list asks for all topics; from version 1 on null does, and empty means none."""
    empty: list[Step] = [Call("Metadata", v, {"topics": []}) for v in _VERSIONS]
    null: list[Step] = [Call("Metadata", v, {"topics": None}) for v in _VERSIONS if v > 0]
    return [
        *empty,
        *null,
        *created("all-topics", 2),
        *(Call("Metadata", v, {"topics": []}) for v in _VERSIONS),
        *(Call("Metadata", v, {"topics": None}) for v in _VERSIONS if v > 0),
        *deleted("all-topics"),
        Call("Metadata", 12, {"topics": None}, until={"topics": []}),
    ]


def _by_name(version: int) -> list[Step]:
    name = f"metadata-name-{version}"
    steps: list[Step] = [
        *created(name, 3),
        Call("Metadata", version, _asked(name)),
        Call("Metadata", version, _asked(name, name)),
        Call("Metadata", version, _asked("in valid", name)),
    ]
    if version >= 4:
        steps += [
            Call("Metadata", version, _asked("metadata-no-such-topic")),
            Call("Metadata", version, _asked("metadata-no-such-topic", name)),
        ]
    return steps


def _auto_created(version: int) -> list[Step]:
    name = f"metadata-auto-{version}"
    found = {"topics.0.error_code": "NONE"}
    return [
        Call("Metadata", version, _asked(name, auto=True)),
        Call("Metadata", version, _asked(name, auto=True), until=found),
        ready(name),
        Call("Metadata", version, _asked("not/valid", auto=True)),
    ]


def _by_id(version: int) -> list[Step]:
    name = f"metadata-id-{version}"
    topic_id = var(f"topic_id:{name}")
    return [
        *created(name),
        Call("Metadata", version, {"topics": [{"topic_id": topic_id, "name": None}]}),
        Call("Metadata", version, {"topics": [{"topic_id": NO_SUCH_ID, "name": None}]}),
        Call(
            "Metadata",
            version,
            {"topics": [{"topic_id": NO_SUCH_ID, "name": None}, {"topic_id": topic_id, "name": None}]},
        ),
        Call("Metadata", version, {"topics": [{"topic_id": topic_id, "name": name}]}),
        Call("Metadata", version, {"topics": [{"topic_id": topic_id, "name": None}, {"name": name}]}),
        Call("Metadata", version, {"topics": [{"topic_id": topic_id, "name": None}] * 2}),
        Call("Metadata", version, {"topics": [{"name": None}]}),
        Call("Metadata", version, {"topics": [{"topic_id": None, "name": name}]}),
    ]


def _bad_names() -> list[Step]:
    names = ["", ".", "..", "a b", "a/b", "ümlaut", "a" * 250, "a:b", "a\x00b", "a,b"]
    steps: list[Step] = []
    for version in (0, 3, 4, 8, 9, 12, 13):
        steps += [Call("Metadata", version, _asked(name, auto=True)) for name in names]
    return steps


def _operations() -> list[Step]:
    flags = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    asked = _asked("metadata-operations") | flags
    return [*created("metadata-operations"), *(Call("Metadata", v, asked) for v in range(8, 14))]


def _hostile() -> list[Step]:
    """The count of topics stands before the only name; a negative one asks for all topics."""
    legacy = b"\x00\x00\x00\x01\x00\x05where"
    compact = b"\x02\x06where"
    counts = [
        b"\x7f\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\xff\xff\xff\xfe",
        b"\x00\x00\x00\x02",
        b"\x00\x01\x00\x00",
    ]
    steps: list[Step] = []
    for version in (1, 8):
        for count in counts:
            edit = replace(legacy, count + legacy[4:])
            steps.append(Call("Metadata", version, _asked("where"), edits=(edit,)))
        longer = replace(legacy, legacy[:4] + b"\x7f\xff" + legacy[6:])
        negative = replace(legacy, legacy[:4] + b"\xff\xff" + legacy[6:])
        steps += [Call("Metadata", version, _asked("where"), edits=(edit,)) for edit in (longer, negative)]
    for count in (
        b"\x03",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x07",
        b"\x80\x80\x80\x80\x80\x01",
        b"\x00",
    ):
        edit = replace(compact, count + compact[1:])
        steps.append(Call("Metadata", 9, _asked("where"), edits=(edit,)))
    for length in (b"\x00", b"\x7f", b"\xff\xff\xff\xff\x0f", b"\x01"):
        edit = replace(compact, compact[:1] + length + compact[2:])
        steps.append(Call("Metadata", 9, _asked("where"), edits=(edit,)))
    return steps
