"""What a connection to a broker tells its driver: it is open, a request has its outcome, it ends."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from riverlog.client.core.versions import ServedVersions
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode

Tag = TypeVar("Tag")
"""What the driver wants back with the outcome of a request, such as a future or the batches in it."""


class Request(NamedTuple, Generic[Tag]):
    key: ApiKey
    version: int
    correlation_id: int
    tag: Tag
    end: int
    """Where its frame ends in the stream of all bytes that go out."""


class Outcome(Enum):
    """What is known about a request that has no reply."""

    NOT_SENT = "the broker did not get the whole of it, and has done nothing"
    UNKNOWN = "the broker may have done it, or may not"


@dataclass(frozen=True, slots=True)
class Opened:
    """Requests can be made from now on."""

    versions: ServedVersions


class Replied(NamedTuple, Generic[Tag]):
    request: Request[Tag]
    data: memoryview
    body: int
    """Where the message begins in the data."""

    def message(self) -> Any:
        """The response message of the API; `MalformedMessage` when it cannot be read."""
        request = self.request
        response, _ = decode(APIS[request.key].response, request.version, self.data, self.body)
        return response


class Unanswered(NamedTuple, Generic[Tag]):
    request: Request[Tag]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection is of no more use. The last event, behind those of the requests."""

    reason: str


Event: TypeAlias = Opened | Replied[Tag] | Unanswered[Tag] | Closed
