"""A cluster as its clients see it: who leads, who coordinates, and a question to the right broker.

The blocking driver of `core.metadata` and `core.retrying`, not thread-safe: one owner, one connection for
each broker, opened when first needed and again when it was lost. A lost connection and a broker that is not
the right one any more are tried again, with fresh metadata and a growing pause, until the deadline; then the
failure is one exception with one line. Error codes inside an answer belong to the caller: `retrying` repeats
a question for as long as its code says that a later try may do better. Not here: TLS and SASL, and records.
"""

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

from riverlog.client.broker_connection import BrokerConnection
from riverlog.client.core.metadata import (
    Ask,
    AskCoordinator,
    AskTopics,
    ClusterMetadata,
    CoordinatorKind,
    KnownTopic,
    Lookup,
    LookupLater,
    LookupRefused,
)
from riverlog.client.core.retrying import Retries, Verdict, verdict_on
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.schema import Message

_Answer = TypeVar("_Answer")
_Found = TypeVar("_Found", Address, int)
_Look: TypeAlias = Callable[[], Lookup]
_AT_ONCE_MAX: Final = 50
"""Below what a connection lets be in flight."""


class ClusterUnreachable(RiverlogError):  # noqa: N818 - named for what it is
    """No broker answered in time."""


class BrokerRefused(RiverlogError):  # noqa: N818 - named for what it is
    """A broker answered with an error code that another try would not change, or not before the deadline."""

    def __init__(self, doing: str, code: int, detail: str | None = None) -> None:
        self.code = ErrorCode.of(code)
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
class Question:
    """For `ask_at_once`: whom, and what."""

    look: Callable[[ClusterMetadata], Lookup]
    key: ApiKey
    request: Message
    version_max: int | None = None

    @classmethod
    def to_coordinator(
        cls,
        kind: CoordinatorKind,
        name: str,
        key: ApiKey,
        request: Message,
        *,
        version_max: int | None = None,
    ) -> "Question":
        return cls(lambda known: known.coordinator(kind, name), key, request, version_max)

    @classmethod
    def to_broker(cls, node_id: int, key: ApiKey, request: Message) -> "Question":
        return cls(lambda known: known.broker(node_id), key, request)


