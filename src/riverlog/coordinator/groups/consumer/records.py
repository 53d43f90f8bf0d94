"""Groups of the consumer protocol as records, read and written.

Writing makes a `GroupRecordWrite` that is both replayed on a copy of the group and encoded for the log;
reading turns the values of records into the parts of a group.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from riverlog.coordinator.formats import consumer_assignments, consumer_groups, consumer_members
from riverlog.coordinator.formats.formats import GroupRecord, record
from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer.member import ClassicPart, ConsumerMember, Epochs, MemberState
from riverlog.coordinator.runtime.effects import CoordinatorRecord
from riverlog.model.ids import TopicId
from riverlog.wire.schema import Message


class GroupRecordWrite(NamedTuple):
    kind: GroupRecord
    key: Message
    value: Message | None

    def encoded(self) -> CoordinatorRecord:
        return record(self.kind, self.key, self.value)


class Resolved(NamedTuple):
    """What a regular expression matched when it was last looked at."""

    topics: tuple[str, ...]
    version: int
    resolved_ms: int


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupRecordWrite:
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_METADATA,
        consumer_groups.ConsumerGroupMetadataKey(group_id=group_id),
        consumer_groups.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def subscription(group_id: str, member: ConsumerMember) -> GroupRecordWrite:
    classic = member.classic
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_MEMBER_METADATA,
        consumer_members.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        consumer_members.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=None
            if classic is None
            else consumer_members.ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    consumer_members.ClassicMemberProtocol(name=name, metadata=metadata)
                    for name, metadata in classic.protocols
                ],
            ),
        ),
    )


def subscribed(
    member: ConsumerMember, value: consumer_members.ConsumerGroupMemberMetadataValue
) -> ConsumerMember:
    """The member with what a record says of its subscription."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicPart(
            classic.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols),
        ),
    )


def current_assignment(group_id: str, member: ConsumerMember) -> GroupRecordWrite:
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        consumer_assignments.ConsumerGroupCurrentMemberAssignmentKey(
            group_id=group_id, member_id=member.member_id
        ),
        consumer_assignments.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.revoking),
        ),
    )


def assigned(
    member: ConsumerMember, value: consumer_assignments.ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    """The member with what a record says of where it stands."""
    known = value.state in (0, 1, 2)
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_read(value.assigned_partitions, value.member_epoch),
        revoking=_read(value.partitions_pending_revocation, value.member_epoch),
    )


def target_epoch(group_id: str, epoch: int, assigned_ms: int) -> GroupRecordWrite:
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        consumer_assignments.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        consumer_assignments.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp_ms=assigned_ms
        ),
    )


def target(group_id: str, member_id: str, assignment: Assignment) -> GroupRecordWrite:
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        consumer_assignments.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        consumer_assignments.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                consumer_assignments.TargetTopicPartitions(topic_id=topic, partitions=list(indexes))
                for topic, indexes in sorted(assignment.items())
            ]
        ),
    )


def targeted(value: consumer_assignments.ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    return {
        TopicId(each.topic_id): tuple(sorted(each.partitions))
        for each in value.topic_partitions
        if each.topic_id is not None
    }


def regex(group_id: str, expression: str, resolved: Resolved | None) -> GroupRecordWrite:
    return GroupRecordWrite(
        GroupRecord.CONSUMER_GROUP_REGULAR_EXPRESSION,
        consumer_groups.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        None
        if resolved is None
        else consumer_groups.ConsumerGroupRegularExpressionValue(
            topics=list(resolved.topics), version=resolved.version, timestamp_ms=resolved.resolved_ms
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> tuple[GroupRecordWrite, ...]:
    """In Kafka's order: where it stands, where it should, and that it is there at all."""
    of_member = {"group_id": group_id, "member_id": member_id}
    return (
        GroupRecordWrite(
            GroupRecord.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            consumer_assignments.ConsumerGroupCurrentMemberAssignmentKey(**of_member),
            None,
        ),
        GroupRecordWrite(
            GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            consumer_assignments.ConsumerGroupTargetAssignmentMemberKey(**of_member),
            None,
        ),
        GroupRecordWrite(
            GroupRecord.CONSUMER_GROUP_MEMBER_METADATA,
            consumer_members.ConsumerGroupMemberMetadataKey(**of_member),
            None,
        ),
    )


def group_tombstones(group_id: str) -> tuple[GroupRecordWrite, ...]:
    return (
        GroupRecordWrite(
            GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
            consumer_assignments.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
            None,
        ),
        GroupRecordWrite(
            GroupRecord.CONSUMER_GROUP_METADATA,
            consumer_groups.ConsumerGroupMetadataKey(group_id=group_id),
            None,
        ),
    )


def _topic_partitions(partitions: Epochs) -> list[consumer_assignments.CurrentTopicPartitions]:
    return [
        consumer_assignments.CurrentTopicPartitions(
            topic_id=topic,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[index] for index in sorted(epochs)],
        )
        for topic, epochs in sorted(partitions.items())
    ]


def _read(told: list[consumer_assignments.CurrentTopicPartitions], member_epoch: int) -> Epochs:
    """Records of older versions do not tell epochs: the member's own is the safe bound."""
    read: dict[TopicId, Mapping[int, int]] = {}
    for each in told:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [member_epoch] * len(each.partitions)
        if each.topic_id is not None:
            read[TopicId(each.topic_id)] = dict(zip(each.partitions, epochs, strict=True))
    return read
