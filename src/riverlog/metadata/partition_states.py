"""How the state of a partition changes when its ISR does: the rule of leaders and of the controller. Pure.

A replica that leaves an ISR which is then smaller than the topic's minimum becomes an eligible leader replica
(ELR, KIP-966): it has all that is committed, because nothing more is committed until the ISR has its minimum
again. At that moment the ELR ends. Not here: who leaves or joins, and who leads.
"""

from collections.abc import Collection

from riverlog.metadata.image import PartitionImage
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import LeaderEpoch, NodeId


def node_of(partition: PartitionImage) -> PartitionNode:
    """The state as it is, to be written with some of it changed."""
    return PartitionNode(
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.controller_epoch,
        partition.leader_broker_epoch,
        partition.elr,
        partition.last_known_elr,
        partition.unclean_epoch,
        partition.log_epoch,
    )


def effective_min_isr(partition: PartitionImage, min_isr: int) -> int:
    """`min.insync.replicas`, of which no more can be asked than there are replicas."""
    return min(min_isr, len(partition.replicas))


def after_isr_change(
    partition: PartitionImage, isr: Collection[NodeId], min_isr: int, *, incomplete: Collection[NodeId] = ()
) -> PartitionNode:
    """The state with another ISR, in the order of the replicas, under the same leader and epoch.

    `min_isr`: the topic's `min.insync.replicas`. `incomplete`: replicas that may lack committed data by now,
    which no ELR may name.
    """
    in_sync = tuple(node_id for node_id in partition.replicas if node_id in isr)
    node = node_of(partition)._replace(isr=in_sync)
    if len(in_sync) >= effective_min_isr(partition, min_isr):
        return node._replace(elr=(), last_known_elr=())
    eligible = {*partition.isr, *partition.elr}.difference(in_sync, incomplete)
    return node._replace(
        elr=tuple(node_id for node_id in partition.replicas if node_id in eligible),
        last_known_elr=tuple(node_id for node_id in partition.last_known_elr if node_id not in in_sync),
    )


def without_incomplete(
    partition: PartitionImage, node_id: NodeId, min_isr: int, *, has_log: bool
) -> PartitionNode:
    """The state after a replica has come back that may lack committed data: in no ISR and no ELR, and no
    leader. Where only eligible leaders are left, they are the ISR. Where nobody is, the ISR is empty, and
    who was the last with some of the data is the last known leader."""
    others = [each for each in partition.isr if each != node_id]
    others = others or [each for each in partition.elr if each != node_id]
    node = after_isr_change(partition, others, min_isr, incomplete=[node_id])
    if not others:
        node = node._replace(last_known_elr=(node_id,) if has_log else ())
    if others and partition.leader != node_id:
        return node
    return node._replace(
        leader=None, leader_epoch=LeaderEpoch(partition.leader_epoch + 1), leader_broker_epoch=None
    )
