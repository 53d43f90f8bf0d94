"""Where the replicas of new partitions go. Pure: the random start is passed in.

Leaders go round the brokers, and each further replica is one broker on, shifted by one more each time round,
so that the partitions of a failed leader spread over the rest. Racks are not looked at yet.
"""

from collections.abc import Sequence

from riverlog.model.ids import NodeId


def place(
    brokers: Sequence[NodeId], *, partitions: int, replication_factor: int, start: int
) -> tuple[tuple[NodeId, ...], ...]:
    """Replicas of each partition, the preferred leader first."""
    count = len(brokers)
    assert 0 < replication_factor <= count
    shared: dict[tuple[NodeId, ...], tuple[NodeId, ...]] = {}
    placed: list[tuple[NodeId, ...]] = []
    for index in range(partitions):
        first = start + index
        shift = (start + index) // count
        replicas = [brokers[first % count]]
        for extra in range(replication_factor - 1):
            step = 1 + (shift + extra) % (count - 1)
            replicas.append(brokers[(first + step) % count])
        placed.append(shared.setdefault(tuple(replicas), tuple(replicas)))
    return tuple(placed)
