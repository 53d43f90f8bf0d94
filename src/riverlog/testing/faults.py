"""Faults by request: what a broker does to requests of a test's choice, and how often it has done so.

    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", times=3, topic="orders") as fault:
        send_an_order()
    assert fault.hits == 3

A fault is in force from the call that makes it until it is removed, at the latest at the end of its `with`
statement. The oldest one that fits a request is the only one that touches it, but for an error of one topic,
which leaves the rest of the request to younger ones. Faults are made and removed by
tests, in their threads, and looked up by the broker in its own. They outlive a restart of the broker. Not
here: how a fault is done to a request (`faulty_answering`).
"""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final

from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.testing.fault import Asked, Fault, Kind, Where
from riverlog.wire.apis import APIS, ApiKey


class Faults:
    """All faults of one broker. Requests are meant by API, client id, topic and predicate; `times` says how
    many of them, None that there is no end to it. No API means every request of any."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        """`on_change` is called after each change, in the thread of whoever made it."""
        self._on_change = on_change
        self._lock = threading.Lock()
        self._faults: tuple[Fault, ...] = ()
        self._noted: list[Fault] | None = None

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def __len__(self) -> int:
        return len(self._faults)

    def error(
        self,
        api: str,
        error: str | int | ErrorCode,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        when: Callable[[Asked], bool] | None = None,
    ) -> Fault:
        """Answer with an error, and do nothing of what is asked: all of it, or with `topic` what is asked of
        that topic, where the reply answers for each; the rest goes on, past the faults that are younger."""
        where = Where(_api(api), client_id, topic, when)
        return self._add(Fault(self.remove, Kind.ERROR, where, times, error=_error(error)))

    def delay(
        self,
        api: str | None = None,
        *,
        seconds: float,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        when: Callable[[Asked], bool] | None = None,
    ) -> Fault:
        """Let the request in only after so long; those behind it on its connection wait with it."""
        if seconds < 0:
            raise ValueError(f"A delay of {seconds:g} seconds cannot be: it must not be negative.")
        return self._add(
            Fault(self.remove, Kind.DELAY, Where(_api(api), client_id, topic, when), times, delay_s=seconds)
        )

    def disconnect(
        self,
        api: str | None = None,
        *,
        done: bool = False,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        when: Callable[[Asked], bool] | None = None,
    ) -> Fault:
        """Close the connection instead of an answer: before anything was done, or (`done`) after it."""
        where = Where(_api(api), client_id, topic, when)
        return self._add(Fault(self.remove, Kind.DISCONNECT, where, times, is_done_first=done))

    def drop_reply(
        self,
        api: str | None = None,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        when: Callable[[Asked], bool] | None = None,
    ) -> Fault:
        """Do what is asked and never answer, nor anything after it on that connection, which stays open until
        the client gives up. A request that wants no answer (acks=0) is not touched."""
        return self._add(Fault(self.remove, Kind.DROP_REPLY, Where(_api(api), client_id, topic, when), times))

    def refuse_connections(self, *, times: int | None = None) -> Fault:
        """Reset new connections before a byte is exchanged, each of them a hit; `disconnect` ends those that
        are there. What the operating system refuses nobody can count, so that the port goes on to listen."""
        return self._add(Fault(self.remove, Kind.REFUSE, Where(), times))

    def remove(self, fault: Fault) -> None:
        with self._lock:
            self._faults = tuple(each for each in self._faults if each is not fault)
        self._on_change()

    def clear(self) -> None:
        """Remove them all."""
        with self._lock:
            self._faults = ()
        self._on_change()

    @contextmanager
    def noted(self) -> Iterator[list[Fault]]:
        """A list of all that are made in the meantime, also if they are removed before its end."""
        made: list[Fault] = []
        self._noted = made
        try:
            yield made
        finally:
            self._noted = None

    @property
    def of_requests(self) -> tuple[Fault, ...]:
        return tuple(each for each in self._faults if each.kind is not Kind.REFUSE and not each.is_used_up)

    @property
    def of_connections(self) -> tuple[Fault, ...]:
        return tuple(each for each in self._faults if each.kind is Kind.REFUSE)

    def _add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults = (*self._faults, fault)
            if self._noted is not None:
                self._noted.append(fault)
        self._on_change()
        return fault


_BY_NAME: Final = {api.name: key for key, api in APIS.items()}


def _api(name: str | None) -> ApiKey | None:
    if name is None:
        return None
    found = _BY_NAME.get(name)
    if found is None:
        raise RiverlogError(f"Kafka has no API {name!r}.{_nearest(name, _BY_NAME)}")
    return found


def _error(error: str | int | ErrorCode) -> ErrorCode:
    if isinstance(error, str):
        if error not in ErrorCode.__members__:
            raise RiverlogError(f"Kafka has no error {error!r}.{_nearest(error, ErrorCode.__members__)}")
        return ErrorCode[error]
    try:
        found = ErrorCode(error)
    except ValueError:
        raise RiverlogError(f"Kafka has no error with the code {error}.") from None
    return found


def _nearest(name: str, known: Collection[str]) -> str:
    by_folded = {each.casefold().replace("_", ""): each for each in known}
    close = get_close_matches(name.casefold().replace("_", ""), by_folded, 1)
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""
