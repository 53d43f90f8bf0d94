"""Groups under the classic protocol: members that join, get assignments, live, leave, and are looked at.

Kafka and we are told not to wait for further members of a new group, so a first member is alone in its first
generation. Groups are left and deleted at the end, so that a list of groups is that of one sequence.
"""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created
from tests.differential.sequences.group_requests import ONE, RANGE, TWO, Group, member
from tests.differential.sequences.offsets import commit, group_ready, offset
from tests.differential.sequences.transaction_offsets import add_offsets
from tests.differential.sequences.transaction_offsets import commit as commit_in_transaction
from tests.differential.sequences.transactions import begun, end
from tests.differential.steps import Call, Collect, Later, Script, Step, var

Json = Any

APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ListGroups", "DescribeGroups", "DeleteGroups")


def scripts() -> list[Script]:
    made = [
        Script(api, f"version {v}: one member", _Life(api, v).steps()) for api in APIS for v in VERSIONS[api]
    ]
    for api in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "DescribeGroups"):
        made += [
            Script(api, f"version {v}: two members", _Pair(api, v).steps())
            for v in VERSIONS[api]
            if api != "JoinGroup" or v >= 4
        ]
    made += [Script("JoinGroup", f"version {v}: static", _Static(v).steps()) for v in range(5, 10)]
    made.append(Script("JoinGroup", "who may join", _refusals()))
    made.append(Script("JoinGroup", "members of any kind", _any_kind()))
    made.append(Script("JoinGroup", "offsets in a transaction", _transaction()))
    made.append(Script("LeaveGroup", "several at once", _several()))
    made.append(Script("DeleteGroups", "groups in every state", _deletions()))
    made.append(Script("ListGroups", "by state and type", _lists()))
    return made


class _Life:
    """One member: joins, is assigned, joins again, leaves; with everything that is wrong on the way."""

    def __init__(self, api: str, version: int) -> None:
        self.group = Group(f"life-{api.lower()}-{version}", {api: version})

    def steps(self) -> list[Step]:
        return [*created(self.group.name), *self._joining(), *self._stable(), *self._leaving()]

    def _joining(self) -> list[Step]:
        group = self.group
        return [
            *group_ready(group.name),
            group.described(),
            group.join("nobody"),
            group.beat("nobody", 1),
            group.sync("nobody", 1),
            group.leave(member("nobody")),
            group.deleted(),
            *group.joined(),
            group.described(include_authorized_operations=True),
            group.beat(ONE, 1),
            group.beat(ONE, 0),
            group.beat("nobody", 1),
            group.commit(ONE, 1),
            group.join(ONE),
            group.sync(ONE, 2),
            group.sync("nobody", 1),
            group.sync(ONE, 1, protocol_name="other"),
            group.sync(ONE, 1, protocol_type="other"),
            group.sync(ONE, 1, [(ONE, b"all"), ("nobody", b"none")]),
        ]

    def _stable(self) -> list[Step]:
        group = self.group
        return [
            group.described(include_authorized_operations=True),
            group.call("ListGroups", {"states_filter": ["Stable"], "types_filter": ["classic"]}),
            group.beat(ONE, 1),
            group.commit(ONE, 1),
            group.commit(ONE, 0),
            group.commit("nobody", 1),
            group.commit("", -1),
            group.commit(ONE, -1),
            group.sync(ONE, 1),
            group.sync(ONE, 1, protocol_name="other"),
            group.deleted(),
            group.join(ONE, [("other", b"")]),
            group.join(ONE, kind="connect"),
            group.join(ONE),
            group.beat(ONE, 1),
            group.sync(ONE, 2, [(ONE, b"more")]),
            group.join(ONE, [("roundrobin", b"tre"), ("range", b"due")]),
            group.sync(ONE, 3, protocol_name="roundrobin"),
        ]

    def _leaving(self) -> list[Step]:
        group = self.group
        return [
            group.leave(member("nobody")),
            group.leave(member(ONE)),
            group.leave(member(ONE)),
            group.described(),
            group.beat(ONE, 3),
            group.sync(ONE, 3),
            group.join(ONE),
            group.commit(ONE, 3),
            group.commit(ONE, -1),
            group.commit("", -1),
            group.call("ListGroups", {"states_filter": ["CompletingRebalance"], "types_filter": []}),
            group.deleted(),
            group.deleted("nobody"),
            group.described(),
        ]