class Cluster:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._open: dict[Address, BrokerConnection] = {}
        self._metadata = ClusterMetadata()
        self._was_reached = False
        self._heard_of_brokers_at: float | None = None

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
        self._metadata.forget()
        self._heard_of_brokers_at = None

    def ask_any(self, key: ApiKey, request: Message, *, version_max: int | None = None) -> Any:
        return self.use(None, lambda broker: broker.ask(key, request, version_max=version_max))

    def ask_broker(
        self, node_id: int, key: ApiKey, request: Message, *, version_max: int | None = None
    ) -> Any:
        return self.use(
            lambda: self._metadata.broker(node_id),
            lambda broker: broker.ask(key, request, version_max=version_max),
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
            lambda: self._metadata.coordinator(kind, name),
            lambda broker: broker.ask(key, request, version_max=version_max),
        )

    def ask_at_once(self, questions: Sequence[Question]) -> list[Any | None]:
        """The answers, for which all brokers are asked before the first is waited for.

        None where there is no answer, as a connection was lost: whether it was done is not known.
        """
        answers: list[Any | None] = [None] * len(questions)
        for first in range(0, len(questions), _AT_ONCE_MAX):
            self._ask_some_at_once(questions[first : first + _AT_ONCE_MAX], answers, first)
        return answers

    def _ask_some_at_once(self, questions: Sequence[Question], answers: list[Any | None], first: int) -> None:
        # First who is asked, and in which version: both may take a question, on the same connections.
        addresses = [
            self._looked_up(partial(each.look, self._metadata), self._retries()) for each in questions
        ]
        lost: set[Address] = set()
        for each, address in zip(questions, addresses, strict=True):
            try:
                self._connected(address).version(each.key, each.version_max)
            except OSError:
                lost.add(address)
        sent: list[tuple[int, Address]] = []
        for index, (each, address) in enumerate(zip(questions, addresses, strict=True), first):
            if address in lost:
                continue
            try:
                self._connected(address).send(each.key, each.request, version_max=each.version_max)
            except OSError:
                lost.add(address)
            else:
                sent.append((index, address))
        for index, address in sent:
            if address in lost:
                continue
            try:
                answers[index] = self._connected(address).answer()
            except (OSError, MalformedMessage):
                lost.add(address)
        for address in lost:
            self._lost(address)

    def use_leader(self, topic: str, partition: int, work: Callable[[BrokerConnection], _Answer]) -> _Answer:
        """What `work` makes of the connection to the leader; again when the connection fails."""
        return self.use(lambda: self._metadata.leader(topic, partition), work)

    def serves(self, key: ApiKey, version: int) -> bool:
        first, last = self.use(None, lambda broker: broker.served(key))
        return first <= version <= last

    def brokers(self, *, age_s_max: float = 0.0) -> Mapping[int, Address]:
        """As the cluster says, or has said not longer ago."""
        if self._heard_of_brokers_at is None or time.monotonic() - self._heard_of_brokers_at > age_s_max:
            self.topics(())
        return dict(self._metadata.brokers)

    def address_of(self, node_id: int) -> Address:
        """Of a broker, once the cluster tells of it."""
        return self._looked_up(lambda: self._metadata.broker(node_id), self._retries())

    def topics(self, names: Collection[str] | None = None) -> Mapping[str, KnownTopic]:
        """As the cluster says now; all of them without `names`. One that does not exist has an error."""
        asked = AskTopics(None if names is None else tuple(names))
        views = self._metadata.learn_topics(asked.names, self._ask(asked))
        self._heard_of_brokers_at = time.monotonic()
        return views

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads, once there is one."""
        return self._looked_up(lambda: self._metadata.leader_id(topic, partition), self._retries())

    def retrying(
        self,
        attempt: Callable[[], _Answer],
        code_of: Callable[[_Answer], int],
        *,
        doing: str,
        wait_for_topic: bool = False,
        deadline_s: float | None = None,
    ) -> _Answer:
        """The first answer with code 0; `BrokerRefused` for a code that is final, or when time is up."""
        retries = _retries(self._settings.retry_deadline_s if deadline_s is None else deadline_s)
        while True:
            answer = attempt()
            code = code_of(answer)
            match verdict_on(code, wait_for_topic=wait_for_topic):
                case Verdict.DONE:
                    return answer
                case Verdict.GIVE_UP:
                    raise BrokerRefused(doing, code)
                case Verdict.REFRESH:
                    self.invalidate()
            if not _pause(retries):
                raise BrokerRefused(doing, code)

    def use(self, look: _Look | None, work: Callable[[BrokerConnection], _Answer]) -> _Answer:
        """What `work` makes of a connection to the broker that `look` finds, or to any."""
        retries = self._retries()
        while True:
            address: Address | None = None
            try:
                address = self._anyone() if look is None else self._looked_up(look, retries)
                answer = work(self._connected(address))
            except (OSError, MalformedMessage) as error:
                self._lost(address)
                if not _pause(retries):
                    raise self._unreachable(address, error) from error
            else:
                self._was_reached = True
                return answer

    def _looked_up(
        self, look: Callable[[], _Found | Ask | LookupLater | LookupRefused], retries: Retries
    ) -> _Found:
        """What a lookup in the metadata finds, which is asked for as needed; waits while there is none."""
        is_fresh = False
        while True:
            found: _Found | Ask | LookupLater | LookupRefused | None = look()
            if isinstance(found, (Address, int)):
                return found
            if isinstance(found, AskTopics | AskCoordinator):
                found = self._metadata.learn(found, self._ask(found))
                is_fresh = True
            if isinstance(found, LookupRefused):
                if is_fresh:
                    raise BrokerRefused(found.doing, found.code, found.detail)
                # What was not there at an earlier look may have come since.
                self.invalidate()
                is_fresh = True
            if isinstance(found, LookupLater):
                if not _pause(retries):
                    raise BrokerRefused(found.doing, found.code)
                self.invalidate()

    def _ask(self, asked: Ask) -> Any:
        return self.ask_any(asked.key, asked.request(), version_max=asked.version_max)

    def _retries(self) -> Retries:
        settings = self._settings
        return _retries(settings.retry_deadline_s if self._was_reached else settings.request_timeout_s)

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
        candidates = dict.fromkeys([*self._metadata.brokers.values(), *self._settings.bootstrap])
        failure: OSError = ConnectionError("no address is known")
        for address in candidates:
            try:
                self._connected(address)
            except OSError as error:
                failure = error
            else:
                return address
        raise failure


def _retries(patience_s: float) -> Retries:
    return Retries(time.monotonic() + patience_s)


def _pause(retries: Retries) -> bool:
    """Sleeps, unless the deadline would be missed."""
    pause_s = retries.next_pause_s(time.monotonic(), random.random())
    if pause_s is None:
        return False
    time.sleep(pause_s)
    return True
