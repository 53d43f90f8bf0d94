"""A group that changes from one protocol to the other while its members go on (KIP-848).

Up, when a member of the consumer protocol joins a classic group of consumers: generation, members and their
assignments become the epoch, members and target of the new group. Down, when the last such member has gone
and only classic ones are left: the group becomes classic again, and its members join again. Either way the
records of the old form are removed in the batch that writes those of the new one.
"""

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.member import Member
from riverlog.coordinator.groups.classic.records import StoredGroup, StoredMember, record_of
from riverlog.coordinator.groups.classic.requests import Joined, MemberProtocol, Protocols, Synced
from riverlog.coordinator.groups.consumer import records
from riverlog.coordinator.groups.consumer.classic_payloads import read_assignment, write_assignment
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.member import ClassicPart, ConsumerMember
from riverlog.coordinator.groups.consumer.topics import metadata_hash
from riverlog.coordinator.runtime.effects import CoordinatorRecord, Effects, Reply
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId


def may_go_up(classic: ClassicGroup, config: GroupConfig) -> bool:
    """Only groups of consumers whose subscriptions can be read, and that are not too large."""
    return (
        config.consumer_migration_policy.lower() in ("bidirectional", "upgrade")
        and classic.protocol_type == classic_protocols.CONSUMER
        and len(classic.members) <= config.consumer_group_size_max
        and all(
            classic_protocols.read_subscription(protocol.metadata) is not None
            for member in classic.members.values()
            for protocol in member.protocols
        )
    )


def go_up(classic: ClassicGroup, image: ClusterImage, now_ms: int) -> GroupChange:
    """The classic group as one of the consumer protocol, with all that has to be written for it."""
    group_id = classic.group_id
    change = GroupChange(ConsumerGroup(group_id), *classic.tombstones())
    epoch = max(classic.generation, change.group.epoch)
    taken: set[tuple[TopicId, int]] = set()
    members = [_upgraded(member, epoch, image, taken) for member in classic.members.values()]
    for member in members:
        change.write_subscription(member)
    change.write(records.group_epoch(group_id, epoch, metadata_hash(change.group.subscribed_topics(), image)))
    for member in members:
        target = {topic: tuple(sorted(epochs)) for topic, epochs in member.assigned.items()}
        change.write(records.target(group_id, member.member_id, target))
    change.write(records.target_epoch(group_id, epoch, now_ms))
    for member in members:
        change.write_assignment(member)
    return change


def called_back(classic: ClassicGroup) -> Effects:
    """Members that wait for the classic group are told to join again, and find the other one."""
    error = ErrorCode.REBALANCE_IN_PROGRESS
    replies: list[Reply] = []
    for member in classic.members.values():
        if member.joining is not None:
            replies.append(Reply(member.joining, Joined(member.member_id, error)))
        if member.syncing is not None:
            replies.append(Reply(member.syncing, Synced(error)))
    return Effects(replies=tuple(replies))


def _upgraded(
    member: Member, epoch: int, image: ClusterImage, taken: set[tuple[TopicId, int]]
) -> ConsumerMember:
    subscription = classic_protocols.read_subscription(member.protocols[0].metadata)
    assert subscription is not None, "the group has been judged"
    assigned: dict[TopicId, dict[int, int]] = {}
    for topic, indexes in read_assignment(member.assignment, image).items():
        for index in indexes:
            # The consumers may have given a partition to two of them; here it has one owner.
            if (topic, index) not in taken:
                taken.add((topic, index))
                assigned.setdefault(topic, {})[index] = epoch
    return ConsumerMember(
        member.member_id,
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicPart(
            member.session_timeout_ms, tuple((each.name, each.metadata) for each in member.protocols)
        ),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
    )


def may_go_down(group: ConsumerGroup, config: GroupConfig) -> bool:
    return (
        config.consumer_migration_policy.lower() in ("bidirectional", "downgrade")
        and 0 < len(group.members) <= config.group_size_max
        and all(member.classic is not None for member in group.members.values())
        and classic_protocols.chosen([protocols_of(member) for member in group.members.values()]) is not None
    )


def go_down(change: GroupChange, image: ClusterImage, now_ms: int) -> tuple[CoordinatorRecord, ...]:
    """Remove what is left of the group and write it as a classic one."""
    group_id, epoch = change.group.group_id, change.group.epoch
    members = tuple(change.group.members.values())
    protocol = classic_protocols.chosen([protocols_of(member) for member in members])
    for member in members:
        change.write(*records.member_tombstones(group_id, member.member_id))
    for expression in tuple(change.group.regexes):
        change.write(records.regex(group_id, expression, None))
    change.write(*records.group_tombstones(group_id))
    stored = StoredGroup(
        epoch,
        classic_protocols.CONSUMER,
        protocol,
        members[0].member_id,
        now_ms,
        tuple(_downgraded(member, protocol, image) for member in members),
    )
    return (*change.records, record_of(group_id, stored))


def protocols_of(member: ConsumerMember) -> Protocols:
    classic = member.classic
    return () if classic is None else tuple(MemberProtocol(name, data) for name, data in classic.protocols)


def _downgraded(member: ConsumerMember, protocol: str | None, image: ClusterImage) -> StoredMember:
    assert member.classic is not None, "the group has been judged"
    return StoredMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        dict(member.classic.protocols).get(protocol or "", b""),
        write_assignment(member.assigned, image, member.classic.protocols[0][1]),
    )
