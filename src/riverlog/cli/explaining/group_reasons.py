"""The reasons that lie in a consumer group: it is past the record, or nobody of it reads the partition."""

from typing import TYPE_CHECKING

from riverlog.cli.asking.broker_time import BrokerTime
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.consumer_groups import committed_offsets, find_group, kind_of, owners_of
from riverlog.cli.asking.memberships import committed_at_ms, subscriptions
from riverlog.cli.explaining.reasons import Reason, time_text
from riverlog.cli.printing.durations import human_duration

if TYPE_CHECKING:
    from riverlog.cli.asking.kafka_admin import ConsumerGroupDescription, MemberDescription


def reasons_in_group(
    brokers: Brokers, connection: Connection, group: str, place: Place, offset: int
) -> list[Reason]:
    described = find_group(connection, group)
    if described is None:
        return [
            Reason(
                "no-group",
                f"there is no group {group}; a consumer of a new group begins where auto.offset.reset says, "
                "which is the end by default",
                "`riverlog group list` shows what is there",
            )
        ]
    topic, partition = place
    offsets = committed_offsets(connection, group)
    committed = offsets.get(place)
    found: list[Reason] = []
    if committed is not None and committed.offset > offset:
        found.append(
            Reason(
                "group-committed-beyond",
                f"group {group} has committed offset {committed.offset}, so that it is past {offset}",
                f"`riverlog group seek {group} --topic {topic} -p {partition} --to {offset}`",
            )
        )
    owner = owners_of(described).get(place)
    if owner is None and not described.members:
        return [*found, *_memberless(group, topic, {each for each, _ in offsets})]
    if owner is None:
        return [*found, _unowned(brokers, connection, described, place)]
    if committed is None or committed.offset <= offset:
        found.append(_silent(brokers, connection, group, place, owner))
    return [*found, Reason("owned-by", f"{_name(owner)} reads {topic}-{partition}; other members do not")]


def _memberless(group: str, topic: str, read: set[str]) -> list[Reason]:
    """What its consumers subscribe to is known only while they are there; what they have committed stays."""
    found = [Reason("no-members", f"group {group} has no members now", "start its consumers")]
    if read and topic not in read:
        what = f"group {group} has never committed in {topic}, only in {', '.join(sorted(read))}"
        remedy = f"look whether its consumers subscribe to {topic}"
        found.append(Reason("read-other-topics", f"{what}; what it subscribed to is unknown now", remedy))
    return found


def _unowned(
    brokers: Brokers, connection: Connection, described: "ConsumerGroupDescription", place: Place
) -> Reason:
    group, topic = described.group_id, place[0]
    wanted = subscriptions(brokers, connection, group, is_classic=kind_of(described) == "classic")
    if wanted is not None and not wanted.includes(topic):
        names = ", ".join(sorted(wanted.topics))
        return Reason(
            "subscribed-elsewhere",
            f"no member of group {group} has subscribed to {topic}, only to {names or 'nothing'}",
            "have one of its consumers subscribe to it",
        )
    return Reason(
        "no-owner",
        f"no member of group {group} has {topic}-{place[1]} now: it is assigning partitions, or its members "
        "have chosen others by themselves",
        f"`riverlog group describe {group} --watch`",
    )


def _silent(
    brokers: Brokers, connection: Connection, group: str, place: Place, owner: "MemberDescription"
) -> Reason:
    """The time of the last heartbeat is in no answer of a broker."""
    last_ms = committed_at_ms(brokers, connection, group, place)
    if last_ms is None:
        since = "it has committed nothing here, or when is unknown"
    else:
        age = human_duration(max(0, BrokerTime(brokers).now_ms() - last_ms))
        since = f"its group last committed here at {time_text(last_ms)}, {age} ago"
    return Reason(
        "member-silent",
        f"{_name(owner)} has not committed it yet: {since}; when it last polled is unknown",
        "look whether it is busy, or stopped committing",
    )


def _name(member: "MemberDescription") -> str:
    name = member.group_instance_id or member.member_id
    return f"member {name} (client {member.client_id}, {member.host.removeprefix('/')})"
