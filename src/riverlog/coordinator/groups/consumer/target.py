"""Computing the target assignment of a group, and writing what is different in it."""

from riverlog.coordinator.groups.assignors import ASSIGNORS, Subscriber
from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.topics import sizes_of
from riverlog.metadata.image import ClusterImage
from riverlog.model.ids import TopicId


def write_target(change: GroupChange, image: ClusterImage, default_assignor: str, now_ms: int) -> None:
    """The target for the group's epoch, as the assignor sees it that most members ask for."""
    group = change.group
    ids: dict[frozenset[str], frozenset[TopicId]] = {}
    subscribers: dict[str, Subscriber] = {}
    for member_id, member in group.members.items():
        names = group.topics_of(member)
        if names not in ids:
            ids[names] = frozenset(sizes_of(names, image))
        subscribers[member_id] = Subscriber(ids[names], group.target_of(member_id), member.instance_id)
    assign = ASSIGNORS[group.assignor_wanted(default_assignor)]
    assigned = assign(subscribers, sizes_of(group.subscribed_topics(), image))
    for member_id, assignment in assigned.items():
        if assignment != group.target_of(member_id):
            change.write(records.target(group.group_id, member_id, assignment))
    change.write(records.target_epoch(group.group_id, group.epoch, now_ms))
