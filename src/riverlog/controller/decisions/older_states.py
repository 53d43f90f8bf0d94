"""Partitions whose state is older than the log of a replica: who is to lead them. Pure.

A metadata store that was restored from a backup for good names leaders and ISRs of the past: replicas that it
has in sync may lack what was committed since. A broker that finds a later leader epoch in its log than in the
state says so (`BrokerImage.log_ends`). That is noted in the state (`PartitionImage.log_epoch`), and nobody
leads until each replica has told how far its log goes. The one that is furthest has all that is committed,
and leads under an epoch above all that was ever given. Where a replica is gone for good, somebody has to
decide that the others go on without it (`riverlog cluster elect --unclean`).
"""

from collections.abc import Mapping
from typing import Final

from riverlog.metadata.image import PartitionImage
from riverlog.metadata.partition_states import after_isr_change, node_of
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.log_end import LogEnd

_STEP_WITHOUT_OTHERS: Final = 1_000
"""Above whatever those that are gone may have been led under: they have to follow, should they come back."""

ReplicaEnds = Mapping[NodeId, LogEnd]
"""Of the replicas of one partition that have told, and are alive."""


def is_older(partition: PartitionImage, ends: ReplicaEnds) -> bool:
    """Whether some replica has records of a leader that the state does not know of. Who has none tells
    nothing, unless it is asked."""
    told = (end.epoch for node_id, end in ends.items() if node_id in partition.replicas)
    return partition.log_epoch is not None or any(epoch >= partition.leader_epoch for epoch in told)


def led_by_the_furthest(
    partition: PartitionImage, ends: ReplicaEnds, min_isr: int, *, without_others: bool = False
) -> PartitionNode:
    """The state in place of one that is older: led by one of the replicas that have told, if all have, or
    `without_others`; else by nobody. The registration of the leader is the caller's to add."""
    told = [node_id for node_id in partition.replicas if node_id in ends]
    is_complete = len(told) == len(partition.replicas)
    epoch = _last_epoch(partition, ends)
    if not told or not (is_complete or without_others):
        noted = node_of(partition)._replace(log_epoch=epoch)
        if partition.leader is None:
            return noted
        next_epoch = LeaderEpoch(partition.leader_epoch + 1)
        return noted._replace(leader=None, leader_epoch=next_epoch, leader_broker_epoch=None)
    leader = max(told, key=lambda node_id: ends[node_id])
    alone = after_isr_change(partition, [leader], min_isr, incomplete=partition.replicas)
    next_epoch = LeaderEpoch(epoch + (1 if is_complete else _STEP_WITHOUT_OTHERS))
    node = alone._replace(leader=leader, leader_epoch=next_epoch, last_known_elr=(), log_epoch=None)
    return node if is_complete else node._replace(unclean_epoch=next_epoch)


def _last_epoch(partition: PartitionImage, ends: ReplicaEnds) -> LeaderEpoch:
    """The latest that anybody knows of."""
    told = (end.epoch for node_id, end in ends.items() if node_id in partition.replicas)
    return max(partition.leader_epoch, partition.log_epoch or partition.leader_epoch, *told)
