"""Requests about one classic group, each in the version that is to be tried or in a usual one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.sequences.offsets import commit, offset
from tests.differential.steps import Call, Step, hexed, var

Json = Any

_USUAL = {
    "JoinGroup": 7,
    "SyncGroup": 4,
    "Heartbeat": 4,
    "LeaveGroup": 4,
    "ListGroups": 5,
    "DescribeGroups": 5,
    "DeleteGroups": 2,
}
ONE, TWO = var("member:1"), var("member:1#2")
RANGE = [("range", b"one"), ("roundrobin", b"uno")]


class Group:
    """Requests about one group, each in the version that is to be tried or a usual one."""

    def __init__(self, name: str, versions: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.versions = _USUAL | dict(versions or {})

    def call(self, api: str, fields: Json, on: str = "main", until: Json = None) -> Call:
        return Call(api, self.versions[api], fields, on=on, until=until)

    def join(
        self,
        member: Json = "",
        protocols: list[tuple[str, bytes]] = RANGE,
        *,
        instance: str | None = None,
        kind: str = "consumer",
        on: str = "main",
        **more: Json,
    ) -> Call:
        fields = {
            "group_id": self.name,
            "session_timeout_ms": 30000,
            "rebalance_timeout_ms": 60000,
            "member_id": member,
            "group_instance_id": instance,
            "protocol_type": kind,
            "protocols": [{"name": name, "metadata": hexed(data)} for name, data in protocols],
        }
        return self.call("JoinGroup", fields | more, on)

    def joined(self, protocols: list[tuple[str, bytes]] = RANGE) -> list[Step]:
        """The first member, alone in its generation."""
        if self.versions["JoinGroup"] < 4:
            return [self.join("", protocols)]
        return [self.join("", protocols), self.join(ONE, protocols)]

    def sync(
        self,
        member: Json,
        generation: int,
        assigned: list[tuple[Json, bytes]] | None = None,
        *,
        instance: str | None = None,
        on: str = "main",
        **more: Json,
    ) -> Call:
        fields = {
            "group_id": self.name,
            "generation_id": generation,
            "member_id": member,
            "group_instance_id": instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": each, "assignment": hexed(data)} for each, data in assigned or []],
        }
        return self.call("SyncGroup", fields | more, on)

    def beat(self, member: Json, generation: int, *, instance: str | None = None, until: Json = None) -> Call:
        fields = {
            "group_id": self.name,
            "generation_id": generation,
            "member_id": member,
            "group_instance_id": instance,
        }
        return self.call("Heartbeat", fields, until=until)

    def leave(self, *members: Json) -> Call:
        first = members[0]["member_id"] if members else ""
        return self.call("LeaveGroup", {"group_id": self.name, "member_id": first, "members": list(members)})

    def described(self, until: str | None = None, **more: Json) -> Call:
        state = None if until is None else {"groups.0.group_state": until}
        return self.call("DescribeGroups", {"groups": [self.name]} | more, until=state)

    def deleted(self, *others: str) -> Call:
        return self.call("DeleteGroups", {"groups_names": [self.name, *others]})

    def commit(self, member: Json, generation: int, at: int = 1, instance: str | None = None) -> Call:
        return commit(
            8,
            self.name,
            [("nowhere", [offset(0, at)]), (self.name, [offset(0, at)])],
            member_id=member,
            generation_id_or_member_epoch=generation,
            group_instance_id=instance,
        )


def member(member_id: Json, instance: str | None = None) -> Json:
    return {"member_id": member_id, "group_instance_id": instance}
