"""Committed offsets of groups without members: commit, fetch, delete, and where their coordinator is."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import NO_SUCH_ID, VERSIONS, created, deleted
from tests.differential.steps import Call, Script, Step, var

Json = Any

GROUP, TRANSACTION, SHARE = 0, 1, 2


def scripts() -> list[Script]:
    made = [Script("FindCoordinator", f"version {v}", _places(v)) for v in VERSIONS["FindCoordinator"]]
    made += [Script("OffsetCommit", f"version {v}", _commits(v)) for v in VERSIONS["OffsetCommit"]]
    made += [Script("OffsetFetch", f"version {v}", _fetches(v)) for v in VERSIONS["OffsetFetch"]]
    made.append(Script("OffsetDelete", "version 0", _deletions()))
    made.append(Script("OffsetFetch", "offsets of a topic that is gone", _gone()))
    return made


def group_ready(group: str) -> list[Step]:
    """Finds the coordinator and waits until it has loaded what it knows of the group."""
    sought = {"key": group, "key_type": GROUP}
    asked = {"group_id": group, "topics": [{"name": "nowhere", "partition_indexes": [0]}]}
    return [
        Call("FindCoordinator", 3, sought, until={"error_code": "NONE"}),
        Call("OffsetFetch", 7, asked, until={"error_code": "NONE"}),
    ]


def commit(version: int, group: str, topics: list[tuple[str, list[Json]]], **more: Json) -> Call:
    """Topics by name; since 10 by the id that was learned for it."""
    named = [
        {"name": name, "partitions": partitions}
        if version < 10
        else {"topic_id": _id(name), "partitions": partitions}
        for name, partitions in topics
    ]
    return Call("OffsetCommit", version, {"group_id": group, "topics": named} | more)


def _id(name: str) -> Json:
    return NO_SUCH_ID if name.startswith("nowhere") else var(f"topic_id:{name}")


def offset(partition: int, at: int, **more: Json) -> Json:
    return {"partition_index": partition, "committed_offset": at, "committed_metadata": ""} | more


def fetch_offsets(
    version: int,
    group: str,
    topics: list[tuple[str, list[int]]] | None,
    *,
    require_stable: bool = False,
    **more: Json,
) -> Call:
    """Of one group, in whichever form the version has."""
    if version < 8:
        plain = None if topics is None else [{"name": name, "partition_indexes": at} for name, at in topics]
        return Call(
            "OffsetFetch", version, {"group_id": group, "topics": plain, "require_stable": require_stable}
        )
    return Call(
        "OffsetFetch",
        version,
        {"groups": [_group(version, group, topics, **more)], "require_stable": require_stable},
    )


def _group(version: int, group: str, topics: list[tuple[str, list[int]]] | None, **more: Json) -> Json:
    named: Json = None
    if topics is not None:
        named = [
            {"name": name, "partition_indexes": at}
            if version < 10
            else {"topic_id": _id(name), "partition_indexes": at}
            for name, at in topics
        ]
    return {"group_id": group, "topics": named} | more


def _places(version: int) -> list[Step]:
    if version < 4:
        keys = [("place-a", GROUP), ("", GROUP), ("группа", GROUP)]
        if version >= 1:
            keys += [("place-a", SHARE), ("place-a", 3), ("place-a", -1)]
        return [
            *group_ready("place-a"),
            *(Call("FindCoordinator", version, {"key": key, "key_type": kind}) for key, kind in keys),
        ]
    several: list[tuple[list[str], int]] = [
        (["place-a"], GROUP),
        (["place-a", "place-b", "place-a", ""], GROUP),
        ([], GROUP),
        (["place-a", "b"], 3),
        (["place-a"], -1),
        # A good key is left out: Kafka would make the topic of share groups, which we do not have.
        (["place-a", "g:a:b", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"], SHARE),
    ]
    return [
        *group_ready("place-a"),
        *(
            Call("FindCoordinator", version, {"coordinator_keys": keys, "key_type": kind})
            for keys, kind in several
        ),
    ]


def _commits(version: int) -> list[Step]:
    topic, group = f"commits-{version}", f"commits-{version}"
    steps: list[Step] = [
        *created(topic, 3),
        *group_ready(group),
        commit(version, group, [(topic, [offset(0, 5), offset(1, 0, committed_metadata="a note")])]),
        commit(version, group, [(topic, [offset(0, 4, committed_metadata=None)])]),
        commit(version, group, [(topic, [offset(2, -1), offset(1, -5)])]),
        commit(version, group, [(topic, [offset(2, 2**63 - 1, committed_leader_epoch=7)])]),
        commit(version, group, [(topic, [offset(0, 9), offset(0, 10)])]),
        commit(version, group, [(topic, [offset(3, 1), offset(-1, 1), offset(0, 11)])]),
        commit(version, group, [("nowhere", [offset(0, 1), offset(1, 1)]), (topic, [offset(1, 12)])]),
        commit(version, group, [("nowhere", [offset(0, 1)])]),
        commit(version, group, []),
        commit(version, group, [(topic, [])]),
        commit(version, group, [(topic, [offset(0, 1, committed_metadata="m" * 4096)])]),
        commit(
            version,
            group,
            [(topic, [offset(0, 2, committed_metadata="m" * 4097), offset(1, 13)])],
        ),
        commit(version, group, [(topic, [offset(0, 3)])], generation_id_or_member_epoch=0),
        commit(version, group, [(topic, [offset(0, 3)])], generation_id_or_member_epoch=1, member_id="m"),
        commit(version, group, [(topic, [offset(0, 3)])], member_id="m"),
        commit(version, group, [(topic, [offset(0, 3)])], generation_id_or_member_epoch=-2),
        commit(
            version, f"{group}-new", [(topic, [offset(0, 3)])], generation_id_or_member_epoch=1, member_id="m"
        ),
        commit(version, "", [(topic, [offset(0, 6)])]),
    ]
    if version >= 7:
        steps.append(commit(version, group, [(topic, [offset(0, 3)])], group_instance_id="i"))
        steps.append(
            commit(
                version,
                group,
                [(topic, [offset(0, 3)])],
                group_instance_id="i",
                generation_id_or_member_epoch=1,
            )
        )
    if version <= 4:
        steps.append(commit(version, group, [(topic, [offset(0, 21)])], retention_time_ms=3_600_000))
    reader = 9 if version >= 6 else 3
    steps.append(fetch_offsets(reader, group, [(topic, [0, 1, 2])]))
    steps.append(fetch_offsets(reader, "", [(topic, [0])]))
    return steps


def _fetches(version: int) -> list[Step]:
    topic, other, group = f"fetches-{version}", f"fetches-{version}-b", f"fetches-{version}"
    steps: list[Step] = [
        *created(topic, 3),
        *created(other),
        *group_ready(group),
        commit(9, group, [(topic, [offset(0, 5, committed_leader_epoch=0), offset(1, 7)])]),
        commit(9, group, [(other, [offset(0, 1, committed_metadata="note")])]),
        fetch_offsets(version, group, [(topic, [0, 1, 2])]),
        fetch_offsets(version, group, [(topic, [1, 1, 99, -1]), (other, [0])]),
        fetch_offsets(version, group, [("nowhere", [0, 1]), (other, [0])]),
        fetch_offsets(version, group, []),
        fetch_offsets(version, group, [(topic, [])]),
        fetch_offsets(version, f"{group}-none", [(topic, [0, 1])]),
        fetch_offsets(version, "", [(topic, [0])]),
    ]
    if version >= 2:
        steps.append(fetch_offsets(version, group, None))
        steps.append(fetch_offsets(version, f"{group}-none", None))
    if version >= 7:
        steps.append(fetch_offsets(version, group, [(topic, [0, 2])], require_stable=True))
        steps.append(fetch_offsets(version, group, None, require_stable=True))
    if version >= 8:
        several = [
            _group(version, group, [(topic, [0])]),
            _group(version, f"{group}-none", [(topic, [0])]),
            _group(version, group, None),
        ]
        steps.append(Call("OffsetFetch", version, {"groups": several}))
        steps.append(Call("OffsetFetch", version, {"groups": []}))
    if version >= 9:
        claims = [("m", 1), ("m", -1), (None, 1), ("", 0), (None, -1)]
        steps += [
            fetch_offsets(version, group, [(topic, [0])], member_id=member, member_epoch=epoch)
            for member, epoch in claims
        ]
    return steps


def _delete(group: str, topics: list[tuple[str, list[int]]]) -> Call:
    named = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in topics
    ]
    return Call("OffsetDelete", 0, {"group_id": group, "topics": named})


def _deletions() -> list[Step]:
    topic, group = "deletions", "deletions"
    return [
        *created(topic, 3),
        *group_ready(group),
        _delete(group, [(topic, [0])]),
        _delete(group, []),
        commit(9, group, [(topic, [offset(0, 5), offset(1, 6), offset(2, 7)])]),
        _delete(group, []),
        _delete(group, [(topic, [])]),
        _delete(group, [(topic, [0, 0, 9, -1])]),
        _delete(group, [("nowhere", [0]), (topic, [1])]),
        fetch_offsets(9, group, [(topic, [0, 1, 2])]),
        _delete("", [(topic, [0])]),
        _delete(f"{group}-none", [(topic, [0])]),
        _delete(f"{group}-none", [("nowhere", [0])]),
    ]


def _gone() -> list[Step]:
    topic, kept, group = "goes", "stays", "goes"
    return [
        *created(topic, 2),
        *created(kept),
        *group_ready(group),
        commit(9, group, [(topic, [offset(0, 5), offset(1, 6)]), (kept, [offset(0, 7)])]),
        fetch_offsets(9, group, None),
        *deleted(topic),
        Call(
            "OffsetFetch",
            7,
            {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]},
            until={"topics.0.partitions.0.committed_offset": -1},
        ),
        fetch_offsets(7, group, None),
        fetch_offsets(9, group, [(topic, [0, 1]), (kept, [0])]),
        commit(9, group, [(topic, [offset(0, 5)])]),
        _delete(group, [(topic, [0])]),
    ]
