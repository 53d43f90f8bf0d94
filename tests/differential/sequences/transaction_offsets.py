"""Offsets in transactions, and what tools ask about transactions: every version of those APIs."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import created, produce
from tests.differential.sequences.transactions import (
    add,
    begun,
    end,
    find_coordinator,
    init,
    numbered,
    read,
    state,
)
from tests.differential.steps import Call, Script, Step, var

Json = Any

_ME = var("producer:1")


def scripts() -> list[Script]:
    made = [Script("AddOffsetsToTxn", f"version {v}", _add_offsets(v)) for v in range(5)]
    made += [Script("TxnOffsetCommit", f"commit and abort, version {v}", _offsets(v)) for v in range(6)]
    made += [Script("TxnOffsetCommit", f"refusals, version {v}", _offset_refusals(v)) for v in range(6)]
    made += [Script("ListTransactions", f"filters, version {v}", _list(v)) for v in range(3)]
    made += [Script("WriteTxnMarkers", f"version {v}", _markers(v)) for v in (1, 2)]
    made.append(Script("WriteTxnMarkers", "of transactions of version 2", _strict_markers()))
    return [
        *made,
        Script("DescribeTransactions", "states", _describe()),
        Script("DescribeProducers", "of open and ended transactions", _producers()),
    ]


def add_offsets(
    name: str, group: str, *, version: int = 3, epoch: int = 0, producer: Json = _ME, until: Any = None
) -> Call:
    fields = {
        "transactional_id": name,
        "producer_id": producer,
        "producer_epoch": epoch,
        "group_id": group,
    }
    return Call("AddOffsetsToTxn", version, fields, until=until)


def commit(
    name: str,
    group: str,
    topic: str,
    *offsets: tuple[int, int],
    version: int = 3,
    epoch: int = 0,
    producer: Json = _ME,
    **more: Json,
) -> Call:
    partitions = [
        {"partition_index": index, "committed_offset": offset, "committed_metadata": f"m{offset}"}
        for index, offset in offsets
    ]
    fields = {
        "transactional_id": name,
        "group_id": group,
        "producer_id": producer,
        "producer_epoch": epoch,
        "topics": [{"name": topic, "partitions": partitions}],
    }
    return Call("TxnOffsetCommit", version, fields | more)


def committed(group: str, topic: str, *, stable: bool = False, until: Any = None) -> Call:
    fields = {
        "require_stable": stable,
        "groups": [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0, 1]}]}],
    }
    return Call("OffsetFetch", 8, fields, until=until)


def _add_offsets(version: int) -> list[Step]:
    name = f"add-offsets-{version}"
    return [
        *begun(name),
        find_coordinator(name, 0),
        add_offsets("nobody-knows", name, version=version),
        add_offsets("", name, version=version),
        add_offsets(name, name, version=version, epoch=3),
        add_offsets(name, name, version=version, producer=900800),
        add_offsets(name, name, version=version),
        add_offsets(name, name, version=version),
        add_offsets(name, "another", version=version),
        state(name),
        end(name, "abort"),
        state(name, "CompleteAbort"),
        add_offsets(name, "", version=version),
        end(name, "abort"),
        state(name, "CompleteAbort"),
    ]


def _offsets(version: int) -> list[Step]:
    name = f"offsets-{version}"
    ends = 5 if version >= 5 else 4
    steps: list[Step] = [*created(name, 2), find_coordinator(name, 0), *begun(name)]
    for round_, how in enumerate(("commit", "abort", "commit")):
        epoch = round_ if version >= 5 else 0
        at = 10 * (round_ + 1)
        if version < 5:
            steps.append(add_offsets(name, name))
        steps += [
            commit(name, name, name, (0, at), (1, at + 1), version=version, epoch=epoch),
            state(name),
            committed(name, name),
            committed(name, name, stable=True),
            commit(name, name, name, (1, at + 2), version=version, epoch=epoch),
            end(name, how, version=ends, epoch=epoch),
            state(name, "CompleteCommit" if how == "commit" else "CompleteAbort"),
            committed(name, name, stable=True),
        ]
    return steps


def _offset_refusals(version: int) -> list[Step]:
    name = f"offset-refusals-{version}"
    steps: list[Step] = [
        *created(name),
        find_coordinator(name, 0),
        *begun(name),
        commit(name, name, name, (0, 1), version=version, producer=900801),
        commit(name, name, name, (0, 1), version=version, epoch=4),
        commit("nobody-knows", name, name, (0, 1), version=version),
        commit(name, name, "no-such-topic", (0, 1), version=version),
        commit(name, name, name, (0, 1), (7, 1), version=version),
        commit(name, "", name, (0, 1), version=version),
        state(name),
        end(name, "abort", version=5),
        state(name, "CompleteAbort"),
        init(name),
    ]
    if version in (3, 4):
        again = {"version": version, "epoch": 2}
        steps += [
            add_offsets(name, name, epoch=2),
            commit(name, name, name, (0, 1), generation_id=3, member_id="nobody", **again),
            commit(name, name, name, (0, 1), generation_id=-1, member_id="nobody", **again),
            commit(name, name, name, (0, 1), generation_id=3, member_id="", **again),
            end(name, "abort", epoch=2),
        ]
    return steps


def _list(version: int) -> list[Step]:
    name = f"list-{version}"
    steps: list[Step] = [*created(name), *begun(name)]

    def listed(**fields: Json) -> Call:
        base: dict[str, Json] = {"state_filters": [], "producer_id_filters": [_ME]}
        return Call("ListTransactions", version, base | fields)

    steps += [
        listed(),
        add(name, name),
        listed(),
        listed(state_filters=["Ongoing"]),
        listed(state_filters=["Empty"]),
        listed(state_filters=["ongoing"]),
        listed(state_filters=["Ongoing", "Bogus", "Empty"]),
        listed(state_filters=["Bogus"]),
        listed(producer_id_filters=[900802]),
    ]
    if version >= 1:
        steps += [listed(duration_filter=each) for each in (-1, 0, 10_000_000, -7)]
    if version >= 2:
        for pattern in (name, "list", "list.*", "l[i]st-.", "^list-2$", "", "[", "(a", "*", "LIST-2"):
            steps.append(listed(transactional_id_pattern=pattern))
    return [
        *steps,
        end(name, "commit"),
        state(name, "CompleteCommit"),
        listed(state_filters=["CompleteCommit"]),
    ]


def _describe() -> list[Step]:
    name = "described"
    asked = Call("DescribeTransactions", 0, {"transactional_ids": [name]})
    return [
        *created(name, 3),
        *begun(name, transaction_timeout_ms=1234),
        Call("DescribeTransactions", 0, {"transactional_ids": ["nobody-knows"]}),
        Call("DescribeTransactions", 0, {"transactional_ids": []}),
        add(name, name, 1),
        asked,
        Call("DescribeTransactions", 0, {"transactional_ids": [name, "nobody-knows", name]}),
        end(name, "commit"),
        state(name, "CompleteCommit"),
        asked,
    ]


def _producers() -> list[Step]:
    name = "producers"

    def asked(*partitions: int, topic: str = name) -> Call:
        topics = [{"name": topic, "partition_indexes": list(partitions)}]
        return Call("DescribeProducers", 0, {"topics": topics})

    return [
        *created(name, 2),
        *begun(name),
        asked(0, 1),
        asked(7),
        asked(0, topic="no-such-topic"),
        add(name, name),
        asked(0),
        produce(11, name, numbered(0, "a", "b"), transactional_id=name),
        asked(0, 1),
        end(name, "commit"),
        state(name, "CompleteCommit"),
        asked(0),
        add(name, name, version=5),
        produce(11, name, numbered(2, "c"), transactional_id=name),
        end(name, "abort", version=5),
        state(name, "CompleteAbort"),
        asked(0),
    ]


def _markers(version: int) -> list[Step]:
    """As a coordinator sends them, or a tool that ends a transaction which was left behind."""
    name = f"markers-{version}"

    def marked(*topics: tuple[str, list[int]], **more: Json) -> Call:
        marker: dict[str, Json] = {
            "producer_id": _ME,
            "producer_epoch": 0,
            "transaction_result": False,
            "topics": [{"name": topic, "partition_indexes": indexes} for topic, indexes in topics],
            "coordinator_epoch": 0,
        }
        return Call("WriteTxnMarkers", version, {"markers": [marker | more]})

    here = (name, [0])
    return [
        *created(name, 2),
        *begun(name),
        add(name, name),
        produce(11, name, numbered(0, "a"), transactional_id=name),
        marked((name, [1, 9]), ("no-such-topic", [0])),
        marked(here, coordinator_epoch=5),
        read(name),
        produce(11, name, numbered(1, "b"), transactional_id=name),
        marked(here, coordinator_epoch=4),
        marked(here, coordinator_epoch=5, transaction_result=True),
        read(name),
        marked(here, producer_epoch=3, coordinator_epoch=6),
        marked(here, producer_epoch=2, coordinator_epoch=6),
        produce(11, name, numbered(2, "late"), transactional_id=name),
        marked(here, producer_id=900803, transaction_result=True),
        read(name),
    ]


def _strict_markers() -> list[Step]:
    """Where each transaction has an epoch of its own, its marker must be ahead of what it ends (KIP-890)."""
    name = "strict-markers"

    def marked(epoch: int, **more: Json) -> Call:
        marker: dict[str, Json] = {
            "producer_id": _ME,
            "producer_epoch": epoch,
            "transaction_result": True,
            "topics": [{"name": name, "partition_indexes": [0]}],
            "coordinator_epoch": 0,
            "transaction_version": 2,
        }
        return Call("WriteTxnMarkers", 2, {"markers": [marker | more]})

    return [
        *created(name),
        *begun(name),
        marked(0),
        marked(0),
        produce(12, name, numbered(0, "a", epoch=0), transactional_id=name),
        marked(0),
        read(name),
        marked(1),
        marked(1),
        marked(0),
        marked(1, transaction_version=0),
        marked(1, transaction_version=1),
        marked(3),
        read(name),
    ]
