"""Tells how far logs here go, of partitions whose state in the metadata is older than some replica's log.

Of those that are found here (`logs_ahead`), and of all whose state says that another replica has found it:
the controller has to know of each. Not more at once than fit into a registration, in the same order
everywhere; what is settled makes room for the rest.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.log_end import NEVER_LED, NO_LOG_ENDS, LogEnd, LogEnds
from riverlog.model.metrics import Metrics
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Offline

_TOLD_MAX: Final = 5_000
_OPENED_PER_TURN: Final = 20


class LogEndReports:
    def __init__(
        self,
        replicas: ReplicaSet,
        tell: Callable[[LogEnds], None],
        metrics: Metrics,
        *,
        on_older: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` is given all there are, whenever they change. `on_older` is called once, when it is known
        that the metadata is older than the logs, be it by what another broker tells of its own."""
        self._replicas = replicas
        self._on_older = on_older
        self._is_older = False
        self._tell = tell
        self._asked_for: set[TopicPartition] = set()
        """Those whose state says that it is older than a log."""
        self._told = NO_LOG_ENDS
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        metrics.gauge("riverlog_older_state_partitions", lambda: len(self._concerned))

    def start(self) -> None:
        """Also looks at what is known already."""
        for topic in self._replicas.image.topics.values():
            self._note_all(topic)
        self._note_told(self._replicas.image)
        self._replicas.ahead.on_change = self._wake.set
        self._wake.set()
        self._task = asyncio.create_task(self._run(), name="ends of logs ahead of the metadata")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def apply(self, delta: ImageDelta) -> None:
        """Call it after the replicas have taken the delta over."""
        before = len(self._asked_for)
        for name, deleted in delta.deleted.items():
            self._asked_for.difference_update(
                TopicPartition(name, at) for at in range(len(deleted.partitions))
            )
        for topic in delta.created.values():
            self._note_all(topic)
        for name, changes in delta.partitions.items():
            for index, _, after in changes:
                self._note(TopicPartition(name, index), after)
        if delta.old.brokers != delta.new.brokers:
            self._note_told(delta.new)
        if before or self._asked_for or len(self._replicas.ahead):
            self._wake.set()  # Also for what is ahead: whether it is still is not looked at in a closed log.

    @property
    def _concerned(self) -> set[TopicPartition]:
        return {*self._asked_for, *self._replicas.ahead}

    def _note_all(self, topic: TopicImage) -> None:
        for index, image in enumerate(topic.partitions):
            self._note(TopicPartition(topic.name, index), image)

    def _note(self, partition: TopicPartition, image: PartitionImage) -> None:
        if image.log_epoch is not None:
            self._note_older()
        if image.log_epoch is not None and self._replicas.node_id in image.replicas:
            self._asked_for.add(partition)
        else:
            self._asked_for.discard(partition)

    def _note_told(self, image: ClusterImage) -> None:
        """What all replicas have told at once is settled without a note in its state."""
        if any(each.log_ends for each in image.brokers.values()):
            self._note_older()

    def _note_older(self) -> None:
        if not self._is_older:
            self._is_older = True
            self._on_older()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            told: dict[tuple[TopicId, int], LogEnd] = {}
            for number, partition in enumerate(sorted(self._concerned)[:_TOLD_MAX]):
                if number % _OPENED_PER_TURN == 0:
                    await asyncio.sleep(0)
                found = self._replicas.find(*partition)
                # A log that cannot be read is as if the replica was away.
                if isinstance(found, Partition) and not isinstance(found.role, Offline):
                    told[found.topic_id, partition.partition] = _end_of(found)
            if told:
                self._note_older()
            if told != self._told:
                self._told = told
                self._tell(told)


def _end_of(partition: Partition) -> LogEnd:
    latest = partition.log.state.epochs.latest
    return LogEnd(NEVER_LED if latest is None else latest, partition.log.log_end_offset)
