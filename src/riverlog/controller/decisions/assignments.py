"""Replicas that a request names itself, instead of leaving them to `placement`. Pure."""

from collections.abc import Sequence, Set

from riverlog.controller.decisions.refusals import Refusal
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId

Replicas = tuple[NodeId, ...]


def decide_replicas(
    assigned: Sequence[tuple[int, Sequence[int]]], brokers: Set[NodeId]
) -> tuple[Replicas, ...] | Refusal:
    """The replicas of a new topic's partitions by index, from pairs that may come in any order."""
    by_index: dict[int, Replicas] = {}
    for index, node_ids in assigned:
        if index in by_index:
            return _refused(f"Partition {index} is assigned more than once.")
        expected = len(next(iter(by_index.values()))) if by_index else None
        checked = check_replicas(node_ids, brokers, expected)
        if isinstance(checked, Refusal):
            return checked
        by_index[index] = checked
    if set(by_index) != set(range(len(by_index))):
        return _refused("The assigned partitions must be numbered from 0 without a gap.")
    return tuple(by_index[index] for index in range(len(by_index)))


def check_replicas(
    node_ids: Sequence[int], brokers: Set[NodeId], replication_factor: int | None
) -> Replicas | Refusal:
    """The replicas of one partition; `replication_factor` is that of the partitions before it, if any."""
    if not node_ids:
        return _refused("A partition is assigned no replica at all.")
    previous: int | None = None
    for node_id in sorted(node_ids):
        if node_id not in brokers:
            return _refused(f"A partition is assigned to broker {node_id}, which is not registered.")
        if node_id == previous:
            return _refused(f"A partition is assigned to broker {node_id} more than once.")
        previous = node_id
    if replication_factor is not None and len(node_ids) != replication_factor:
        return _refused(
            f"A partition is assigned {len(node_ids)} replicas where the others have {replication_factor}."
        )
    return tuple(map(NodeId, node_ids))


def _refused(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
