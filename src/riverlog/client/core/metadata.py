"""Who leads and who coordinates, as far as the cluster has told: lookups, and what to ask where they fail.

A lookup has one of four results: the answer; `Ask`, a request that any broker can answer, whose reply goes to
`learn` before the lookup is made again; `LookupLater`, there is none at the moment; `LookupRefused`, there
will be none. Before a try that follows `LookupLater`, or a reply that says that a broker was the wrong one,
`forget`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

from riverlog.client.core.retrying import may_change
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

_FIND_ONE_VERSION: Final = 3
"""Of FindCoordinator: from version 4 on several can be asked for at once, which is not needed here."""


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class KnownPartition:
    leader: int | None
    leader_epoch: LeaderEpoch
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KnownTopic:
    name: str
    topic_id: UUID | None
    partitions: Mapping[int, KnownPartition]
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class AskTopics:
    """Ask any broker for topics, or for all with None. The reply tells the brokers too."""

    names: tuple[str, ...] | None
    key: ApiKey = ApiKey.METADATA
    version_max: int | None = None

    def request(self) -> MetadataRequest:
        wanted = None if self.names is None else [MetadataRequestTopic(name=name) for name in self.names]
        return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


@dataclass(frozen=True, slots=True)
class AskCoordinator:
    """Ask any broker who coordinates a group or a transactional id."""

    kind: CoordinatorKind
    name: str
    key: ApiKey = ApiKey.FIND_COORDINATOR
    version_max: int | None = _FIND_ONE_VERSION

    def request(self) -> FindCoordinatorRequest:
        return FindCoordinatorRequest(key=self.name, key_type=self.kind)


Ask: TypeAlias = AskTopics | AskCoordinator


@dataclass(frozen=True, slots=True)
class LookupLater:
    """There is no leader or coordinator at the moment; a later lookup may find one."""

    doing: str
    code: int


@dataclass(frozen=True, slots=True)
class LookupRefused:
    """There is no leader or coordinator, and waiting does not help."""

    doing: str
    code: int
    detail: str | None = None


Lookup: TypeAlias = Address | Ask | LookupLater | LookupRefused


@dataclass(slots=True)
class ClusterMetadata:
    brokers: dict[int, Address] = field(default_factory=dict)
    """The last that were told of. They are not forgotten: one of them may be needed to ask again."""
    _topics: dict[str, KnownTopic] = field(default_factory=dict)
    _coordinators: dict[tuple[CoordinatorKind, str], Address] = field(default_factory=dict)
    _has_all_brokers: bool = False

    def forget(self) -> None:
        """Who leads and who coordinates is looked up again."""
        self._topics.clear()
        self._coordinators.clear()
        self._has_all_brokers = False

    def broker(self, node_id: int) -> Lookup:
        address = self.brokers.get(node_id)
        if address is not None:
            return address
        if not self._has_all_brokers:
            return AskTopics(())
        return LookupLater(f"broker {node_id}", ErrorCode.BROKER_NOT_AVAILABLE)

    def leader_id(self, topic: str, partition: int) -> int | Ask | LookupLater | LookupRefused:
        view = self._topics.get(topic)
        if view is None:
            return AskTopics((topic,))
        found = view.partitions.get(partition)
        if found is not None and found.leader is not None:
            return found.leader
        doing = f"leader of partition {partition} of topic {topic}"
        if found is not None or view.error == ErrorCode.LEADER_NOT_AVAILABLE:
            return LookupLater(doing, ErrorCode.LEADER_NOT_AVAILABLE)
        del self._topics[topic]
        if view.error != ErrorCode.NONE:
            return LookupRefused(f"topic {topic}", view.error)
        return LookupRefused(doing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def leader(self, topic: str, partition: int) -> Lookup:
        found = self.leader_id(topic, partition)
        return self.broker(found) if isinstance(found, int) else found

    def coordinator(self, kind: CoordinatorKind, name: str) -> Lookup:
        return self._coordinators.get((kind, name)) or AskCoordinator(kind, name)

    def learn(self, asked: Ask, reply: Any) -> LookupLater | LookupRefused | None:
        """What the reply says. None: make the lookup again, which will not ask the same."""
        if isinstance(asked, AskTopics):
            self.learn_topics(asked.names, reply)
            return None
        return self._learn_coordinator(asked, reply)

    def learn_topics(self, names: Collection[str] | None, reply: MetadataResponse) -> dict[str, KnownTopic]:
        """The topics of the reply; those that it leaves out though they were asked for do not exist."""
        self.brokers = {each.node_id: Address(each.host, each.port) for each in reply.brokers}
        self._has_all_brokers = True
        views = {name: KnownTopic(name, None, {}, error=_MISSING) for name in names or ()}
        views |= {topic.name: _view(topic.name, topic) for topic in reply.topics if topic.name is not None}
        self._topics |= views
        return views

    def _learn_coordinator(
        self, asked: AskCoordinator, reply: FindCoordinatorResponse
    ) -> LookupLater | LookupRefused | None:
        doing = f"coordinator of {asked.kind.name.lower()} {asked.name}"
        if may_change(reply.error_code):
            return LookupLater(doing, reply.error_code)
        if reply.error_code != ErrorCode.NONE:
            return LookupRefused(doing, reply.error_code, reply.error_message)
        self._coordinators[asked.kind, asked.name] = Address(reply.host, reply.port)
        return None


_MISSING: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _view(name: str, topic: MetadataResponseTopic) -> KnownTopic:
    partitions = {
        each.partition_index: KnownPartition(
            each.leader_id if each.leader_id >= 0 else None,
            LeaderEpoch(each.leader_epoch),
            tuple(each.replica_nodes),
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }
    error = ErrorCode.of(topic.error_code)
    return KnownTopic(name, topic.topic_id, partitions, topic.is_internal, error)
