"""What the members of a group have asked for and when it last committed: confluent-kafka does not tell.

The time of a commit is in no answer at all; it is read from the record of the commit in `__consumer_offsets`,
which is a topic like any other for those who may read it.
"""

import time
from dataclasses import dataclass

from riverlog.cli.asking.batches import records_between
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place, offset_ranges
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.coordinators import CoordinatorKind, coordinator_of
from riverlog.cli.failures import CommandError
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.model.network import Address


@dataclass(frozen=True, slots=True)
class Subscriptions:
    topics: frozenset[str]
    patterns: frozenset[str] = frozenset()

    def includes(self, topic: str) -> bool:
        """With a pattern nobody but the broker can say; then it may."""
        return topic in self.topics or bool(self.patterns)


def subscriptions(
    brokers: Brokers, connection: Connection, group: str, *, is_classic: bool
) -> Subscriptions | None:
    """What all members together have subscribed to; None where it is not told."""
    found = subscriptions_by_member(brokers, connection, group, is_classic=is_classic).values()
    if is_classic and not found:
        return None
    return Subscriptions(
        frozenset(topic for each in found for topic in each.topics),
        frozenset(pattern for each in found for pattern in each.patterns),
    )


def subscriptions_by_member(
    brokers: Brokers, connection: Connection, group: str, *, is_classic: bool
) -> dict[str, Subscriptions]:
    """What each member has subscribed to; members are missing that do not tell."""
    deadline = time.monotonic() + connection.timeout_s
    address = coordinator_of(connection, brokers, group, CoordinatorKind.GROUPS, deadline)
    if is_classic:
        return _of_classic(brokers, address, group)
    return _of_consumer(brokers, address, group)


def _of_classic(brokers: Brokers, address: Address, group: str) -> dict[str, Subscriptions]:
    from riverlog.coordinator.groups.classic.protocols import read_subscription
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_groups import DescribeGroupsRequest

    [described] = brokers.ask(address, ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group])).groups
    read = {each.member_id: read_subscription(bytes(each.member_metadata)) for each in described.members}
    return {name: Subscriptions(frozenset(each.topics)) for name, each in read.items() if each is not None}


def _of_consumer(brokers: Brokers, address: Address, group: str) -> dict[str, Subscriptions]:
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    request = ConsumerGroupDescribeRequest(group_ids=[group])
    [described] = brokers.ask(address, ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups
    return {
        each.member_id: Subscriptions(
            frozenset(each.subscribed_topic_names or ()),
            frozenset([each.subscribed_topic_regex] if each.subscribed_topic_regex else ()),
        )
        for each in described.members
    }


def committed_at_ms(brokers: Brokers, connection: Connection, group: str, place: Place) -> int | None:
    """When the group last committed the partition; None where that cannot be read."""
    from riverlog.coordinator.formats.formats import GroupRecord, decode_key, decode_value, kind_of
    from riverlog.coordinator.formats.offset_commits import OffsetCommitKey, OffsetCommitValue
    from riverlog.coordinator.runtime.hashing import partition_for

    described = connection.metadata().topics.get(OFFSETS_TOPIC)
    if described is None:
        return None
    index = partition_for(group, len(described.partitions))
    held = offset_ranges(connection, OFFSETS_TOPIC, [index])[index]
    deadline = time.monotonic() + connection.timeout_s
    found: int | None = None
    try:
        for record in records_between(
            brokers, connection, (OFFSETS_TOPIC, index), held.start, held.end, deadline
        ):
            if record.key is None or record.value is None or kind_of(record.key) != GroupRecord.OFFSET_COMMIT:
                continue
            key = decode_key(OffsetCommitKey, record.key)
            if (key.group, key.topic, key.partition) == (group, *place):
                found = decode_value(OffsetCommitValue, record.value).commit_timestamp_ms
    except CommandError:
        return None
    return found
