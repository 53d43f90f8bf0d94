"""The shortest way of a produce request: one like the one before it, to a partition that is known.

Nothing is decoded, looked up or encoded that the last request has shown already.
"""

from riverlog.broker.context import Parts
from riverlog.model.clock import Clock
from riverlog.model.metrics import Counter
from riverlog.replication.partition import Partition
from riverlog.wire.repeated_produce import RepeatedProduce


class RepeatedWrites:
    """A partition that was deleted, handed over or has failed takes nothing, so it is never the wrong one."""

    __slots__ = ("_bytes_in", "_for_all_replicas", "_like", "_partition", "_wall_ms")

    def __init__(
        self,
        like: RepeatedProduce,
        partition: Partition,
        for_all_replicas: bool,
        clock: Clock,
        bytes_in: Counter,
    ) -> None:
        self._like = like
        self._partition = partition
        self._for_all_replicas = for_all_replicas
        self._wall_ms = clock.wall_ms
        self._bytes_in = bytes_in

    def answer(self, frame: memoryview) -> Parts | None:
        """The reply; None, and nothing is written, if the request must be looked at more closely."""
        found = self._like.cut(frame)
        if found is None:
            return None
        correlation_id, records = found
        partition = self._partition
        written = partition.append_plain(records, self._wall_ms(), self._for_all_replicas)
        if isinstance(written, int):
            self._bytes_in.add(len(records))
            return [self._like.reply(correlation_id, written, partition.log.log_start_offset)]
        return None if written is None else [self._like.refusal(correlation_id, written.error)]
