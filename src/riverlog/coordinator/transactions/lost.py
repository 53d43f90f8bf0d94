"""Transactions that are open in a partition and that no coordinator knows any more, ended at a start.

Without `riverlog.acks.fsync` a power cut may take the end of the coordinator's log and leave batches in the
partitions. What the coordinator has forgotten nobody can end: readers of committed records would wait for it
for ever. Apache Kafka leaves that to an operator (KIP-664). Here it is aborted, once this node has loaded the
whole transaction log. Where other brokers lead a part of it, it is left, and told in the log if the machine
was started anew: a process that was killed has lost nothing, and coordinators end what it left open. Answers
of several brokers, of which each tells what it leads at another moment, do not show that nobody knows a
transaction; and a transaction log with replicas is lost only where all of them were switched off at once.

The coordinator's record stands before the first batch of a transaction and until its last marker, so that
what is open in a partition and not in the record is lost for certain.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.transactions.markers import Marker, MarkerWriter
from riverlog.coordinator.transactions.shard import TransactionShard
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import VERSION_2, Transaction
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Follower

_PAUSE_S: Final = 1.0
_logger = logging.getLogger(__name__)


def is_known(
    transactions: Iterable[Transaction], partition: TopicPartition, producer: ProducerIdAndEpoch
) -> bool:
    """Whether one of them is to end what the producer has open in the partition."""
    return any(
        each.producer.producer_id == producer.producer_id
        and partition in each.partitions
        and producer.producer_epoch in _open_epochs(each)
        for each in transactions
    )


def _open_epochs(transaction: Transaction) -> Sequence[int]:
    """In which epochs its batches may be. An end that raises the epoch leaves them one below."""
    epoch = transaction.producer.producer_epoch
    if transaction.state is TransactionState.ONGOING:
        return (epoch,)
    if transaction.state.is_prepared:
        return (epoch - 1,) if transaction.client_version >= VERSION_2 else (epoch - 1, epoch)
    return ()


class LostTransactions:
    def __init__(
        self, runtime: CoordinatorRuntime[TransactionShard], replicas: ReplicaSet, writer: MarkerWriter
    ) -> None:
        self._runtime, self._replicas, self._writer = runtime, replicas, writer

    async def end(self, partitions: Iterable[TopicPartition], *, was_switched_off: bool) -> None:
        """Abort what is lost in these partitions; return when none is left. Call when all is loaded.
        `was_switched_off`: the machine was, so that something can be lost."""
        left = [each for each in partitions if self._open_in(each)]
        while left:
            if not self._runtime.leads_all:
                if was_switched_off:
                    _logger.warning(
                        "transactions are open in %s after the machine was switched off; those that "
                        "`riverlog txn list --open` does not show were lost, and hold back readers of "
                        "committed records",
                        ", ".join(map(str, left)),
                    )
                return
            left = [each for each in left if not await self._end_in(each)]
            if left:
                await asyncio.sleep(_PAUSE_S)

    def _open_in(self, at: TopicPartition) -> list[Marker]:
        """The markers that would abort what is open there."""
        partition = self._replicas.find(*at)
        if not isinstance(partition, Partition):
            return []
        return [
            Marker(
                ProducerIdAndEpoch(producer_id, entry.epoch),
                LeaderEpoch(max(entry.coordinator_epoch, 0)),
                commit=False,
            )
            for producer_id, entry in partition.log.producers.open_transactions()
        ]

    def _lost_in(self, at: TopicPartition) -> list[Marker] | None:
        """Decided at one moment: a transaction that begins a turn later is known to its coordinator before
        its first batch stands here. None when this node cannot tell."""
        shards = self._runtime.every_shard()
        if shards is None:
            return None
        known = [transaction for shard in shards for transaction in shard]
        return [marker for marker in self._open_in(at) if not is_known(known, at, marker.producer)]

    async def _end_in(self, at: TopicPartition) -> bool:
        """Whether nothing lost is open there any more, or another broker leads the partition: what is open in
        a copy may have ended since, and by the time a marker is there the next may have begun."""
        match self._replicas.find(*at):
            case Partition(role=Follower(leader=leader)):
                return leader is not None
            case _:
                pass
        while lost := self._lost_in(at):  # None: a shard cannot be loaded at the moment.
            marker = lost[0]
            if await self._writer.write(at, marker, may_be_written=False) is not None:
                return False
            _logger.warning(
                "%s: a transaction of producer %d was lost with the end of the transaction log; aborted",
                at,
                marker.producer.producer_id,
            )
        return lost is not None
