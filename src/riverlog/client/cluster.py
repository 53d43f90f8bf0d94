"""A cluster as its clients see it: who leads, who coordinates, and a question to the right broker.

Blocking and not thread-safe: one owner, one connection for each broker, opened when first needed and again
when it was lost. A lost connection and a broker that is not the right one any more are tried again, with
fresh metadata and a growing pause, until the deadline; then the failure is one exception with one line.
Error codes inside an answer belong to the caller: `retrying` repeats a question for as long as its code says
that a later try may do better. Not here: TLS and SASL, and anything about records.
"""

import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from riverlog.client.broker_connection import BrokerConnection
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.schema import Message

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0
_FIND_ONE_VERSION: Final = 3
"""Of FindCoordinator: from version 4 on several can be asked for at once, which is not needed here."""

MOVED: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Codes that say: ask again, perhaps somebody else."""

_Answer = TypeVar("_Answer")


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class ClusterUnreachable(RiverlogError):  # noqa: N818 - named for what it is
    """No broker answered in time."""


class BrokerRefused(RiverlogError):  # noqa: N818 - named for what it is
    """A broker answered with an error code that another try would not change, or not before the deadline."""

    def __init__(self, doing: str, code: int, detail: str | None = None) -> None:
        self.code = _known_code(code)
        name = self.code.name if self.code == code else str(code)
        super().__init__(f"{doing}: {name}" + (f" ({detail})" if detail else ""))


@dataclass(frozen=True, slots=True)
class ClientSettings:
    bootstrap: tuple[Address, ...]
    client_id: str = "riverlog"
    request_timeout_s: float = 30.0
    """For one answer, and for the first contact with the cluster."""
    retry_deadline_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PartitionView:
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: UUID | None
    partitions: Mapping[int, PartitionView]
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class _Known:
    brokers: dict[int, Address] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)
    coordinators: dict[tuple[CoordinatorKind, str], Address] = field(default_factory=dict)


class Cluster:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._open: dict[Address, BrokerConnection] = {}
        self._known = _Known()
        self._was_reached = False

    @property
    def settings(self) -> ClientSettings:
        return self._settings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def invalidate(self) -> None:
        """Forget who leads and who coordinates. Connections stay."""
        self._known.topics.clear()
        self._known.coordinators.clear()

    def ask_any(self, key: ApiKey, request: Message, *, version_max: int | None = None) -> Any:
        return self.use(None, lambda broker: broker.ask(key, request, version_max=version_max))

    def ask_broker(
        self, node_id: int, key: ApiKey, request: Message, *, version_max: int | None = None
    ) -> Any:
        return self.use(
            lambda: self._broker(node_id), lambda broker: broker.ask(key, request, version_max=version_max)
        )

    def ask_leader(
        self, topic: str, partition: int, key: ApiKey, request: Message, *, version_max: int | None = None
    ) -> Any:
        return self.use_leader(
            topic, partition, lambda broker: broker.ask(key, request, version_max=version_max)
        )

    def ask_coordinator(
        self,
        kind: CoordinatorKind,
        name: str,
        key: ApiKey,
        request: Message,
        *,
        version_max: int | None = None,
    ) -> Any:
        return self.use(
            lambda: self._coordinator(kind, name),
            lambda broker: broker.ask(key, request, version_max=version_max),
        )

    def use_leader(self, topic: str, partition: int, work: Callable[[BrokerConnection], _Answer]) -> _Answer:
        """What `work` makes of the connection to the leader; again when the connection fails."""
        return self.use(lambda: self._leader(topic, partition), work)

    def serves(self, key: ApiKey, version: int) -> bool:
        first, last = self.use(None, lambda broker: broker.served(key))
        return first <= version <= last

    def brokers(self) -> Mapping[int, Address]:
        self._refresh([])
        return dict(self._known.brokers)

    def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicView]:
        """As the cluster says now; all of them without `names`. One that does not exist has an error."""
        return self._refresh(names)

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads, once there is one."""
        return self.use_leader(topic, partition, lambda _: self._leader_id(topic, partition))

    def retrying(
        self,
        attempt: Callable[[], _Answer],
        code_of: Callable[[_Answer], int],
        *,
        doing: str,
        retry_on: Collection[ErrorCode] = MOVED,
        deadline_s: float | None = None,
    ) -> _Answer:
        """The first answer with code 0; `BrokerRefused` for a code that is final, or when time is up."""
        pauses = _Pauses(self._settings.retry_deadline_s if deadline_s is None else deadline_s)
        while True:
            answer = attempt()
            code = code_of(answer)
            if code == ErrorCode.NONE:
                return answer
            if code not in retry_on or not pauses.another():
                raise BrokerRefused(doing, code)
            self.invalidate()

    def use(self, find: Callable[[], Address] | None, work: Callable[[BrokerConnection], _Answer]) -> _Answer:
        """What `work` makes of a connection to the broker that `find` names, or to any."""
        pauses = _Pauses(self._patience_s())
        while True:
            address: Address | None = None
            try:
                address = self._anyone() if find is None else find()
                answer = work(self._connected(address))
            except _NotYet as reason:
                if not pauses.another():
                    raise BrokerRefused(reason.doing, reason.code) from None
            except (OSError, MalformedMessage) as error:
                self._lost(address)
                if not pauses.another():
                    raise self._unreachable(address, error) from error
            else:
                self._was_reached = True
                return answer

    def _patience_s(self) -> float:
        return self._settings.retry_deadline_s if self._was_reached else self._settings.request_timeout_s

    def _unreachable(self, address: Address | None, error: Exception) -> ClusterUnreachable:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        if address is None or not self._was_reached:
            addresses = ", ".join(map(str, self._settings.bootstrap))
            return ClusterUnreachable(f"no broker could be reached at {addresses}: {reason}")
        return ClusterUnreachable(f"broker {address} could not be reached: {reason}")

    def _connected(self, address: Address) -> BrokerConnection:
        connection = self._open.get(address)
        if connection is None:
            connection = BrokerConnection(
                address, timeout_s=self._settings.request_timeout_s, client_id=self._settings.client_id
            )
            self._open[address] = connection
        return connection

    def _lost(self, address: Address | None) -> None:
        if address is not None and (connection := self._open.pop(address, None)) is not None:
            connection.close()
        self.invalidate()

    def _anyone(self) -> Address:
        """One that a connection is open to, or else the first that takes one."""
        for address in self._open:
            return address
        candidates = dict.fromkeys([*self._known.brokers.values(), *self._settings.bootstrap])
        failure: OSError = ConnectionError("no address is known")
        for address in candidates:
            try:
                self._connected(address)
            except OSError as error:
                failure = error
            else:
                return address
        raise failure

    def _broker(self, node_id: int) -> Address:
        if node_id not in self._known.brokers:
            self._refresh([])
        address = self._known.brokers.get(node_id)
        if address is None:
            raise _NotYet(f"broker {node_id}", ErrorCode.BROKER_NOT_AVAILABLE)
        return address

    def _leader_id(self, topic: str, partition: int) -> int:
        view = self._known.topics.get(topic) or self._refresh([topic])[topic]
        doing = f"leader of partition {partition} of topic {topic}"
        if view.error == ErrorCode.LEADER_NOT_AVAILABLE:
            self.invalidate()
            raise _NotYet(doing, view.error)
        if view.error != ErrorCode.NONE:
            self._known.topics.pop(topic, None)
            raise BrokerRefused(f"topic {topic}", view.error)
        found = view.partitions.get(partition)
        if found is None:
            self._known.topics.pop(topic, None)
            raise BrokerRefused(doing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if found.leader is None:
            self.invalidate()
            raise _NotYet(doing, ErrorCode.LEADER_NOT_AVAILABLE)
        return found.leader

    def _leader(self, topic: str, partition: int) -> Address:
        return self._broker(self._leader_id(topic, partition))

    def _coordinator(self, kind: CoordinatorKind, name: str) -> Address:
        known = self._known.coordinators.get((kind, name))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key=name, key_type=kind)
        answer = self.ask_any(ApiKey.FIND_COORDINATOR, request, version_max=_FIND_ONE_VERSION)
        doing = f"coordinator of {kind.name.lower()} {name}"
        if answer.error_code in MOVED:
            raise _NotYet(doing, answer.error_code)
        if answer.error_code != ErrorCode.NONE:
            raise BrokerRefused(doing, answer.error_code, answer.error_message)
        found = Address(answer.host, answer.port)
        self._known.coordinators[(kind, name)] = found
        return found

    def _refresh(self, names: Collection[str] | None) -> dict[str, TopicView]:
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        reply: MetadataResponse = self.use(None, lambda broker: broker.ask(ApiKey.METADATA, request))
        self._known.brokers = {each.node_id: Address(each.host, each.port) for each in reply.brokers}
        views = {view.name: view for view in map(_view, reply.topics)}
        self._known.topics.update(views)
        return views


class _NotYet(Exception):  # noqa: N818 - never seen outside
    """There is nobody to ask at the moment."""

    def __init__(self, doing: str, code: int) -> None:
        super().__init__(doing)
        self.doing = doing
        self.code = code


class _Pauses:
    """Growing pauses, with some chance in them so that many clients do not come back at once."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline = time.monotonic() + deadline_s
        self._pause_s = _FIRST_PAUSE_S

    def another(self) -> bool:
        """Sleeps, unless the deadline would be missed."""
        pause_s = self._pause_s * random.uniform(0.8, 1.2)
        if time.monotonic() + pause_s > self._deadline:
            return False
        time.sleep(pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
        return True


def _view(topic: Any) -> TopicView:
    partitions = {
        each.partition_index: PartitionView(
            each.leader_id if each.leader_id >= 0 else None, each.leader_epoch, tuple(each.replica_nodes)
        )
        for each in topic.partitions
    }
    return TopicView(
        topic.name,
        topic.topic_id,
        dict(sorted(partitions.items())),
        topic.is_internal,
        _known_code(topic.error_code),
    )


def _known_code(code: int) -> ErrorCode:
    return ErrorCode(code) if code in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
