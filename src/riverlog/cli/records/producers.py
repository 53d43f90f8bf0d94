"""Who has written a record: id and epoch of its producer, and the record's number in its sequence.

They stand in the header of the batch, of which librdkafka tells nothing. So the batches are fetched a second
time, when somebody asks, and only their headers are looked at.
"""

from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from riverlog.cli.asking.batches import headers_from
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection

if TYPE_CHECKING:
    from confluent_kafka import Message

    from riverlog.records.batch import BatchHeader

_SEQUENCES = 2**31
"""After this many the numbers begin again."""


class Origin(NamedTuple):
    producer_id: int
    epoch: int
    sequence: int


class Producers:
    """Asks nothing before it is asked itself. Close it, as it may hold connections."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._brokers: Brokers | None = None
        self._known: dict[Place, list[BatchHeader]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._brokers is not None:
            self._brokers.__exit__(kind, error, trace)

    def of(self, message: "Message") -> Origin | None:
        """None for a record of a producer without an id."""
        place, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        header = self._find(place, offset)
        if header is None:
            self._known[place] = [
                each for each, _, _ in headers_from(self._asked(), self._connection, place, offset)
            ]
            header = self._find(place, offset)
        if header is None or not header.has_producer_id:
            return None
        sequence = (header.base_sequence + offset - header.base_offset) % _SEQUENCES
        return Origin(header.producer_id, header.producer_epoch, sequence)

    def _find(self, place: Place, offset: int) -> "BatchHeader | None":
        for header in self._known.get(place, ()):
            if header.base_offset <= offset <= header.last_offset:
                return header
        return None

    def _asked(self) -> Brokers:
        if self._brokers is None:
            self._brokers = Brokers(self._connection).__enter__()
        return self._brokers
