"""Where the replicas of new partitions go: over racks as Kafka places them, and below a rack over hosts.

Leaders go round the brokers, in an order in which neighbours are in different racks and on different hosts as
far as can be. Each further replica is as many brokers on as the round says, shifted by one more each time
round, so that the partitions of a failed leader spread over the rest; but first comes a host that has no
replica of the partition yet, then a rack that has fewest. Brokers without a rack count as one rack; those
whose host is not known are taken to be on hosts of their own. Pure: the random start is passed in.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from riverlog.metadata.image import BrokerImage
from riverlog.model.ids import NodeId

T = TypeVar("T")


def place(
    brokers: Iterable[BrokerImage],
    *,
    partitions: int,
    replication_factor: int,
    start: int,
    after: NodeId | None = None,
) -> tuple[tuple[NodeId, ...], ...]:
    """Replicas of each partition, the preferred leader first. `after` is the leader that the first of them
    comes next to in the round, as of a topic that grows; `start` counts where there is none."""
    order = arrange(brokers)
    count = len(order)
    assert 0 < replication_factor <= count
    ids = [broker.node_id for broker in order]
    if after in ids:
        start += (ids.index(after) + 1 - start) % count
    shared: dict[tuple[NodeId, ...], tuple[NodeId, ...]] = {}
    placed: list[tuple[NodeId, ...]] = []
    for index in range(start, start + partitions):
        replicas = _replicas(order, index, replication_factor)
        placed.append(shared.setdefault(replicas, replicas))
    return tuple(placed)


def arrange(brokers: Iterable[BrokerImage]) -> list[BrokerImage]:
    """Racks in turn, and the hosts of each rack in turn."""
    by_id = sorted(brokers, key=lambda broker: broker.node_id)
    racks = _grouped(by_id, lambda broker: broker.rack or "")
    return _in_turn([_in_turn(_grouped(rack, host_of)) for rack in racks])


def host_of(broker: BrokerImage) -> Hashable:
    return broker.node_id if broker.host is None else broker.host


def _replicas(order: Sequence[BrokerImage], index: int, factor: int) -> tuple[NodeId, ...]:
    count = len(order)
    chosen = [order[index % count]]
    if factor > 1:
        shift = index // count
        walk = [order[(index + 1 + (shift + step) % (count - 1)) % count] for step in range(count - 1)]
        hosts, racks = Counter([host_of(chosen[0])]), Counter([chosen[0].rack])
        while len(chosen) < factor:
            following = min(walk, key=lambda each: (hosts[host_of(each)], racks[each.rack]))
            walk.remove(following)
            chosen.append(following)
            hosts[host_of(following)] += 1
            racks[following.rack] += 1
    return tuple(broker.node_id for broker in chosen)


def _grouped(
    brokers: Iterable[BrokerImage], key: Callable[[BrokerImage], Hashable]
) -> list[list[BrokerImage]]:
    """By what they have in common, in the order in which they come."""
    groups: dict[Hashable, list[BrokerImage]] = {}
    for broker in brokers:
        groups.setdefault(key(broker), []).append(broker)
    return list(groups.values())


def _in_turn(groups: Sequence[Sequence[T]]) -> list[T]:
    """One of each group, then the next of each, until all are through."""
    missing = object()
    rows = zip_longest(*groups, fillvalue=missing)
    return [each for row in rows for each in row if each is not missing]  # type: ignore[misc]
