"""Questions about consumer groups, and commits in their name, in plain values.

No printing and no options here: `group` and `group_changes` build on it. Errors of the cluster come out as
`CommandError`.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.cluster import Place, outcome
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.coordinators import POLL_S, CoordinatorKind, coordinator_of
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.client.core.retrying import may_change

if TYPE_CHECKING:
    from riverlog.cli.asking.kafka_admin import ConsumerGroupDescription, MemberDescription

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    group: str
    kind: str
    state: str


def list_groups(connection: Connection) -> list[Listed]:
    connection.metadata()
    listing = outcome(
        connection, connection.admin().list_consumer_groups(request_timeout=connection.timeout_s), "groups"
    )
    if listing.errors:
        raise connection.failure(listing.errors[0].args[0], "groups")
    found = sorted(
        (
            Listed(each.group_id, _word(getattr(each, "type", None)), _word(getattr(each, "state", None)))
            for each in listing.valid
        ),
        key=lambda each: each.group,
    )
    if all(each.state != _UNKNOWN for each in found):
        return found
    told = _states_told(connection)
    return [replace(each, state=told.get(each.group, each.state)) for each in found]


def describe_groups(connection: Connection, groups: Sequence[str]) -> "list[ConsumerGroupDescription]":
    """Raises where one is not there; librdkafka calls such a group dead."""
    connection.metadata()
    found = [_described(connection, group) for group in groups]
    for description in found:
        if state_of(description) == "dead":
            raise CommandError(
                f"there is no group {description.group_id}",
                remedy="see what is there with `riverlog group list`",
                code=ExitCode.NOT_FOUND,
            )
    return found


def _described(connection: Connection, group: str) -> "ConsumerGroupDescription":
    """Waits for a coordinator: a cluster that has just begun to keep groups has none for a moment."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + connection.timeout_s
    while True:
        [future] = (
            connection.admin()
            .describe_consumer_groups([group], request_timeout=connection.timeout_s)
            .values()
        )
        error = future.exception(connection.timeout_s + 5)
        if (
            not isinstance(error, KafkaException)
            or not may_change(error.args[0].code())
            or time.monotonic() > deadline
        ):
            found: ConsumerGroupDescription = outcome(connection, future, f"group {group}")
            return found
        time.sleep(POLL_S)


def find_group(connection: Connection, group: str) -> "ConsumerGroupDescription | None":
    try:
        [description] = describe_groups(connection, [group])
    except CommandError as failure:
        if failure.code is ExitCode.NOT_FOUND:
            return None
        raise
    return description


def state_of(description: "ConsumerGroupDescription") -> str:
    return _word(description.state)


def exact_state(connection: Connection, description: "ConsumerGroupDescription") -> str:
    """Also where librdkafka has no word for it, as while a group of the consumer protocol changes."""
    state = state_of(description)
    return _states_told(connection).get(description.group_id, state) if state == _UNKNOWN else state


def _states_told(connection: Connection) -> dict[str, str]:
    """In the brokers' own words, by group; none where they cannot be asked directly."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.list_groups import ListGroupsRequest

    try:
        with Brokers(connection) as brokers:
            replies = [
                brokers.ask(address, ApiKey.LIST_GROUPS, ListGroupsRequest())
                for address in brokers.addresses().values()
            ]
    except CommandError:
        return {}
    return {
        each.group_id: each.group_state.lower()
        for reply in replies
        for each in reply.groups
        if each.group_state
    }


def kind_of(description: "ConsumerGroupDescription") -> str:
    return _word(description.type)


def owners_of(description: "ConsumerGroupDescription") -> "dict[Place, MemberDescription]":
    """Who reads which partition now."""
    return {
        (each.topic, each.partition): member
        for member in description.members
        for each in member.assignment.topic_partitions
    }


def committed_offsets(connection: Connection, group: str) -> dict[Place, Committed]:
    """Empty also for a group that is not there."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    connection.metadata()
    futures = connection.admin().list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=connection.timeout_s
    )
    answer = outcome(connection, futures[group], f"offsets of group {group}")
    return {
        (each.topic, each.partition): Committed(each.offset, each.metadata or "")
        for each in answer.topic_partitions
        if each.offset >= 0
    }


def commit(connection: Connection, group: str, offsets: Mapping[Place, Committed]) -> None:
    """In the name of a group without members; there need not be one before."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    wanted = [
        TopicPartition(topic, partition, committed.offset, metadata=committed.metadata)
        for (topic, partition), committed in sorted(offsets.items())
    ]
    connection.metadata()
    futures = connection.admin().alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=connection.timeout_s
    )
    answer = outcome(connection, futures[group], f"offsets of group {group} were not set")
    for each in answer.topic_partitions:
        if each.error is not None:
            raise connection.failure(each.error, f"{group}: {each.topic}-{each.partition} was not set")


def delete_offsets(connection: Connection, brokers: Brokers, group: str, places: Collection[Place]) -> None:
    """confluent-kafka has no call for this."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[
                OffsetDeleteRequestPartition(partition_index=index)
                for name, index in sorted(places)
                if name == topic
            ],
        )
        for topic in sorted({topic for topic, _ in places})
    ]
    deadline = time.monotonic() + connection.timeout_s
    address = coordinator_of(connection, brokers, group, CoordinatorKind.GROUPS, deadline)
    answer = brokers.ask(address, ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id=group, topics=topics))
    codes = [answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)]
    for code in codes:
        if code:
            raise refused(code, f"offsets of group {group} were not deleted")


def require_empty(description: "ConsumerGroupDescription | None", doing: str) -> None:
    """Members would commit over what is set, and a group that has some cannot be deleted."""
    if description is not None and description.members:
        count = len(description.members)
        members = "1 member" if count == 1 else f"{count} members"
        raise CommandError(
            f"group {description.group_id} was not {doing}: it has {members}",
            remedy=f"stop its consumers first; `riverlog group describe {description.group_id}` names them",
        )


def _word(value: object) -> str:
    name = getattr(value, "name", None)
    return _UNKNOWN if name is None else str(name).lower().replace("_", " ")
