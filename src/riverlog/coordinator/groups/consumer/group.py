"""A group of the consumer protocol: what its records say, and nothing else.

`replay` is the only mutator. A decision works on a `copy` to which it replays what it writes, so it sees the
group as it will be; the group itself changes when the runtime has written the records. The values inside
(members, assignments) are immutable, so a copy is shallow.
"""

from collections.abc import Iterable
from enum import StrEnum

from riverlog.coordinator.formats import consumer_assignments, consumer_groups, consumer_members
from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.member import ConsumerMember, Epochs, MemberState
from riverlog.coordinator.groups.consumer.records import Resolved
from riverlog.model.ids import TopicId
from riverlog.wire.schema import Message

_FIRST_EPOCH = 1
"""Of a group about which nothing has been written: the first change makes it 2, as in Kafka 4.3."""
NO_TARGET: Assignment = {}


class GroupState(StrEnum):
    """As it is told to clients."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = _FIRST_EPOCH
        self.targeted_ms = 0
        """When the target assignment was computed."""
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, Resolved] = {}
        self.owners: dict[tuple[TopicId, int], str] = {}
        """Who has a partition, or has been told to give it up and has not confirmed it."""
        self.instances: dict[str, str] = {}
        """Member ids by instance id."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerGroup):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def copy(self) -> "ConsumerGroup":
        copied = ConsumerGroup(self.group_id)
        for name, value in vars(self).items():
            setattr(copied, name, dict(value) if isinstance(value, dict) else value)
        return copied

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(
            each.state is MemberState.STABLE and each.epoch == self.target_epoch
            for each in self.members.values()
        ):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def is_without_a_trace(self) -> bool:
        """Whether no record says anything of the group."""
        return self == ConsumerGroup(self.group_id)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_TARGET)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """By name and by what its expression matched; one that is not resolved matches nothing yet."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return frozenset(member.topics).union(resolved.topics if resolved else ())

    def subscribed_topics(self) -> frozenset[str]:
        names: set[str] = set()
        for member in self.members.values():
            names.update(member.topics)
        for expression in self.wanted_regexes():
            if expression in self.regexes:
                names.update(self.regexes[expression].topics)
        return frozenset(names)

    def wanted_regexes(self) -> frozenset[str]:
        return frozenset(each.regex for each in self.members.values() if each.regex)

    def assignor_wanted(self, default: str) -> str:
        """What most members ask for; the first by name if there are several."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.assignor is not None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return min(votes, key=lambda name: (-votes[name], name)) if votes else default

    def replay(self, key: Message, value: Message | None) -> None:
        """Take over one record; a value of None is a tombstone."""
        match key:
            case consumer_groups.ConsumerGroupMetadataKey():
                self._replay_epoch(value)
            case consumer_assignments.ConsumerGroupTargetAssignmentMetadataKey():
                self._replay_target_epoch(value)
            case consumer_members.ConsumerGroupMemberMetadataKey(member_id=member_id):
                self._replay_subscription(member_id, value)
            case consumer_assignments.ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                if isinstance(value, consumer_assignments.ConsumerGroupTargetAssignmentMemberValue):
                    self.targets[member_id] = records.targeted(value)
                else:
                    self.targets.pop(member_id, None)
            case consumer_assignments.ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                self._replay_assignment(member_id, value)
            case consumer_groups.ConsumerGroupRegularExpressionKey(regular_expression=expression):
                if isinstance(value, consumer_groups.ConsumerGroupRegularExpressionValue):
                    self.regexes[expression] = Resolved(
                        tuple(value.topics), value.version, value.timestamp_ms
                    )
                else:
                    self.regexes.pop(expression, None)
            case _:
                pass  # Partition metadata, as Kafka wrote it before 4.1; the hash has taken its place.

    def _replay_epoch(self, value: Message | None) -> None:
        if isinstance(value, consumer_groups.ConsumerGroupMetadataValue):
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        else:
            self.epoch, self.metadata_hash = _FIRST_EPOCH, 0

    def _replay_target_epoch(self, value: Message | None) -> None:
        if isinstance(value, consumer_assignments.ConsumerGroupTargetAssignmentMetadataValue):
            self.target_epoch, self.targeted_ms = value.assignment_epoch, value.assignment_timestamp_ms
        else:
            self.target_epoch, self.targeted_ms = _FIRST_EPOCH, 0

    def _replay_subscription(self, member_id: str, value: Message | None) -> None:
        old = self.members.get(member_id)
        if isinstance(value, consumer_members.ConsumerGroupMemberMetadataValue):
            new = records.subscribed(old or ConsumerMember(member_id), value)
            self.members[member_id] = new
            if new.instance_id is not None:
                self.instances[new.instance_id] = member_id
        elif old is not None:
            del self.members[member_id]
            self._let_go(old)
            if old.instance_id is not None and self.instances.get(old.instance_id) == member_id:
                del self.instances[old.instance_id]

    def _replay_assignment(self, member_id: str, value: Message | None) -> None:
        old = self.members.get(member_id)
        if isinstance(value, consumer_assignments.ConsumerGroupCurrentMemberAssignmentValue):
            new = records.assigned(old or ConsumerMember(member_id), value)
        elif old is not None:
            new = records.assigned(old, consumer_assignments.ConsumerGroupCurrentMemberAssignmentValue())
        else:
            return
        if old is not None:
            self._let_go(old)
        self.members[member_id] = new
        for partition in _partitions(new.assigned, new.revoking):
            self.owners[partition] = member_id

    def _let_go(self, member: ConsumerMember) -> None:
        for partition in _partitions(member.assigned, member.revoking):
            if self.owners.get(partition) == member.member_id:
                del self.owners[partition]


def _partitions(*several: Epochs) -> Iterable[tuple[TopicId, int]]:
    for by_topic in several:
        for topic, indexes in by_topic.items():
            for index in indexes:
                yield topic, index
