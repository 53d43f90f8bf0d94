"""The registries that brokers and consumers had in ZooKeeper, as a tree computed from what a cluster answers.

`/brokers`, `/controller` and `/cluster` in the shapes of Apache Kafka 3,
`/consumers/GROUP/{ids,owners,offsets}` in those of 0.8, when consumers registered themselves. Read-only, and
nothing of it is stored: consumers are known by their group's coordinator, offsets by the compacted topic. A
node is asked for when its path is. What the cluster does not tell, such as when a member came, is -1.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.consumer_groups import committed_offsets, find_group, kind_of, list_groups, owners_of
from riverlog.cli.asking.memberships import subscriptions_by_member
from riverlog.cli.asking.overview import Overview, overview

Content: TypeAlias = "str | Mapping[str, Node]"
"""Data, or children by name."""
Node: TypeAlias = "Content | Callable[[], Content]"
"""The content, or a way to find it out."""


class Registry:
    """The tree of one cluster at the time of its first question; groups are asked for one by one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._overview: Overview | None = None

    def find(self, path: str) -> "Content | None":
        """Data or children; None where there is no such node."""
        content = self._root()
        for name in filter(None, path.split("/")):
            if isinstance(content, str) or name not in content:
                return None
            content = content_of(content[name])
        return content

    def _root(self) -> Content:
        return {
            "brokers": {"ids": self._ids, "topics": self._topics},
            "cluster": {"id": self._cluster_id},
            "consumers": self._consumers,
            "controller": self._controller,
        }

    def _seen(self) -> Overview:
        if self._overview is None:
            self._overview = overview(self._connection)
        return self._overview

    def _ids(self) -> Content:
        brokers = [each for each in self._seen().brokers.values() if each.address is not None]
        return {str(each.node_id): _broker(each.address or "") for each in brokers}

    def _topics(self) -> Content:
        topics: dict[str, dict[str, Node]] = {}
        for each in self._seen().partitions:
            state = {"version": 1, "leader": _or_minus_1(each.leader), "isr": list(each.in_sync)}
            topics.setdefault(each.topic, {})[str(each.partition)] = {"state": _text(state)}
        return {name: {"partitions": partitions} for name, partitions in sorted(topics.items())}

    def _controller(self) -> Content:
        return _text({"version": 1, "brokerid": _or_minus_1(self._seen().controller), "timestamp": "-1"})

    def _cluster_id(self) -> Content:
        return _text({"version": "1", "id": self._seen().cluster_id})

    def _consumers(self) -> Content:
        return {each.group: partial(self._group, each.group) for each in list_groups(self._connection)}

    def _group(self, group: str) -> Content:
        return {
            "ids": lambda: self._members(group),
            "offsets": lambda: self._offsets(group),
            "owners": lambda: self._owners(group),
        }

    def _members(self, group: str) -> Content:
        described = find_group(self._connection, group)
        if described is None:
            return {}
        with Brokers(self._connection) as brokers:
            found = subscriptions_by_member(
                brokers, self._connection, group, is_classic=kind_of(described) == "classic"
            )
        return {
            member: _text(
                {
                    "version": 1,
                    "subscription": dict.fromkeys(sorted(asked.patterns or asked.topics), 1),
                    "pattern": "white_list" if asked.patterns else "static",
                    "timestamp": "-1",
                }
            )
            for member, asked in sorted(found.items())
        }

    def _owners(self, group: str) -> Content:
        described = find_group(self._connection, group)
        owners = {} if described is None else owners_of(described)
        return _by_topic({place: f"{member.member_id}-0" for place, member in owners.items()})

    def _offsets(self, group: str) -> Content:
        committed = committed_offsets(self._connection, group)
        return _by_topic({place: str(each.offset) for place, each in committed.items()})


def content_of(node: Node) -> Content:
    return node() if callable(node) else node


def _broker(address: str) -> str:
    host, _, port = address.rpartition(":")
    return _text({"version": 4, "host": host, "port": int(port), "jmx_port": -1, "timestamp": "-1"})


def _by_topic(leaves: Mapping[tuple[str, int], str]) -> Content:
    topics: dict[str, dict[str, Node]] = {}
    for (topic, partition), data in sorted(leaves.items()):
        topics.setdefault(topic, {})[str(partition)] = data
    return topics


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _or_minus_1(number: int | None) -> int:
    return -1 if number is None else number
