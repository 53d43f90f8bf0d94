"""A classic group as its record tells it: hard state, read and written. Values only."""

from typing import Final, NamedTuple

from riverlog.coordinator.formats import formats
from riverlog.coordinator.formats.classic_groups import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
)
from riverlog.coordinator.formats.formats import GroupRecord
from riverlog.coordinator.runtime.effects import CoordinatorRecord

VERSION: Final = 3
_NO_TIME: Final = -1


class StoredMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """What it said under the chosen protocol; the rest is not kept."""
    assignment: bytes


class StoredGroup(NamedTuple):
    """A group between rebalances: stable with its members, or empty."""

    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_since_ms: int | None = None
    members: tuple[StoredMember, ...] = ()


def record_of(group_id: str, group: StoredGroup) -> CoordinatorRecord:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp_ms=_NO_TIME if group.state_since_ms is None else group.state_since_ms,
        members=[
            GroupMetadataMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    return formats.record(GroupRecord.GROUP_METADATA, GroupMetadataKey(group=group_id), value, VERSION)


def tombstone_of(group_id: str) -> CoordinatorRecord:
    return formats.record(GroupRecord.GROUP_METADATA, GroupMetadataKey(group=group_id), None)


def stored_from(value: GroupMetadataValue) -> StoredGroup:
    since_ms = value.current_state_timestamp_ms
    return StoredGroup(
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
        None if since_ms < 0 else since_ms,
        tuple(_member_from(member) for member in value.members),
    )


def _member_from(member: GroupMetadataMember) -> StoredMember:
    rebalance_ms = member.rebalance_timeout_ms
    return StoredMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        # The first version had one time-out for both.
        member.session_timeout_ms if rebalance_ms < 0 else rebalance_ms,
        member.session_timeout_ms,
        bytes(member.subscription),
        bytes(member.assignment),
    )
