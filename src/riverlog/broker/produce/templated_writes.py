"""The shortest way of a produce request: one like the one before it, to a partition that is known.

Nothing is decoded, looked up or encoded that the last request has shown already.
"""

from riverlog.broker.exchange.context import Parts
from riverlog.model.clock import Clock
from riverlog.model.metrics import Counter
from riverlog.replication.partition import Partition
from riverlog.wire.by_hand.produce_template import ProduceTemplate


class TemplatedWrites:
    """A partition that was deleted, handed over or has failed takes nothing, so it is never the wrong one.
    Nor does one with other replicas: there a reply may have to wait, and the request is decoded as usual."""

    __slots__ = (
        "_bytes_in",
        "_for_all_replicas",
        "_template",
        "_wall_ms",
        "client_id",
        "match",
        "partition",
        "version",
    )

    def __init__(
        self,
        template: ProduceTemplate,
        client_id: str | None,
        partition: Partition,
        for_all_replicas: bool,
        clock: Clock,
        bytes_in: Counter,
    ) -> None:
        self.client_id = client_id
        self.version = template.version
        self.match = template.match
        self.partition = partition
        self._template = template
        self._for_all_replicas = for_all_replicas
        self._wall_ms = clock.wall_ms
        self._bytes_in = bytes_in

    def answer(self, correlation_id: int, records: memoryview) -> Parts | None:
        """The reply; None, and nothing is written, if the request must be looked at more closely."""
        partition, wall_ms = self.partition, self._wall_ms
        written = partition.append_alone(records, wall_ms(), self._for_all_replicas)
        if isinstance(written, int):
            self._bytes_in.value += len(records)
            log_start_offset = partition.log.state.log_start_offset
            return [self._template.encode_reply(correlation_id, written, log_start_offset)]
        return None if written is None else [self._template.encode_error(correlation_id, written.error)]
