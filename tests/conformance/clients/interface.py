"""What the tests ask of every client."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_S = 20.0

Headers = tuple[tuple[str, bytes | None], ...]


class Refused(Exception):  # noqa: N818 - named for what it is
    """The broker refused the records; `code` is Kafka's error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Consumed:
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def content(self) -> Message:
        return Message(self.value, self.key, self.headers)


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    compression: str = "none"
    acks: int = -1
    idempotent: bool = False
    max_request_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    read_committed: bool = False
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_partition_bytes: int = 1_048_576


@dataclass(frozen=True, slots=True)
class Client:
    """Shared by the adapters: where the cluster is."""

    bootstrap: str
    extra: dict[str, str] = field(default_factory=dict)


class ClientUnderTest(Protocol):
    """One partition of one topic at a time; blocking calls."""

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        options: ProducerOptions = ...,
        *,
        partition: int | None = 0,
    ) -> None:
        """Send all, wait for the acknowledgements; `partition` None lets the client's partitioner choose."""
        ...

    def consume(
        self,
        topic: str,
        count: int,
        options: ConsumerOptions = ...,
        *,
        partition: int = 0,
        start: int | None = None,
    ) -> list[Consumed]:
        """The next `count` records from offset `start`; None is the beginning, -1 the end."""
        ...

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The first offset and the one after the last."""
        ...

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        """The first offset at or after a time."""
        ...
