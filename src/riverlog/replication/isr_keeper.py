"""Keeps the ISRs of the partitions that this broker leads: decides, writes, and tries again.

One write of a partition is under way at a time, and few of all; each is decided anew from what is known when
it is made. While it is under way those who come in count for the watermark already, and those who leave count
still (KIP-497): until it is known which ISR is in force, a leader could be elected from either. Not here: who
is in sync (`leading.isr`), and the step itself (`metadata.isr_writes`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.isr_writes import RETRY_MAX_S, RETRY_MIN_S, IsrWrite
from riverlog.model.clock import Clock
from riverlog.model.metrics import Metrics
from riverlog.replication.leading.isr import IsrChange, IsrRules
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Leader

_logger = logging.getLogger(__name__)
_IN_FLIGHT_MAX: Final = 64


class IsrKeeper:
    def __init__(
        self,
        replicas: ReplicaSet,
        write: Callable[[IsrWrite], Awaitable[bool]],
        see: Callable[[Partition], Awaitable[None]],
        rules: IsrRules,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        """`write` returns whether it was carried out; after `see` the image shows the partition's state as it
        is. `jitter` gives numbers from 0 up to 1."""
        self._replicas = replicas
        self._write = write
        self._see = see
        self._rules = rules
        self._clock = clock
        self._jitter = jitter
        self._shrinks = metrics.counter("riverlog_isr_shrinks_total")
        self._expands = metrics.counter("riverlog_isr_expands_total")
        self._wanted: dict[Partition, None] = {}
        self._failures: dict[Partition, int] = {}
        """How often in a row a write was not carried out, of those that are tried again."""
        self._retries: dict[Partition, asyncio.TimerHandle] = {}
        self._writing: dict[Partition, asyncio.Task[None]] = {}
        self._is_closed = False
        replicas.standing.on_candidate = self.ask

    def look(self) -> None:
        """At all partitions that are led here: who has been behind for too long?"""
        now_s = self._clock.monotonic_s()
        for partition in self._replicas:
            if partition.wanted_isr(now_s, self._rules) is not None:
                self.ask(partition)

    def apply(self, delta: ImageDelta) -> None:
        """Who could not come in before may be able to now; call after the replicas have taken it over."""
        if delta.old.brokers != delta.new.brokers:
            self.look()

    def ask(self, partition: Partition) -> None:
        """The ISR of a partition may have to change."""
        if not self._is_closed and partition not in self._retries:
            self._wanted[partition] = None
            self._go_on()

    async def close(self) -> None:
        self._is_closed = True
        self._replicas.standing.on_candidate = None
        self._wanted.clear()
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        tasks = list(self._writing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _go_on(self) -> None:
        for partition in list(self._wanted):
            if len(self._writing) >= _IN_FLIGHT_MAX:
                return
            if partition not in self._writing:
                del self._wanted[partition]
                self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        change = partition.wanted_isr(self._clock.monotonic_s(), self._rules)
        image = self._replicas.image_of(partition)
        if change is None or image is None:
            self._failures.pop(partition, None)
            return
        partition.led.propose_isr(change)
        min_isr = partition.log.config.min_insync_replicas
        brokers = self._replicas.standing.brokers
        told = {node_id: brokers[node_id].registration_version for node_id, _ in change.joining}
        write = IsrWrite(
            partition.topic_partition, partition.topic_id, image, change.isr, change.joining, min_isr, told
        )
        self._writing[partition] = asyncio.create_task(
            self._carry_out(partition, change, write), name=f"ISR of {partition.topic_partition}"
        )

    async def _carry_out(self, partition: Partition, change: IsrChange, write: IsrWrite) -> None:
        is_written = False
        try:
            is_written = await self._write(write)
            if not is_written:
                partition.withdraw_isr(write.image.partition_epoch)
            await self._see(partition)
        finally:
            del self._writing[partition]
            self._after(partition, change, is_written)

    def _after(self, partition: Partition, change: IsrChange, is_written: bool) -> None:
        if self._is_closed:
            return
        if is_written:
            self._failures.pop(partition, None)
            self._shrinks.add(bool(change.leaving))
            self._expands.add(bool(change.joining))
            _logger.info("The ISR of %s is now %s", partition.topic_partition, list(change.isr))
            self._wanted[partition] = None  # Others may have caught up or fallen behind meanwhile.
        elif isinstance(partition.role, Leader):
            self._wanted.pop(partition, None)
            failures = self._failures[partition] = self._failures.get(partition, 0) + 1
            delay_s = min(RETRY_MIN_S * 2 ** min(failures - 1, 10), RETRY_MAX_S) * (0.5 + self._jitter())
            loop = asyncio.get_running_loop()
            self._retries[partition] = loop.call_later(delay_s, self._try_again, partition)
        else:
            self._failures.pop(partition, None)
        self._go_on()

    def _try_again(self, partition: Partition) -> None:
        del self._retries[partition]
        self.ask(partition)
