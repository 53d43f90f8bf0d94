"""One fault: which requests it is meant for, what it does to them, and how often it has.

Made by `Faults`, which has the public face of each kind; struck by `faulty_answering`.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Self

from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.network import Address
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.schema import Message

_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as the predicate of a fault sees it."""

    api: str
    """Kafka's name, such as "Produce"."""
    version: int
    client_id: str | None
    peer: Address
    topics: frozenset[str]
    """The topics that it is about; empty if it names none."""
    request: Message


class Kind(Enum):
    ERROR = "error"
    DELAY = "delay"
    DISCONNECT = "disconnect"
    DROP_REPLY = "drop_reply"
    REFUSE = "refuse_connections"


@dataclass(frozen=True, slots=True)
class Where:
    """Which requests are meant. What is None does not matter."""

    api: ApiKey | None = None
    client_id: str | None = None
    topic: str | None = None
    when: Callable[[Asked], bool] | None = None

    def fits(self, asked: Asked) -> bool:
        return (
            (self.client_id is None or self.client_id == asked.client_id)
            and (self.topic is None or self.topic in asked.topics)
            and (self.when is None or self.when(asked))
        )


class Fault:
    """The handle of one fault: `hits`, `wait`, `remove`; a context manager that removes it at the end."""

    def __init__(
        self,
        take_back: "Callable[[Fault], None]",
        kind: Kind,
        where: Where,
        times: int | None,
        *,
        error: ErrorCode = ErrorCode.NONE,
        delay_s: float = 0.0,
        is_done_first: bool = False,
    ) -> None:
        if times is not None and times < 1:
            raise ValueError(f"A fault that strikes {times} times is none: times is 1 or more, or None.")
        self.kind = kind
        self.where = where
        self.error = error
        self.delay_s = delay_s
        self.is_done_first = is_done_first
        self._take_back = take_back
        self._times = times
        self._hits = 0
        self._changed = threading.Condition()
        self._failure: Exception | None = None

    @property
    def hits(self) -> int:
        """How many requests, or connections, it has struck."""
        return self._hits

    @property
    def is_used_up(self) -> bool:
        return self._times is not None and self._hits >= self._times

    def fits(self, asked: Asked) -> bool:
        """Never raises: what its predicate raised is kept for the test."""
        try:
            return self.where.fits(asked)
        except Exception as error:  # noqa: BLE001 - a test's own code, which must not take the broker down
            self._failure = self._failure or error
            return False

    def check(self) -> None:
        """Raise what the predicate has raised, if it has."""
        if self._failure is not None:
            raise RiverlogError(f"The predicate of {self} failed: {self._failure!r}") from self._failure

    def strike(self) -> bool:
        """Count a request that it fits; False if it has struck often enough."""
        with self._changed:
            if self.is_used_up:
                return False
            self._hits += 1
            self._changed.notify_all()
            return True

    def wait(self, hits: int = 1, timeout: float = _WAIT_S) -> None:
        """Return when it has struck so often; `TimeoutError` if it has not in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._hits >= hits, timeout):
                self.check()
                raise TimeoutError(f"{self} has not struck {hits} times within {timeout:g} s.")

    def remove(self) -> None:
        """Strike no more. Removing twice is no error."""
        self._take_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        if error is None:
            self.check()

    def __repr__(self) -> str:
        where = self.where
        said = [
            *([] if where.api is None else [repr(APIS[where.api].name)]),
            *([repr(self.error.name)] if self.kind is Kind.ERROR else []),
            *([f"seconds={self.delay_s:g}"] if self.kind is Kind.DELAY else []),
            *(f"{name}={value!r}" for name, value in _limits(where) if value is not None),
            *([] if self._times is None else [f"times={self._times}"]),
        ]
        return f"faults.{self.kind.value}({', '.join(said)}) [{self._hits} hits]"


def _limits(where: Where) -> tuple[tuple[str, object], ...]:
    return ("client_id", where.client_id), ("topic", where.topic), ("when", where.when)
