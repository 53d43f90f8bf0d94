"""The `uniform` assignor: members of the same subscription differ by one partition at most.

Balance comes first and stickiness second: a partition moves only if that makes the group more even, or if
its member may not have it any more. Where subscriptions differ, the group is as even as single moves can
make it: no partition could go to a member that has two fewer than its owner.
"""

from collections.abc import Iterable, Mapping

from riverlog.coordinator.groups.assignors.subscribers import Assignment, Subscriber, in_order
from riverlog.model.ids import TopicId

TopicIdPartition = tuple[TopicId, int]
Held = dict[str, set[TopicIdPartition]]


def assign_uniformly(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Assignment]:
    ordered = {member_id: members[member_id] for member_id in sorted(members)}
    held = _what_may_stay(ordered, partitions)
    subscriptions = {member.topics for member in ordered.values()}
    wanted = {topic for topics in subscriptions for topic in topics}
    taken = {partition for kept in held.values() for partition in kept}
    free = [
        (topic, index)
        for topic in sorted(wanted)
        for index in range(partitions[topic])
        if (topic, index) not in taken
    ]
    if len(subscriptions) == 1:
        _share_alike(held, free)
    else:
        _share_by_subscription(held, free, ordered)
    return {member_id: _by_topic(kept) for member_id, kept in held.items()}


def _what_may_stay(members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]) -> Held:
    held: Held = {}
    taken: set[TopicIdPartition] = set()
    for member_id, member in members.items():
        kept = {
            (topic, index)
            for topic, indexes in member.current.items()
            if topic in member.topics
            for index in indexes
            if index < partitions[topic]
        } - taken
        taken |= kept
        held[member_id] = kept
    return held


def _share_alike(held: Held, free: list[TopicIdPartition]) -> None:
    """All members read the same: a quota for each, and those that have more already get the odd ones."""
    if not held:
        return
    total = len(free) + sum(map(len, held.values()))
    quota, odd = divmod(total, len(held))
    quotas = dict.fromkeys(held, quota)
    richest_first = sorted(held, key=lambda member_id: -min(len(held[member_id]), quota + 1))
    for member_id in richest_first[:odd]:
        quotas[member_id] += 1
    for member_id, kept in held.items():
        for partition in sorted(kept)[quotas[member_id] :]:
            kept.remove(partition)
            free.append(partition)
    waiting = iter(free)
    for member_id, kept in held.items():
        for _ in range(quotas[member_id] - len(kept)):
            kept.add(next(waiting))


def _share_by_subscription(
    held: Held, free: list[TopicIdPartition], members: Mapping[str, Subscriber]
) -> None:
    readers: dict[TopicId, list[str]] = {}
    for member_id, member in members.items():
        for topic in member.topics:
            readers.setdefault(topic, []).append(member_id)
    # Topics that few may read leave the least choice, so they are dealt out first.
    for partition in sorted(free, key=lambda each: (len(readers[each[0]]), each)):
        held[_poorest(held, readers[partition[0]])].add(partition)
    is_even = False
    while not is_even:
        is_even = True
        for topic in sorted(readers, key=lambda each: (len(readers[each]), each)):
            while _move_one(held, topic, readers[topic]):
                is_even = False


def _move_one(held: Held, topic: TopicId, readers: list[str]) -> bool:
    """Make the members more even by one partition of the topic; each move lowers the sum of squares."""
    poorest = _poorest(held, readers)
    for giver in sorted(readers, key=lambda member_id: -len(held[member_id])):
        if len(held[giver]) - len(held[poorest]) < 2:
            return False
        of_topic = [partition for partition in held[giver] if partition[0] == topic]
        if of_topic:
            moved = max(of_topic)
            held[giver].remove(moved)
            held[poorest].add(moved)
            return True
    return False


def _poorest(held: Held, readers: Iterable[str]) -> str:
    return min(readers, key=lambda member_id: len(held[member_id]))


def _by_topic(kept: set[TopicIdPartition]) -> Assignment:
    by_topic: dict[TopicId, list[int]] = {}
    for topic, index in sorted(kept):
        by_topic.setdefault(topic, []).append(index)
    return in_order(by_topic)
