"""What a broker answers about partitions that another one leads, and to who says that it is a follower."""

from __future__ import annotations

from typing import Any

from tests.differential.brokers.common import ALL, at, everywhere, placed
from tests.differential.sequences.common import VERSIONS, fetch, produce, wanted
from tests.differential.steps import Call, Script, Step, batch, var

Json = Any


def scripts() -> list[Script]:
    return [
        *(Script("Produce", f"led elsewhere, version {v}", _produced(v)) for v in VERSIONS["Produce"]),
        *(Script("Fetch", f"led elsewhere, version {v}", _fetched(v)) for v in range(4, 11)),
        Script("Fetch", "from a follower", _read_from_follower()),
        Script("Fetch", "as a replica, with an epoch of the leader", _as_replica(0)),
        Script("Fetch", "as a replica, with a later epoch of the leader", _as_replica(5)),
        Script("Fetch", "as a replica, without an epoch of the leader", _as_replica(-1)),
        *(Script("Fetch", f"by a forged replica, version {v}", _forged(v)) for v in VERSIONS["Fetch"]),
        *(Script("ListOffsets", f"led elsewhere, version {v}", _listed(v)) for v in VERSIONS["ListOffsets"]),
        *(
            Script("OffsetForLeaderEpoch", f"led elsewhere, version {v}", _epochs(v))
            for v in VERSIONS["OffsetForLeaderEpoch"]
        ),
        *(
            Script("DeleteRecords", f"led elsewhere, version {v}", _deleted(v))
            for v in VERSIONS["DeleteRecords"]
        ),
        Script("DescribeProducers", "led elsewhere", _producers()),
    ]


def _produced(version: int) -> list[Step]:
    name = f"produce-elsewhere-{version}"
    one = batch("a")
    return [
        *placed(name, ALL),
        *(
            at(broker, produce(version, name, one, partition=partition, acks=acks))
            for partition in range(3)
            for broker in (1, 2, 3)
            for acks in (-1, 1)
        ),
        at(2, produce(version, name, one, acks=0)),
        at(1, produce(version, name, one, partition=7)),
    ]


def _fetched(version: int) -> list[Step]:
    name = f"fetch-elsewhere-{version}"
    return [
        *placed(name, ALL),
        at(1, produce(9, name, batch("a", "b"))),
        *everywhere(fetch(version, name, wanted(0, 0))),
        *everywhere(fetch(version, name, wanted(0, 0, current_leader_epoch=0))),
        *everywhere(fetch(version, name, wanted(0, 0, current_leader_epoch=5))),
        *everywhere(fetch(version, name, wanted(1, 0), wanted(2, 0))),
        *everywhere(fetch(version, name, wanted(0, 99))),
        *everywhere(fetch(version, name, wanted(7, 0))),
    ]


def _read_from_follower() -> list[Step]:
    """Since version 11 a consumer may read from a follower what that one knows to be committed."""
    name = "fetch-follower"
    questions = [
        wanted(0, 0),
        wanted(0, 2),
        wanted(0, 0, current_leader_epoch=0),
        wanted(0, 0, current_leader_epoch=5),
        wanted(0, 99),
        wanted(7, 0),
    ]
    known = {"responses.0.partitions.0.high_watermark": 2}
    return [
        *placed(name, [[1, 2]]),
        at(1, produce(9, name, batch("a", "b"))),
        at(2, fetch(12, name, wanted(0, 0), until=known)),
        *(
            at(broker, fetch(version, name, question, rack_id=rack))
            for version in range(11, 19)
            for question in questions
            for broker in (1, 2, 3)
            for rack in ("", "here")
        ),
    ]


