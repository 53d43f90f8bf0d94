"""Batches on their way to their leaders: sequences, what goes into one request, and what its reply means.

A request holds a batch of each partition at most once, so that as many requests as a broker remembers
(`IN_FLIGHT_MAX`) can be on the way and a repetition is still known for one. Batches without a reply that says
written are sent again in the order of their sequences.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from riverlog.client.core.new_batch import NewBatch
from riverlog.client.core.retrying import Verdict, verdict_on
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.wire.messages.produce import ProduceResponse

IN_FLIGHT_MAX: Final = 5
_REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
_SEQUENCES: Final = 1 << 31
_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


def is_written(code: int) -> bool:
    """A repetition that the broker knows is written too."""
    return code in _WRITTEN


def is_fenced(code: int) -> bool:
    """Whether the producer may not write any more: its id is taken over, or its transaction was ended."""
    return code in _FENCED


class Sequences:
    """The numbers by which a broker knows the batches of one producer, counted for each partition."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}

    def sign(
        self, batches: Iterable[NewBatch], producer: ProducerIdAndEpoch | None, *, is_transactional: bool
    ) -> list[TopicPartition]:
        """Make the headers of these batches. The partitions that are written for the first time."""
        new: list[TopicPartition] = []
        for batch in batches:
            at = batch.at
            sequence = self._next.get(at)
            if sequence is None:
                new.append(at)
                sequence = 0
            batch.sign(producer, sequence, is_transactional=is_transactional)
            self._next[at] = (sequence + batch.record_count) % _SEQUENCES
        return new

    def in_order(self, batches: Iterable[NewBatch]) -> list[NewBatch]:
        """In each partition by sequence; a wrap to 0 does not matter."""
        return sorted(batches, key=lambda batch: -((self._next[batch.at] - batch.sequence) % _SEQUENCES))


@dataclass(slots=True)
class ProduceBatches:
    """What goes into one request."""

    node_id: int
    batches: list[NewBatch] = field(default_factory=list)
    _partitions: set[TopicPartition] = field(default_factory=set)
    _size_bytes: int = 0

    def add(self, at: TopicPartition, batch: NewBatch) -> bool:
        """Whether the batch had room, which the first one always has."""
        size_bytes = self._size_bytes + batch.size_bytes
        if self.batches and (size_bytes > _REQUEST_BYTES_MAX or at in self._partitions):
            return False
        self.batches.append(batch)
        self._partitions.add(at)
        self._size_bytes = size_bytes
        return True


def requests_for(
    batches: Iterable[NewBatch], leader_of: Callable[[TopicPartition], int]
) -> Iterator[ProduceBatches]:
    """Batches by leader, a partition once in each request, none larger than the limit but for one batch."""
    filling: dict[int, ProduceBatches] = {}
    for batch in batches:
        at = batch.at
        node_id = leader_of(at)
        request = filling.get(node_id)
        if request is not None and request.add(at, batch):
            continue
        if request is not None:
            yield request
        filling[node_id] = request = ProduceBatches(node_id)
        request.add(at, batch)
    yield from filling.values()


@dataclass(slots=True)
class ProduceOutcome:
    """What a reply says about the batches of its request."""

    records_written: int = 0
    again: list[NewBatch] = field(default_factory=list)
    refused: tuple[NewBatch, int] | None = None
    """The first batch that no other try will write, and why."""


def outcome_of(
    batches: Sequence[NewBatch], reply: ProduceResponse, *, follows_failure: bool
) -> ProduceOutcome:
    """`follows_failure`: an earlier batch has to be sent again, so that later ones are out of order."""
    codes = {
        (topic.name, each.index): each.error_code
        for topic in reply.responses
        for each in topic.partition_responses
    }
    outcome = ProduceOutcome()
    for batch in batches:
        code = codes.get((batch.topic, batch.partition), int(ErrorCode.UNKNOWN_SERVER_ERROR))
        if is_written(code):
            outcome.records_written += batch.record_count
        elif _is_tried_again(code, follows_failure):
            outcome.again.append(batch)
        elif outcome.refused is None:
            outcome.refused = batch, code
    return outcome


def _is_tried_again(code: int, follows_failure: bool) -> bool:
    if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        return follows_failure
    # A leader may hear of a new partition later than its producers do.
    return verdict_on(code, wait_for_topic=True) is not Verdict.GIVE_UP
