"""Incremental fetch sessions (KIP-227)."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import (
    NO_SUCH_ID,
    VERSIONS,
    created,
    deleted,
    fetch,
    fetched_topic,
    produce,
    wanted,
)
from tests.differential.steps import Call, Script, Step, batch, var

Json = Any


def scripts() -> list[Script]:
    made = []
    for version in VERSIONS["Fetch"]:
        if version < 7:
            continue
        made += [
            Script("Fetch", f"a session's life, version {version}", _life(version)),
            Script("Fetch", f"sessions that do not exist, version {version}", _wrong(version)),
            Script("Fetch", f"a session forgets and adds, version {version}", _changes(version)),
            Script("Fetch", f"a session with errors, version {version}", _errors(version)),
        ]
    return made


def _in(session: Json, epoch: int, **more: Json) -> dict[str, Json]:
    return {"session_id": session, "session_epoch": epoch} | more


def _life(version: int) -> list[Step]:
    name = f"session-life-{version}"
    session = var("session:1")
    return [
        *created(name, 2),
        produce(9, name, batch("a")),
        fetch(version, name, wanted(0, 0), wanted(1, 0), **_in(0, 0)),
        fetch(version, name, **_in(session, 1)),
        fetch(version, name, wanted(0, 1), **_in(session, 2)),
        fetch(version, name, **_in(session, 3)),
        produce(9, name, batch("b"), partition=1),
        fetch(version, name, **_in(session, 4)),
        fetch(version, name, wanted(1, 1), **_in(session, 5)),
        fetch(version, name, **_in(session, 5)),
        fetch(version, name, **_in(session, 8)),
        fetch(version, name, **_in(session, 6)),
        fetch(version, name, **_in(session, -1)),
        fetch(version, name, **_in(session, 7)),
    ]


def _wrong(version: int) -> list[Step]:
    name = f"session-wrong-{version}"
    return [
        *created(name),
        fetch(version, name, wanted(0, 0), **_in(123456, 1)),
        fetch(version, name, wanted(0, 0), **_in(123456, 0)),
        fetch(version, name, wanted(0, 0), **_in(123456, -1)),
        fetch(version, name, wanted(0, 0), **_in(0, 1)),
        fetch(version, name, wanted(0, 0), **_in(0, -1)),
        fetch(version, name, wanted(0, 0), **_in(0, -2)),
        fetch(version, name, wanted(0, 0), **_in(-5, 3)),
        fetch(version, name, **_in(0, 0)),
        fetch(version, name, **_in(0, -1)),
    ]


def _changes(version: int) -> list[Step]:
    name, second = f"session-changes-{version}", f"session-second-{version}"
    session = var("session:1")
    forgotten = fetched_topic(version, name)
    both = [fetched_topic(version, second, wanted(0, 0))]
    return [
        *created(name, 3),
        *created(second),
        *(produce(9, name, batch("a"), partition=partition) for partition in range(3)),
        produce(9, second, batch("b")),
        fetch(version, name, wanted(0, 0), wanted(1, 0), **_in(0, 0)),
        fetch(version, name, **_in(session, 1, topics=both)),
        fetch(version, name, **_in(session, 2, forgotten_topics_data=[forgotten | {"partitions": [0]}])),
        fetch(
            version,
            name,
            wanted(2, 0),
            **_in(session, 3, forgotten_topics_data=[forgotten | {"partitions": [1]}]),
        ),
        fetch(
            version, name, **_in(session, 4, forgotten_topics_data=[forgotten | {"partitions": [0, 1, 7]}])
        ),
        fetch(version, name, wanted(0, 0), **_in(session, 0)),
        fetch(version, name, **_in(session, 1)),
        fetch(version, name, **_in(var("session:1#2"), 1)),
    ]


def _errors(version: int) -> list[Step]:
    name, gone = f"session-errors-{version}", f"session-gone-{version}"
    session = var("session:1")
    steps: list[Step] = [
        *created(name),
        *created(gone),
        produce(9, gone, batch("a")),
        fetch(version, name, wanted(0, 0), wanted(5, 0), **_in(0, 0)),
        fetch(version, name, **_in(session, 1)),
        fetch(version, name, wanted(0, 99), **_in(session, 2)),
        fetch(version, name, wanted(0, 0), **_in(session, 3)),
        fetch(version, name, **_in(session, 4, topics=[fetched_topic(version, gone, wanted(0, 0))])),
    ]
    if version >= 13:
        unknown = [{"topic_id": NO_SUCH_ID, "partitions": [wanted(0, 0)]}]
        steps += [
            fetch(version, name, **_in(session, 5, topics=unknown)),
            fetch(version, name, **_in(session, 6)),
        ]
    lost = Call("Fetch", 12, {"max_wait_ms": 0, "topics": []} | _in(session, 7)) if version >= 13 else None
    return [*steps, *([lost] if lost else []), *deleted(gone)]