def _forged(version: int) -> list[Step]:
    """By brokers that hold no replica, and that do not exist."""
    name = f"fetch-forged-{version}"
    return [
        *placed(name, [[1, 2], [2, 1]]),
        at(1, produce(9, name, batch("a", "b"))),
        *(
            at(
                broker,
                fetch(version, name, wanted(0, 0, current_leader_epoch=epoch), **_as(version, replica)),
            )
            for replica in ((3, -1), (9, -1), (9, 5))
            for broker in (1, 2)
            for epoch in (-1, 0, 5)
        ),
        at(1, fetch(version, name, wanted(0, 0), **_as(version, (-2, -1)))),
        at(1, fetch(version, name, wanted(0, 0))),
    ]


def _as_replica(epoch: int) -> list[Step]:
    """By a broker that holds one, asked from where the real one has been, so that nothing comes of it."""
    name = f"fetch-replica-{epoch + 1}"
    return [
        *placed(name, [[1, 2]]),
        at(1, produce(9, name, batch("a", "b"))),
        *(
            at(
                broker,
                fetch(version, name, wanted(0, 0, current_leader_epoch=epoch), **_as(version, replica)),
            )
            for version in (VERSIONS["Fetch"] if epoch < 0 else range(9, 19))
            for replica in ((2, -1), (2, 999_999))
            for broker in (1, 2, 3)
        ),
    ]


def _as(version: int, replica: tuple[int, int]) -> dict[str, Json]:
    if version < 15:
        return {"replica_id": replica[0]}
    return {"replica_state": {"replica_id": replica[0], "replica_epoch": replica[1]}}


def _listed(version: int) -> list[Step]:
    name = f"list-offsets-elsewhere-{version}"

    def asked(timestamp: int, replica: int = -1, epoch: int = -1) -> Call:
        place = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": epoch}
        topics = [{"name": name, "partitions": [place]}]
        return Call("ListOffsets", version, {"replica_id": replica, "topics": topics, "timeout_ms": 1000})

    return [
        *placed(name, ALL),
        at(1, produce(9, name, batch("a", "b"))),
        *(step for timestamp in (-1, -2, 0) for step in everywhere(asked(timestamp))),
        *(step for epoch in (0, 5) for step in everywhere(asked(-2, epoch=epoch))),
        *(step for replica in (-2, 2, 9) for step in everywhere(asked(-2, replica=replica))),
    ]


def _epochs(version: int) -> list[Step]:
    name = f"leader-epoch-elsewhere-{version}"

    def asked(replica: int = -1, current: int = -1) -> Call:
        place = {"partition": 0, "current_leader_epoch": current, "leader_epoch": 0}
        topics = [{"topic": name, "partitions": [place]}]
        return Call("OffsetForLeaderEpoch", version, {"replica_id": replica, "topics": topics})

    return [
        *placed(name, ALL),
        at(1, produce(9, name, batch("a", "b"))),
        *(step for current in (-1, 0, 5) for step in everywhere(asked(current=current))),
        *(step for replica in (-2, 2, 9) for step in everywhere(asked(replica=replica))),
    ]


def _deleted(version: int) -> list[Step]:
    name = f"delete-records-elsewhere-{version}"

    def asked(offset: int) -> Call:
        topics = [{"name": name, "partitions": [{"partition_index": 0, "offset": offset}]}]
        return Call("DeleteRecords", version, {"topics": topics, "timeout_ms": 5000})

    start = {"partition_index": 0, "timestamp": -2}
    where = {"replica_id": -1, "topics": [{"name": name, "partitions": [start]}]}
    return [
        *placed(name, ALL),
        at(1, produce(9, name, batch("a", "b", "c"))),
        at(2, asked(1)),
        at(3, asked(1)),
        at(1, asked(2)),
        at(1, Call("ListOffsets", 7, where)),
        at(1, asked(99)),
        at(1, asked(-1)),
    ]


def _producers() -> list[Step]:
    name = "producers-elsewhere"
    asked = {"topics": [{"name": name, "partition_indexes": [0]}]}
    return [
        *placed(name, ALL),
        at(1, Call("InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1000})),
        at(
            1,
            produce(9, name, batch("a", producer_id=var("producer:1"), producer_epoch=0, base_sequence=0)),
        ),
        *everywhere(Call("DescribeProducers", 0, asked)),
    ]
