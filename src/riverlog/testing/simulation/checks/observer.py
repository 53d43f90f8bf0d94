"""Looks at every node after each of its steps, when it has recovered, and before it ends.

What the partitions say of themselves (their four bounds) is checked at once (I3); what they commit goes into
the ledger, read from the files. A look costs little while nothing has changed.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import TopicId
from riverlog.records.batch import crc_is_valid
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Role
from riverlog.testing.simulation.checks.ledger import Ledger, PartitionLedger
from riverlog.testing.simulation.checks.log_files import LogCursor, base_of, batches, segment_bases
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation

_NOW_AND_THEN_S: Final = 5.0
_LONG_RETENTION_MS: Final = 24 * 60 * 60 * 1000


class Bounds(NamedTuple):
    log_start: int
    last_stable: int
    high_watermark: int
    log_end: int


class PartitionView:
    """What was last seen of a partition in one life of a node."""

    __slots__ = ("_bounds", "cursor", "high_watermark", "ledger", "log_end", "log_start", "role")

    def __init__(self, ledger: PartitionLedger, cursor: LogCursor) -> None:
        self.ledger, self.cursor = ledger, cursor
        self.bounds = Bounds(0, 0, 0, 0)
        self.role: Role | None = None

    @property
    def bounds(self) -> Bounds:
        return self._bounds

    @bounds.setter
    def bounds(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.log_start, _, self.high_watermark, self.log_end = bounds


class NodeObserver:
    """Of one node, over all its lives."""

    def __init__(
        self,
        node: SimulatedNode,
        ledger: Ledger,
        report: Callable[[Violation], None],
        now_s: Callable[[], float],
    ) -> None:
        self._node, self._ledger, self._report, self._now_s = node, ledger, report, now_s
        self._quiet_s = _NOW_AND_THEN_S
        self._views: dict[tuple[TopicId, int], PartitionView] = {}
        self._seen: dict[Partition, PartitionView] = {}
        """The same, by the partition itself: what most looks need."""
        self._closed_after = -1
        """How often what is known of closed logs had changed at the last look at them."""
        self._after_power_cut: set[PartitionLedger] = set()
        """What has not been compared with its files since."""
        self.on_look: list[Callable[[SimulatedNode, ObservedNode], None]] = []
        """Further checks, after the ledger has what is new."""
        self.on_recovered: list[Callable[[SimulatedNode, ObservedNode], None]] = []
        """When it is about to serve, before its files are compared with the ledger."""
        self.on_quiet: list[Callable[[SimulatedNode, ObservedNode], None]] = []
        """Now and then, and when nothing goes on any more."""
        self.on_stopped: list[Callable[[SimulatedNode, ObservedNode], None]] = []
        """When it has stopped by itself, before its process ends."""
        node.on_recovered = self._recovered
        node.on_stopped = self._stopped

    def after_step(self) -> None:
        """Most steps change nothing, which is to be seen quickly."""
        parts = self._node.node
        if parts is None:
            return
        try:
            seen = self._seen
            for partition in parts.replicas._partitions.values():
                view, log = seen.get(partition), partition.log.state
                if (
                    view is None
                    or view.log_end != log.log_end_offset
                    or view.high_watermark != log.high_watermark
                    or view.log_start != log.log_start_offset
                    or view.role is not partition._role
                ):
                    self._look_at(partition)
            if parts.directories.changes != self._closed_after:
                self._closed_after = parts.directories.changes
                self._look_at_closed(parts)
            for check in self.on_look:
                check(self._node, parts)
            if self._now_s() >= self._quiet_s:
                self._quiet_s = self._now_s() + _NOW_AND_THEN_S
                for check in self.on_quiet:
                    check(self._node, parts)
        except Violation as violation:
            self._report(violation)

    def _look_at_closed(self, parts: ObservedNode) -> None:
        """Of a closed log is known what was there when it was open, but for what retention takes (I3)."""
        for at, _, facts in parts.closed_logs():
            view = None if facts.topic_id is None else self._views.get((facts.topic_id, at.partition))
            if view is None:
                continue
            is_as_it_was = (facts.high_watermark, facts.log_end_offset) == view.bounds[2:]
            if not is_as_it_was or facts.log_start_offset < view.bounds[0]:
                raise Violation("I3", f"{view.ledger} is closed, {view.bounds} before and {facts} now")
            note_log_start(view.ledger, facts.log_start_offset, parts.replicas.config_of(at.topic))
            view.bounds = view.bounds._replace(log_start=facts.log_start_offset)

    def look_at_quiet(self) -> None:
        if (parts := self._node.node) is not None:
            self._check(self.on_quiet, parts)

    def _stopped(self, node: SimulatedNode, parts: ObservedNode) -> None:
        self._check(self.on_stopped, parts)

    def _check(
        self, checks: list[Callable[[SimulatedNode, ObservedNode], None]], parts: ObservedNode
    ) -> None:
        try:
            for check in checks:
                check(self._node, parts)
        except Violation as violation:
            self._report(violation)

    def note_power_cut(self) -> None:
        self._after_power_cut.update(self._ledger.partitions.values())

    def forget_disk(self) -> None:
        """What was on it is gone."""
        raise NotImplementedError("a node by itself keeps its disk")

    def _look_at(self, partition: Partition) -> None:
        """What has changed in it since the last look."""
        log = partition.log
        view = self._seen[partition] = self._views.get(
            (partition.topic_id, partition.topic_partition[1])
        ) or self._new_view(partition)
        bounds = Bounds(log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset)
        if not bounds[0] <= bounds[1] <= bounds[2] <= bounds[3]:
            raise Violation("I3", f"{view.ledger}: {bounds}")
        if bounds.high_watermark < view.bounds.high_watermark:
            raise Violation("I3", f"{view.ledger}: the high watermark goes back, {view.bounds} to {bounds}")
        view.bounds, view.role = bounds, partition.role
        ledger = view.ledger
        note_log_start(ledger, bounds.log_start, log.config)
        if bounds.log_start > ledger.end:
            first_offset = base_of(self._node.disk, view.cursor.directory, bounds.log_start)
            self._ledger.skip(ledger, bounds.log_start, first_offset)
        if bounds.high_watermark > ledger.end:
            for header, data in view.cursor.read(ledger.end, bounds.high_watermark):
                self._ledger.commit(ledger, header, data)
            if ledger.end != bounds.high_watermark:
                what = f"{ledger}: the watermark is {bounds.high_watermark}, the files end at {ledger.end}"
                raise Violation("I10", what)
        if log.config.acks_fsync:
            ledger.durable_end = bounds.high_watermark

    def _new_view(self, partition: Partition) -> PartitionView:
        topic, index = partition.topic_partition
        ledger = self._ledger.of(topic, partition.topic_id, index)
        view = PartitionView(ledger, LogCursor(self._node.disk, partition.log.directory))
        self._views[partition.topic_id, index] = view
        return view

    def _recovered(self, node: SimulatedNode, parts: ObservedNode) -> None:
        """Before anybody is served: the files hold a valid prefix with everything that was promised."""
        try:
            self._check_recovered(node, parts)
        except Violation as violation:
            self._report(violation)

    def _check_recovered(self, node: SimulatedNode, parts: ObservedNode) -> None:
        self._views.clear()
        self._seen.clear()
        for check in self.on_recovered:
            check(node, parts)
        for ledger in self._ledger.partitions.values():
            if ledger.end > 0 and is_replica(node, parts, ledger):
                self._compare(node, parts, ledger)

    def _compare(self, node: SimulatedNode, parts: ObservedNode, ledger: PartitionLedger) -> None:
        directory = next((each for each in parts.log_directories_of(ledger.topic, ledger.index)), None)
        if directory is None and parts.directories._unusable:
            return  # It is in a directory that the broker goes on without, and is compared when that is back.
        lost_power = ledger in self._after_power_cut
        self._after_power_cut.discard(ledger)
        found = list(batches(node.disk, directory)) if directory is not None else []
        for header, data in found:
            if not crc_is_valid(data, 0, header):
                raise Violation(
                    "I10", f"{ledger}: a batch at {header.base_offset} with a wrong checksum is kept"
                )
            if header.base_offset < ledger.end and not ledger.is_the_same(header, memoryview(data)):
                raise Violation("I2", f"{ledger}: after a restart offset {header.base_offset} is another")
        bases = segment_bases(node.disk, directory) if directory is not None else []
        if bases and ledger.is_deleted_from:
            # What retention takes from a log that nobody has open is not seen when it goes.
            ledger.start = max(ledger.start, min(bases[0], ledger.end))
        end = max(bases[-1] if bases else 0, found[-1][0].next_offset if found else 0)
        promised = ledger.durable_end if lost_power else ledger.end
        if end < promised and promised > ledger.start:
            raise Violation(
                "I1",
                f"{ledger}: after {'a power cut' if lost_power else 'a crash'} the log ends at {end}, "
                f"{promised} was promised",
            )
        if not ledger.is_compacted:
            self._compare_offsets(ledger, {header.base_offset for header, _ in found}, min(promised, end))
        if end < ledger.end:
            self._ledger.cut(ledger, end)

    def _compare_offsets(self, ledger: PartitionLedger, found: set[int], end: int) -> None:
        for batch in ledger.batches:
            if ledger.start <= batch.base_offset < end and batch.base_offset not in found:
                raise Violation("I1", f"{ledger}: after a restart offset {batch.base_offset} is gone")


def note_log_start(ledger: PartitionLedger, log_start: int, config: LogConfig) -> None:
    """Retention takes nothing from a log that has none (I1)."""
    ledger.is_deleted_from |= _may_delete(config)
    if log_start > ledger.start:
        if not _may_delete(config):
            what = f"records from {ledger.start} to {log_start} are deleted, which are to be kept"
            raise Violation("I1", f"{ledger}: {what}")
        ledger.start = log_start
    ledger.is_compacted |= config.is_compacted


def _may_delete(config: LogConfig) -> bool:
    """Whether retention may take anything away within the time of a run, whatever the clocks do."""
    retention_ms = config.retention_ms
    is_short = retention_ms is not None and retention_ms < _LONG_RETENTION_MS
    return config.deletes_old_segments and (is_short or config.retention_bytes is not None)


def is_replica(node: SimulatedNode, parts: ObservedNode, ledger: PartitionLedger) -> bool:
    """Whether the node is to have the log, as it knows itself."""
    topic = parts.image.topics.get(ledger.topic)
    if topic is None or topic.topic_id != ledger.topic_id or ledger.index >= len(topic.partitions):
        return False
    return node.node_id in topic.partitions[ledger.index].replicas