class _Pair:
    """Two members: the rebalance that the second brings about, and the one when the first leaves."""

    def __init__(self, api: str, version: int) -> None:
        self.group = Group(f"pair-{api.lower()}-{version}", {api: version})

    def steps(self) -> list[Step]:
        group = self.group
        second = [("range", b"two"), ("sticky", b"")]
        return [
            *group_ready(group.name),
            *group.joined(),
            group.sync(ONE, 1, [(ONE, b"all")]),
            group.join("", second, on="b"),
            group.beat(ONE, 1),
            Later("second", group.join(TWO, second, on="b")),
            group.beat(ONE, 1, until={"error_code": "REBALANCE_IN_PROGRESS"}),
            group.described(),
            group.sync(ONE, 1),
            group.deleted(),
            group.join(ONE),
            Collect("second"),
            Later("follower", group.sync(TWO, 2, on="b")),
            group.beat(TWO, 2),
            group.sync(ONE, 2, [(ONE, b"left"), (TWO, b"right")]),
            Collect("follower"),
            group.described(),
            group.join(TWO, second, on="b"),
            group.sync(TWO, 2, on="b"),
            group.leave(member(ONE)),
            group.beat(TWO, 2),
            group.join(TWO, second, on="b"),
            group.beat(ONE, 3),
            Later("again", group.sync(TWO, 3, [(TWO, b"everything")], on="b")),
            Collect("again"),
            group.leave(member(TWO)),
            group.described(),
            group.deleted(),
        ]


class _Static:
    """A static member that comes back under a new id, with the old one still about (KIP-345)."""

    def __init__(self, version: int) -> None:
        self.group = Group(f"static-{version}", {"JoinGroup": version, "DescribeGroups": 6})

    def steps(self) -> list[Step]:
        return [*created(self.group.name), *self._alone(), *self._changed(), *self._two()]

    def _alone(self) -> list[Step]:
        group = self.group
        return [
            *group_ready(group.name),
            group.join("", instance="i"),
            group.join(ONE, instance="other"),
            group.join("nobody", instance="i"),
            group.sync(ONE, 1, [(ONE, b"all")], instance="i"),
            group.join("", [("range", b"changed"), ("roundrobin", b"uno")], instance="i"),
            group.described(),
            group.beat(ONE, 1, instance="i"),
            group.beat(TWO, 1, instance="i"),
            group.beat(TWO, 1, instance="other"),
            group.beat(TWO, 1),
            group.commit(ONE, 1, instance="i"),
            group.commit(TWO, 1, instance="i"),
            group.sync(ONE, 1, instance="i"),
            group.sync(TWO, 1, instance="i"),
            group.join(ONE, instance="i"),
            group.leave(member(ONE, "i")),
        ]

    def _changed(self) -> list[Step]:
        group = self.group
        return [
            group.join("", [("roundrobin", b"uno")], instance="i"),
            group.described(),
            group.sync(
                var("member:1#3"), 2, [(var("member:1#3"), b"a")], instance="i", protocol_name="roundrobin"
            ),
            group.join("", [("roundrobin", b"uno")], instance="i"),
            group.join(var("member:1#4"), [("roundrobin", b"uno")], instance="i"),
            group.join("", [("roundrobin", b"uno")], instance="i"),
            group.described(),
        ]

    def _two(self) -> list[Step]:
        group = self.group
        last = var("member:1#5")
        return [
            group.leave(member("", "other"), member("", None), member("", "i")),
            group.described(),
            group.beat(last, 2, instance="i"),
            group.deleted(),
        ]


def _refusals() -> list[Step]:
    group = Group("refused")
    return [
        *group_ready(group.name),
        *(
            call
            for version in VERSIONS["JoinGroup"]
            for group in [Group("refused", {"JoinGroup": version})]
            for call in (
                group.join(session_timeout_ms=5999),
                group.join(session_timeout_ms=1800001),
                group.join(group_id=""),
                group.join(kind=""),
                group.join("", []),
                group.join("nobody"),
            )
        ),
        group.described(),
        group.deleted(),
    ]


