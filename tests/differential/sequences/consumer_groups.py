"""Groups of the consumer protocol (KIP-848): joining, sharing, fencing, leaving, static members, expressions.

Each group is told by its config to compute a new target whenever there is reason to, so that replies do not
depend on how much time has passed since the last one. Members choose their ids themselves, but for version 0.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.differential.sequences.common import GROUP, created
from tests.differential.sequences.offsets import commit, fetch_offsets, group_ready, offset
from tests.differential.steps import Call, Script, Step, hexed, var

Json = Any

HEARTBEAT, DESCRIBE = "ConsumerGroupHeartbeat", "ConsumerGroupDescribe"


def scripts() -> list[Script]:
    made = []
    for version in (0, 1):
        made += [
            Script(HEARTBEAT, f"version {version}: two members", _two_members(version)),
            Script(HEARTBEAT, f"version {version}: static members", _static(version)),
            Script(HEARTBEAT, f"version {version}: what a request must say", _wrong(version)),
            Script(DESCRIBE, f"version {version}: groups of all kinds", _described(version)),
        ]
    return [
        *made,
        Script(HEARTBEAT, "version 0: an id from the broker", _given_id()),
        Script(HEARTBEAT, "subscriptions that change", _changing()),
        Script(HEARTBEAT, "by expression", _by_expression()),
        Script(HEARTBEAT, "assignors", _assignors()),
        Script(HEARTBEAT, "commits in an epoch", _commits()),
        Script(HEARTBEAT, "a classic group is not a consumer group", _classic()),
        Script(HEARTBEAT, "a classic group changes over and back", _migration()),
    ]


class Group:
    def __init__(self, name: str, version: int = 1) -> None:
        self.name, self.version = name, version

    def ready(self) -> list[Step]:
        wanted = [{"name": "consumer.assignment.interval.ms", "config_operation": 0, "value": "0"}]
        resource = {"resource_type": GROUP, "resource_name": self.name, "configs": wanted}
        return [
            *group_ready(self.name),
            Call("IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False}),
            Call(
                "DescribeConfigs",
                4,
                {
                    "resources": [
                        {
                            "resource_type": GROUP,
                            "resource_name": self.name,
                            "configuration_keys": ["consumer.assignment.interval.ms"],
                        }
                    ]
                },
                until={"results.0.configs.0.value": "0"},
            ),
        ]

    def beat(self, member: Json, epoch: int, *, until: Json = None, **more: Json) -> Call:
        fields = {
            "group_id": self.name,
            "member_id": member,
            "member_epoch": epoch,
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
        }
        if self.version < 1:
            del fields["subscribed_topic_regex"]
        return Call(HEARTBEAT, self.version, fields | more, until=until)

    def join(self, member: Json, *topics: str, **more: Json) -> Call:
        fields = {
            "rebalance_timeout_ms": 60000,
            "subscribed_topic_names": list(topics),
            "topic_partitions": [],
        }
        return self.beat(member, 0, **(fields | more))

    def own(self, member: Json, epoch: int, topic: str, *partitions: int) -> Call:
        owned = [{"topic_id": var(f"topic_id:{topic}"), "partitions": list(partitions)}]
        return self.beat(member, epoch, topic_partitions=owned)

    def leave(self, member: Json, **more: Json) -> Call:
        return self.beat(member, -1, **more)

    def described(self, version: int = 1) -> Call:
        return describe(version, self.name)


def describe(version: int, *groups: str, operations: bool = False) -> Call:
    return Call(DESCRIBE, version, {"group_ids": list(groups), "include_authorized_operations": operations})


def _two_members(version: int) -> list[Step]:
    topic, group = f"cg-two-{version}", Group(f"cg-two-{version}", version)
    return [
        *created(topic, 4),
        *group.ready(),
        group.join("ann", topic),
        group.beat("ann", 2),
        group.described(),
        group.join("bob", topic),
        group.beat("bob", 3),
        group.beat("ann", 2),
        group.described(),
        group.own("ann", 2, topic, 0, 1, 2, 3),
        group.own("ann", 2, topic, 0, 1),
        group.own("ann", 2, topic, 0, 1),
        group.own("ann", 2, topic, 0, 3),
        group.beat("ann", 2),
        group.beat("ann", 4),
        group.beat("bob", 3),
        group.beat("bob", 3),
        group.described(),
        group.beat("eve", 3),
        group.leave("eve"),
        group.leave("ann"),
        group.described(),
        group.beat("bob", 3),
        group.join("bob", topic),
        group.leave("bob"),
        group.leave("bob"),
        group.described(),
    ]


def _static(version: int) -> list[Step]:
    topic, group = f"cg-static-{version}", Group(f"cg-static-{version}", version)
    one = {"instance_id": "one"}
    return [
        *created(topic, 2),
        *group.ready(),
        group.join("ann", topic, **one),
        group.join("bob", topic, **one),
        group.join("ann", topic, **one),
        group.beat("bob", 2, **one),
        group.beat("ann", 2),
        group.beat("ann", 2, instance_id="two"),
        group.beat("bob", -2, **one),
        group.beat("ann", -2, instance_id="two"),
        group.beat("ann", -2, **one),
        group.described(),
        group.beat("ann", 2, **one),
        group.join("bob", topic, **one),
        group.described(),
        group.beat("ann", 2, **one),
        group.beat("bob", -2, **one),
        group.join("eve", topic, "cg-no-topic", **one),
        group.leave("eve", instance_id="two"),
        group.leave("eve", **one),
        group.described(),
    ]


def _wrong(version: int) -> list[Step]:
    topic, group = f"cg-wrong-{version}", Group(f"cg-wrong-{version}", version)
    nameless = Group("", version)
    owned = [{"topic_id": var(f"topic_id:{topic}"), "partitions": [0]}]
    return [
        *created(topic),
        *group.ready(),
        nameless.join("ann", topic),
        group.beat("", 1),
        group.leave(""),
        group.join("ann", topic, instance_id=""),
        group.join("ann", topic, rack_id=""),
        group.join("ann", topic, rebalance_timeout_ms=-1),
        group.join("ann", topic, topic_partitions=None),
        group.join("ann", topic, topic_partitions=owned),
        group.join("ann", subscribed_topic_names=None),
        group.join("ann", topic, server_assignor="best"),
        group.join("ann", topic, server_assignor=""),
        group.beat("ann", 5, server_assignor="best"),
        group.leave("ann", server_assignor="best"),
        group.beat("ann", -2),
        group.beat("ann", -3),
        group.beat("ann", 1),
        group.leave("ann"),
        group.join("ann"),
        group.join("bob", "cg-no-topic", "not a name!"),
        group.leave("ann"),
        group.leave("bob"),
    ]


def _given_id() -> list[Step]:
    topic, group = "cg-given", Group("cg-given", 0)
    member = var("member:1")
    return [
        *created(topic),
        *group.ready(),
        group.join("", topic),
        group.beat(member, 2),
        group.described(0),
        group.leave(member),
    ]


def _changing() -> list[Step]:
    one, two, group = "cg-change-1", "cg-change-2", Group("cg-change")
    return [
        *created(one, 2),
        *created(two, 1),
        *group.ready(),
        group.join("ann", one),
        group.beat("ann", 2, subscribed_topic_names=[two]),
        group.described(),
        group.beat("ann", 2, topic_partitions=[]),
        group.beat("ann", 3, rack_id="r1"),
        group.beat("ann", 3, server_assignor="range"),
        group.described(),
        group.beat("ann", 3, subscribed_topic_names=[]),
        group.beat("ann", 3, topic_partitions=[]),
        group.beat("ann", 4, rebalance_timeout_ms=50000, subscribed_topic_names=[two], topic_partitions=[]),
        group.beat("ann", 5, rebalance_timeout_ms=50000, subscribed_topic_names=[two], topic_partitions=[]),
        group.described(),
        group.leave("ann"),
    ]


def _by_expression() -> list[Step]:
    topic, group = "cg-regex-1", Group("cg-regex")
    return [
        *created(topic, 2),
        *group.ready(),
        group.join("bob", subscribed_topic_names=None, subscribed_topic_regex="("),
        group.join("bob", subscribed_topic_names=None, subscribed_topic_regex="cg-regex-(?=1)"),
        group.join("ann", subscribed_topic_names=None, subscribed_topic_regex="cg-regex-[0-9]+"),
        Call(
            DESCRIBE,
            1,
            {"group_ids": [group.name], "include_authorized_operations": False},
            until={"groups.0.group_epoch": 2},
        ),
        group.beat("ann", 1),
        group.described(),
        group.beat("ann", 2, subscribed_topic_regex="["),
        group.beat("ann", 2, subscribed_topic_regex=""),
        group.beat("ann", 2, topic_partitions=[]),
        group.described(),
        group.leave("ann"),
    ]


def _assignors() -> list[Step]:
    topic, group = "cg-assignors", Group("cg-assignors")
    return [
        *created(topic, 5),
        *group.ready(),
        group.join("bob", topic, server_assignor="range"),
        group.join("ann", topic, server_assignor="range"),
        group.join("eve", topic, server_assignor="uniform"),
        group.beat("bob", 2),
        group.beat("bob", 2, topic_partitions=[]),
        group.beat("ann", 4),
        group.beat("eve", 4),
        group.described(),
        *(group.leave(member) for member in ("ann", "bob", "eve")),
        group.described(),
    ]


def _commits() -> list[Step]:
    topic, group = "cg-commits", Group("cg-commits")
    wanted = [(topic, [offset(0, 7)])]

    def by(member: str, epoch: int, version: int = 9) -> Call:
        return commit(version, group.name, wanted, member_id=member, generation_id_or_member_epoch=epoch)

    return [
        *created(topic),
        *group.ready(),
        group.join("ann", topic),
        by("ann", 2),
        by("ann", 2, 10),
        by("ann", 1),
        by("ann", 3),
        by("ann", -1),
        by("eve", 2),
        by("", -1),
        by("ann", 2, 8),
        fetch_offsets(9, group.name, [(topic, [0])], member_id="ann", member_epoch=2),
        fetch_offsets(9, group.name, [(topic, [0])], member_id="ann", member_epoch=1),
        fetch_offsets(9, group.name, [(topic, [0])], member_id="eve", member_epoch=2),
        fetch_offsets(9, group.name, [(topic, [0])], member_id=None, member_epoch=-1),
        Call(
            "OffsetDelete",
            0,
            {"group_id": group.name, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]},
        ),
        Call("DeleteGroups", 2, {"groups_names": [group.name]}),
        group.leave("ann"),
        by("ann", 2),
        by("", -1),
        Call("DeleteGroups", 2, {"groups_names": [group.name]}),
        group.described(),
    ]


def _described(version: int) -> list[Step]:
    topic, group = f"cg-described-{version}", Group(f"cg-described-{version}")
    simple = f"cg-described-simple-{version}"
    return [
        *created(topic, 2),
        *group.ready(),
        *group_ready(simple),
        commit(9, simple, [(topic, [offset(0, 7)])]),
        group.join("ann", topic, rack_id="r1", instance_id="one"),
        describe(version, group.name),
        describe(version, group.name, "", "cg-nobody", simple, operations=True),
        describe(version),
        Call("DescribeGroups", 5, {"groups": [group.name]}),
        Call("DescribeGroups", 6, {"groups": [group.name]}),
        Call("ListGroups", 5, {"types_filter": ["consumer"]}),
        group.leave("ann"),
        Call("DeleteGroups", 2, {"groups_names": [group.name, simple]}),
    ]


def _classic() -> list[Step]:
    """A classic group whose members are no consumers cannot change over."""
    topic, group = "cg-classic", Group("cg-classic")
    join = {
        "group_id": group.name,
        "session_timeout_ms": 30000,
        "rebalance_timeout_ms": 60000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "connect",
        "protocols": [{"name": "x", "metadata": {"$hex": "00"}}],
    }
    return [
        *created(topic),
        *group.ready(),
        Call("JoinGroup", 3, join),
        group.join("ann", topic),
        group.beat("ann", 2),
        group.described(),
        Call("LeaveGroup", 2, {"group_id": group.name, "member_id": var("member:1")}),
        group.join("ann", topic),
        group.leave("ann"),
    ]


def _migration() -> list[Step]:
    """With a consumer of the classic protocol that gives up everything before it joins."""
    topic, group = "cg-migrate", Group("cg-migrate")
    member = var("member:1")
    name = struct.pack(">h", len(topic)) + topic.encode()
    subscription = struct.pack(">hi", 1, 1) + name + struct.pack(">ii", -1, 0)
    assignment = struct.pack(">hi", 0, 1) + name + struct.pack(">iiiiii", 4, 0, 1, 2, 3, -1)

    def join(who: Json, kind: str = "consumer", protocol: str = "range") -> Call:
        fields = {
            "group_id": group.name,
            "session_timeout_ms": 30000,
            "rebalance_timeout_ms": 60000,
            "member_id": who,
            "protocol_type": kind,
            "protocols": [{"name": protocol, "metadata": hexed(subscription)}],
        }
        return Call("JoinGroup", 3, fields)

    def sync(generation: int, **more: Json) -> Call:
        fields = {"group_id": group.name, "generation_id": generation, "member_id": member, "assignments": []}
        return Call("SyncGroup", 2, fields | more)

    def beat(generation: int, who: Json = member) -> Call:
        fields = {"group_id": group.name, "generation_id": generation, "member_id": who}
        return Call("Heartbeat", 2, fields)

    def commits(generation: int) -> Call:
        wanted = [(topic, [offset(0, 7)])]
        return commit(7, group.name, wanted, member_id=member, generation_id_or_member_epoch=generation)

    return [
        *created(topic, 4),
        *group.ready(),
        join(""),
        sync(1, assignments=[{"member_id": member, "assignment": hexed(assignment)}]),
        group.join("ann", topic),
        beat(1),
        beat(2),
        beat(1, "ann"),
        beat(1, "eve"),
        commits(1),
        commits(2),
        sync(1),
        group.beat("ann", 2),
        join(member, protocol="roundrobin"),
        join(member),
        beat(2),
        sync(1),
        sync(2),
        beat(2),
        commits(2),
        join("", "connect"),
        group.beat("ann", 2),
        group.beat("ann", 2),
        Call("DescribeGroups", 5, {"groups": [group.name]}),
        group.leave("ann"),
        group.described(),
        beat(2),
        beat(3),
        join(member),
        sync(3, assignments=[{"member_id": member, "assignment": hexed(assignment)}]),
        beat(3),
        Call("LeaveGroup", 2, {"group_id": group.name, "member_id": member}),
        group.join("ann", topic),
        group.leave("ann"),
    ]
