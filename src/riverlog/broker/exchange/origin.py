"""Where requests come from: who asks, over which listener, and what the last requests were like."""

from typing import Protocol

from riverlog.broker.exchange.context import Parts
from riverlog.model.network import Address
from riverlog.model.rights import ANONYMOUS, Principal


class Template(Protocol):
    """A request of which the next ones may be repetitions, and how those are answered."""

    @property
    def client_id(self) -> str | None: ...

    @property
    def version(self) -> int: ...

    def match(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Correlation id and records of a repetition; None if the frame is another request."""
        ...

    def answer(self, correlation_id: int, records: memoryview) -> Parts | None:
        """The reply; None, and nothing was done, if the request must be looked at more closely."""
        ...


class Origin:
    """One connection, as requests see it."""

    __slots__ = (
        "is_forwarded",
        "last_place",
        "listener_name",
        "peer",
        "principal",
        "repetitions",
        "template",
    )

    def __init__(
        self,
        peer: Address,
        listener_name: str,
        principal: Principal = ANONYMOUS,
        *,
        is_forwarded: bool = False,
    ) -> None:
        """`is_forwarded`: another broker took the request and has sent it on."""
        self.is_forwarded = is_forwarded
        self.peer = peer
        self.listener_name = listener_name
        self.principal = principal
        self.template: Template | None = None
        self.last_place: tuple[object, ...] = ()
        """The topic and partition of the last produce request of one batch that was decoded."""
        self.repetitions = 0
        """How many of them in a row had the same."""