def _any_kind() -> list[Step]:
    """The protocols and their data are nobody's business but the members'; also a version without ids."""
    group = Group("connectors", {"JoinGroup": 3})
    plain = [("sessioned", b""), ("compatible", b"\x00")]
    return [
        *group_ready(group.name),
        group.join("", plain, kind="connect"),
        group.sync(ONE, 1, [(ONE, b"x")], protocol_type="connect", protocol_name="sessioned"),
        group.join("", RANGE),
        group.join("", RANGE, kind="connect"),
        group.described(),
        Later(
            "second", group.join("", [("compatible", b"\x01"), ("sessioned", b"")], kind="connect", on="b")
        ),
        group.beat(ONE, 1, until={"error_code": "REBALANCE_IN_PROGRESS"}),
        group.join(ONE, [("compatible", b"\x02")], kind="connect"),
        Collect("second"),
        group.leave(member(ONE)),
        group.beat(TWO, 2),
        group.leave(member(TWO)),
        group.described(),
        group.deleted(),
    ]


def _transaction() -> list[Step]:
    """Who may commit offsets in a transaction; the old versions cannot say who they are."""
    group = Group("members-in-transaction")
    name = group.name

    def commits(member_id: Json, generation: int, instance: str | None = None) -> list[Step]:
        claim = {"generation_id": generation, "member_id": member_id, "group_instance_id": instance}
        return [commit_in_transaction(name, name, name, (0, 1), version=v, **claim) for v in (3, 4, 5)]

    return [
        *created(name),
        *group_ready(name),
        *begun(name),
        add_offsets(name, name),
        *commits("nobody", 1),
        *group.joined(),
        *commits(ONE, 1),
        group.sync(ONE, 1),
        *(commit_in_transaction(name, name, name, (0, 1), version=v) for v in range(3)),
        *commits("", -1),
        *commits(ONE, 1),
        *commits(ONE, 0),
        *commits(ONE, -1),
        *commits("nobody", 1),
        *commits(ONE, 1, "i"),
        end(name, "abort"),
        group.leave(member(ONE)),
        group.deleted(),
    ]


def _several() -> list[Step]:
    group = Group("several", {"LeaveGroup": 5})
    return [
        *group_ready(group.name),
        group.leave(),
        *group.joined(),
        group.join("", on="b"),
        group.leave(
            member("nobody"),
            member(TWO),
            member(TWO),
            member("nobody", "nothing"),
            member(ONE, "nothing"),
            member("", "nothing"),
            member(""),
        ),
        group.described(),
        group.leave(),
        group.leave(member(ONE), member(ONE)),
        group.described(),
        group.leave(),
        group.call("LeaveGroup", {"group_id": "", "member_id": "", "members": [member(ONE)]}),
        group.deleted(),
    ]


def _deletions() -> list[Step]:
    group, simple, new = Group("deleted"), Group("deleted-simple"), Group("deleted-new")
    return [
        *created(group.name),
        *group_ready(group.name),
        *group_ready(simple.name),
        *group_ready(new.name),
        commit(8, simple.name, [(group.name, [offset(0, 5)])]),
        simple.described(),
        simple.call("DescribeGroups", {"groups": [simple.name, "nobody"]}),
        Call(
            "DescribeGroups",
            6,
            {"groups": [simple.name, "nobody"], "include_authorized_operations": True},
        ),
        new.join(),
        new.described(),
        *group.joined(),
        group.call(
            "DeleteGroups", {"groups_names": [simple.name, group.name, new.name, "nobody", simple.name]}
        ),
        simple.described(),
        new.join(ONE),
        Call("OffsetFetch", 7, {"group_id": simple.name, "topics": None}),
        group.sync(TWO, 1, [(TWO, b"")]),
        group.deleted(),
        group.leave(member(TWO)),
        group.deleted(),
    ]


def _lists() -> list[Step]:
    group = Group("listed-completing")
    filters = [
        (["CompletingRebalance"], []),
        (["completingrebalance"], ["Classic"]),
        (["CompletingRebalance"], ["consumer"]),
        (["CompletingRebalance", "Nonsense"], ["classic", "consumer"]),
        (["Nonsense"], []),
        (["CompletingRebalance"], ["nonsense"]),
        (["CompletingRebalance"], ["unknown"]),
    ]
    return [
        *group_ready(group.name),
        *group.joined(),
        *(
            Call("ListGroups", version, {"states_filter": states, "types_filter": types})
            for version in VERSIONS["ListGroups"]
            for states, types in (filters if version > 4 else filters[:1])
        ),
        group.leave(member(ONE)),
        group.deleted(),
    ]
