"""CreateTopics: names, counts, placements, configs, trial runs."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, deleted, learned
from tests.differential.steps import Call, Script, Step, replace

Json = Any

_VERSIONS = VERSIONS["CreateTopics"]


def scripts() -> list[Script]:
    return [
        *(Script("CreateTopics", f"version {v}", _version(v)) for v in _VERSIONS),
        *(Script("CreateTopics", f"counts and placements, version {v}", _counts(v)) for v in _VERSIONS),
        *(Script("CreateTopics", f"trial runs, version {v}", _trial(v)) for v in _VERSIONS),
        *(Script("CreateTopics", f"names, version {v}", _names(v)) for v in (2, 5, 7)),
        *(Script("CreateTopics", f"configs, version {v}", _configs(v)) for v in (2, 5, 7)),
        *(Script("CreateTopics", f"the same name twice, version {v}", _twice(v)) for v in (2, 5, 7)),
        Script("CreateTopics", "again after deletion", _again()),
        Script("CreateTopics", "counts that lie", _hostile()),
    ]


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Json) -> Json:
    configs = [{"name": key, "value": value} for key, value in more.pop("configs", {}).items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "configs": configs,
    } | more


def create(version: int, *topics: Json, **fields: Json) -> Call:
    return Call("CreateTopics", version, {"topics": list(topics), "timeout_ms": 10000} | fields)


def _version(version: int) -> list[Step]:
    name = f"create-{version}"
    return [
        create(version, topic(name, 2)),
        learned(name),
        create(version, topic(name, 2)),
        create(version, topic(f"{name}-a"), topic(name), topic(f"{name}-b", 3), topic("not/valid")),
        learned(f"{name}-b"),
        create(version),
        create(version, topic(f"{name}-quick"), timeout_ms=-1),
        create(version, topic(f"{name}-now"), timeout_ms=0),
        *deleted(name),
    ]


def _counts(version: int) -> list[Step]:
    name = f"create-counts-{version}"
    counts = [(0, 1), (-1, 1), (-2, 1), (1, 0), (1, -1), (1, -2), (-1, -1), (1, 2), (1, 32767)]
    steps: list[Step] = [
        create(version, topic(f"{name}-{index}", *pair)) for index, pair in enumerate(counts)
    ]
    placements: list[list[tuple[int, list[int]]]] = [
        [(0, [1])],
        [(0, [1]), (1, [1])],
        [(1, [1]), (0, [1])],
        [(0, [2])],
        [(0, [1, 1])],
        [(0, [])],
        [(1, [1])],
        [(0, [1]), (0, [1])],
        [(0, [1]), (2, [1])],
        [(-1, [1])],
        [(0, [-1])],
        [(0, [1]), (1, [1, 2])],
    ]
    for index, placement in enumerate(placements):
        assignments = [
            {"partition_index": partition, "broker_ids": brokers} for partition, brokers in placement
        ]
        steps.append(create(version, topic(f"{name}-placed-{index}", -1, -1, assignments=assignments)))
    both = [{"partition_index": 0, "broker_ids": [1]}]
    steps.append(create(version, topic(f"{name}-both", 1, -1, assignments=both)))
    steps.append(create(version, topic(f"{name}-both", -1, 1, assignments=both)))
    steps.append(create(version, topic(f"{name}-both", 1, 1, assignments=both)))
    return [*steps, learned(f"{name}-placed-2")]


def _trial(version: int) -> list[Step]:
    name = f"create-trial-{version}"
    absent = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return [
        create(version, topic(name, 2), validate_only=True),
        create(version, topic(name, 2, 5), topic("not/valid"), topic(f"{name}-b", 0), validate_only=True),
        create(version, topic(name, 1, 1, configs={"retention.ms": "x"}), validate_only=True),
        Call("Metadata", 12, absent),
        *created(name),
        create(version, topic(name), validate_only=True),
    ]


def _names(version: int) -> list[Step]:
    names = ["", ".", "..", "a b", "a/b", "a:b", "a,b", "ümlaut", "n" * 250, "a\x00b", "a\nb", "*"]
    good = [
        f"names.{version}.dots",
        f"names_{version}_bars",
        f"names-{version}-dashes",
        f"Names{version}UPPER",
        "n" * 248 + str(version),
    ]
    clash = [f"names_{version}.dots", f"names.{version}_bars", f"names-{version}-dashes"]
    return [*(create(version, topic(name)) for name in names + good + clash)]


def _configs(version: int) -> list[Step]:
    name = f"create-configs-{version}"
    choices: list[dict[str, str | None]] = [
        {"retention.ms": "1000"},
        {"retention.ms": "-1", "cleanup.policy": "compact", "compression.type": "zstd"},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": "delete,delete"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "shred"},
        {"retention.ms": "soon"},
        {"retention.ms": "-2"},
        {"retention.ms": None},
        {"retention.ms": ""},
        {"retention.ms": " 77 "},
        {"segment.bytes": "13"},
        {"segment.bytes": "1048576"},
        {"segment.bytes": "99999999999"},
        {"max.message.bytes": "-1"},
        {"min.insync.replicas": "0"},
        {"min.insync.replicas": "2"},
        {"message.timestamp.type": "Whenever"},
        {"message.timestamp.type": "LogAppendTime"},
        {"compression.type": "brotli"},
        {"compression.type": "uncompressed"},
        {"min.cleanable.dirty.ratio": "1.5"},
        {"min.cleanable.dirty.ratio": "0.25"},
        {"preallocate": "maybe"},
        {"preallocate": "TRUE"},
        {"no.such.key": "1"},
        {"message.format.version": "3.0"},
        {"unclean.leader.election.enable": "true"},
        {"remote.storage.enable": "true"},
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"},
        {"compression.gzip.level": "42"},
        {"compression.zstd.level": "5"},
        {"local.retention.ms": "100000000000", "retention.ms": "10"},
        {"flush.messages": "0"},
        {"flush.ms": "-1"},
        {"follower.replication.throttled.replicas": "0:1"},
        {"follower.replication.throttled.replicas": "nonsense"},
    ]
    steps: list[Step] = [
        create(version, topic(f"{name}-{index}", configs=choice)) for index, choice in enumerate(choices)
    ]
    repeated = [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    return [*steps, create(version, topic(f"{name}-twice") | {"configs": repeated})]


def _twice(version: int) -> list[Step]:
    name = f"create-twice-{version}"
    return [
        create(version, topic(name), topic(name)),
        create(version, topic(name, 1), topic(f"{name}-b"), topic(name, 2)),
        create(version, topic(name)),
    ]


def _again() -> list[Step]:
    name = "create-again"
    return [*created(name), *deleted(name), *created(name), create(7, topic(name))]


def _hostile() -> list[Step]:
    call = create(2, topic("lies"))
    marker = b"\x00\x00\x00\x01\x00\x04lies"
    steps: list[Step] = []
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x02"):
        edit = replace(marker, count + marker[4:])
        steps.append(Call(call.api, 2, call.fields, edits=(edit,)))
    compact = b"\x02\x05lies"
    for count in (b"\x00", b"\x03", b"\xff\xff\xff\xff\x0f"):
        edit = replace(compact, count + compact[1:])
        steps.append(Call(call.api, 5, call.fields, edits=(edit,)))
    return steps
