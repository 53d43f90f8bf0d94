"""Which replica a consumer is sent to by the leader it asks: one in sync in its own rack (KIP-392).

The rule is that of Apache Kafka's RackAwareReplicaSelector: a leader in the client's rack serves it itself,
otherwise the follower there that has come furthest, if its log covers the offset. One thing more is asked of
that follower: that it was heard of a moment ago. A broker that died stays in the ISR until its session ends,
and a client that cannot reach it comes back to the leader at once: it must not be sent there again and again.
Not here: what followers answer (`reads`).
"""

from typing import Final

from riverlog.model.clock import Clock
from riverlog.model.ids import NodeId
from riverlog.replication.leading.standing import Standing
from riverlog.replication.partition import Partition

_SILENCE_S_MAX: Final = 3.0
"""Followers ask twice a second, even when there is nothing to copy."""


class NearestReplica:
    def __init__(self, node_id: NodeId, standing: Standing, clock: Clock) -> None:
        self._node_id = node_id
        self._standing = standing
        self._clock = clock

    def find(self, partition: Partition, rack: str, listener_name: str, offset: int) -> NodeId | None:
        """Who is to be asked instead of this broker, which leads the partition; None for nobody."""
        brokers = self._standing.brokers
        me = brokers.get(self._node_id)
        if me is not None and me.rack == rack:
            return None
        candidates = [
            (end_offset, node_id)
            for node_id, end_offset in partition.led.in_sync_with(offset)
            if (broker := brokers.get(node_id)) is not None
            and broker.rack == rack
            and listener_name in broker.endpoints
            and not broker.is_shutting_down
            and (partition.topic_id, partition.topic_partition.partition) not in broker.offline
        ]
        if not candidates:
            return None
        heard = partition.tenure.heard_since(self._clock.monotonic_s() - _SILENCE_S_MAX)
        return max((each for each in candidates if each[1] in heard), default=(0, None))[1]
