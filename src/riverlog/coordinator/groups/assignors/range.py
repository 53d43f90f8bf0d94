"""The `range` assignor: each topic is cut into consecutive ranges, one for each member that subscribes to it.

Members stand in a fixed order (static ones first, by instance id, then by member id), so the same range of
each co-partitioned topic goes to the same member. When members come and go the ranges are computed again.
"""

from collections.abc import Mapping

from riverlog.coordinator.groups.assignors.subscribers import Assignment, Subscriber
from riverlog.model.ids import TopicId


def assign_ranges(
    members: Mapping[str, Subscriber], partitions: Mapping[TopicId, int]
) -> dict[str, Assignment]:
    ranges: dict[str, dict[TopicId, tuple[int, ...]]] = {member_id: {} for member_id in members}
    ordered = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    readers: dict[TopicId, list[str]] = {}
    for member_id in ordered:
        for topic in members[member_id].topics:
            readers.setdefault(topic, []).append(member_id)
    for topic, of_topic in readers.items():
        each, more = divmod(partitions[topic], len(of_topic))
        start = 0
        for place, member_id in enumerate(of_topic):
            end = start + each + (place < more)
            if end > start:
                ranges[member_id][topic] = tuple(range(start, end))
            start = end
    return {**ranges}


def _place(member_id: str, member: Subscriber) -> tuple[bool, str]:
    return member.instance_id is None, member.instance_id or member_id
