"""What the coordinator knows of one transactional id: a value, and the steps from one to the next.

A step returns the transaction as it will be; nothing is changed in place. `producer` is the identity in the
partitions' batches, and once the end is prepared the one of the markers. `next_producer` is who may speak
for the id afterwards, where that is another producer: a new producer id when the epochs of the old one are
used up (KIP-890), or the process that has taken over a transaction prepared by another (KIP-939).
"""

from typing import Final, NamedTuple

from riverlog.coordinator.transactions.states import TransactionState
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition

NO_TIMEOUT_MS: Final = 2**31 - 1
"""A transaction of an outside two-phase commit is not timed out; Kafka keeps that as the largest timeout."""

EPOCH_MAX: Final = 2**15 - 1
"""The last epoch is only ever used to fence the one before."""

VERSION_1: Final = 0
"""What the log says of a client without an epoch per transaction."""
VERSION_2: Final = 2


class Transaction(NamedTuple):
    transactional_id: str
    state: TransactionState
    producer: ProducerIdAndEpoch
    timeout_ms: int
    updated_ms: int
    started_ms: int | None = None
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int | None = None
    next_producer: ProducerIdAndEpoch | None = None
    client_version: int = VERSION_1

    @property
    def client(self) -> ProducerIdAndEpoch:
        """Who may speak for the transactional id now."""
        return self.next_producer or self.producer

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == NO_TIMEOUT_MS

    @property
    def is_open_for_two_phase(self) -> bool:
        return self.is_two_phase and self.state is TransactionState.ONGOING

    @property
    def deadline_ms(self) -> int | None:
        """When an open transaction is to be aborted; None if it is not open or has no timeout."""
        if self.state is not TransactionState.ONGOING or self.is_two_phase or self.started_ms is None:
            return None
        return self.started_ms + self.timeout_ms

    def initialised(self, producer: ProducerIdAndEpoch, *, timeout_ms: int, now_ms: int) -> "Transaction":
        previous = self.producer.producer_id
        return self._replace(
            state=TransactionState.EMPTY,
            producer=producer,
            timeout_ms=timeout_ms,
            updated_ms=now_ms,
            started_ms=None,
            partitions=frozenset(),
            previous_producer_id=previous if previous != producer.producer_id else self.previous_producer_id,
            next_producer=None,
        )

    def kept(self, producer: ProducerIdAndEpoch, *, timeout_ms: int, now_ms: int) -> "Transaction":
        """Stays open under its old identity, while `producer` is the one who may end it."""
        return self._replace(next_producer=producer, timeout_ms=timeout_ms, updated_ms=now_ms)

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> "Transaction":
        is_open = self.state is TransactionState.ONGOING
        return self._replace(
            state=TransactionState.ONGOING,
            partitions=self.partitions | added if is_open else added,
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, state: TransactionState, *, client_version: int, fresh_id: int | None, now_ms: int
    ) -> "Transaction":
        """The end is decided by the client. Version 2 raises the epoch, if need be with a fresh id."""
        has_partitions = self.state is TransactionState.ONGOING
        next_producer = None
        raises = client_version >= VERSION_2 or self.next_producer is not None
        if self.next_producer is not None:
            # Raised once more, or else a delayed EndTxn of the taker-over could end its next transaction.
            next_producer = (
                _raised(self.next_producer, fresh_id) if client_version >= VERSION_2 else self.next_producer
            )
        elif fresh_id is not None:
            next_producer = ProducerIdAndEpoch(fresh_id, 0)
        return self._replace(
            state=state,
            producer=_next_epoch(self.producer) if raises else self.producer,
            next_producer=next_producer,
            partitions=self.partitions if has_partitions else frozenset(),
            started_ms=self.started_ms if has_partitions else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, now_ms: int) -> "Transaction":
        """Aborted by the coordinator: no producer has the next epoch, so that each must ask for another.

        If it is the last one, the next InitProducerId gets a fresh id; Kafka takes one here already.
        """
        return self._replace(
            state=TransactionState.PREPARE_ABORT,
            producer=_next_epoch(self.producer),
            next_producer=None if self.next_producer is None else _next_epoch(self.next_producer),
            updated_ms=now_ms,
        )

    def completed(self, now_ms: int) -> "Transaction":
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        after = self.next_producer or self.producer
        is_new_id = after.producer_id != self.producer.producer_id
        return self._replace(
            state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            producer=after,
            next_producer=None,
            previous_producer_id=self.producer.producer_id if is_new_id else self.previous_producer_id,
            partitions=frozenset(),
            updated_ms=now_ms,
        )


def is_exhausted(producer: ProducerIdAndEpoch) -> bool:
    """No further epoch of this id may be given to a client."""
    return producer.producer_epoch >= EPOCH_MAX - 1


def _next_epoch(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    assert producer.producer_epoch < EPOCH_MAX
    return ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch + 1)


def _raised(producer: ProducerIdAndEpoch, fresh_id: int | None) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(fresh_id, 0) if fresh_id is not None else _next_epoch(producer)
