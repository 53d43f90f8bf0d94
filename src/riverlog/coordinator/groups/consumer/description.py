"""A group of the consumer protocol as it is described to clients, as values."""

from typing import NamedTuple

from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.member import ConsumerMember


class DescribedMember(NamedTuple):
    member: ConsumerMember
    owned: Assignment
    """What it may still have counts, though it has been told to give it up."""
    target: Assignment


class Description(NamedTuple):
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedMember, ...]


def describe(group: ConsumerGroup, default_assignor: str) -> Description:
    return Description(
        group.state,
        group.epoch,
        group.target_epoch,
        group.assignor_wanted(default_assignor),
        tuple(
            DescribedMember(member, _owned(member), group.target_of(member_id))
            for member_id, member in group.members.items()
        ),
    )


def _owned(member: ConsumerMember) -> Assignment:
    return {
        topic: tuple(sorted({*member.assigned.get(topic, ()), *member.revoking.get(topic, ())}))
        for topic in {**member.assigned, **member.revoking}
    }
