"""Looks at the nodes of a cluster, whose partitions have several replicas, after each of their steps.

One leader for each epoch, whose log holds everything that was committed when it begins to lead (I1, I8);
what a leader commits extends the ledger, and what any replica takes for committed is what stands in it (I2,
I7). The watermark of a replica goes back only where a truncation was counted, after an unclean election (I3,
I9). What a replica had written is there after a restart (I10).

What may be lost is narrow: an election that the store calls unclean cuts the ledger to what its leader has;
nothing else does. What leaders of epochs before that still commit among themselves is lost with it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.ids import NodeId
from riverlog.records.batch import crc_is_valid
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.testing.simulation.checks.cuts import check_cut
from riverlog.testing.simulation.checks.holding import Holding, Holdings
from riverlog.testing.simulation.checks.ledger import Ledger, PartitionLedger
from riverlog.testing.simulation.checks.log_files import LogCursor, base_of, batches
from riverlog.testing.simulation.checks.observer import (
    Bounds,
    NodeObserver,
    PartitionView,
    is_replica,
    note_log_start,
)
from riverlog.testing.simulation.checks.states import PartitionState, PartitionStates
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
from riverlog.testing.simulation.violations import Violation

_TRUNCATED: Final = "riverlog_truncated_below_hw_total"


@dataclass(slots=True)
class Replicas:
    """What is known of all nodes together."""

    ledger: Ledger
    states: PartitionStates
    holdings: Holdings
    counts: "Counter[str]"
    leaders: dict[tuple[UUID, int, int], tuple[str, int]] = field(default_factory=dict)
    """Who led in which epoch, in which of its lives."""
    on_committed: list[Callable[[PartitionLedger], None]] = field(default_factory=list)
    """Hear of every move of the watermark of a leader."""

    def __post_init__(self) -> None:
        self.states.on_written.append(self._note_elected)

    def _note_elected(self, state: PartitionState) -> None:
        ledger = self.ledger.partitions.get((state.topic_id, state.index))
        if ledger is not None and state.node.unclean_epoch is not None:
            ledger.unclean_elected = max(ledger.unclean_elected, state.node.unclean_epoch)


class ReplicaView(PartitionView):
    __slots__ = ("holding", "written")

    def __init__(self, ledger: PartitionLedger, cursor: LogCursor, holding: Holding) -> None:
        super().__init__(ledger, cursor)
        self.holding = holding
        self.written = 0
        """Up to where its appends as a leader were noted."""


class _Left(NamedTuple):
    """What a life has left of a log."""

    log_end: int
    flushed: int
    held: int


class ReplicaObserver(NodeObserver):
    def __init__(
        self,
        node: SimulatedNode,
        replicas: Replicas,
        report: Callable[[Violation], None],
        now_s: Callable[[], float],
        has_lease: Callable[[], bool],
    ) -> None:
        """`has_lease`: whether the ensemble has heard of the node's session lately."""
        super().__init__(node, replicas.ledger, report, now_s)
        self._replicas = replicas
        self._has_lease = has_lease
        self._left: dict[PartitionLedger, _Left] = {}
        """Of each log, as it was when the node last ended, or was found since."""
        self._boots = node.boots
        self._fallen = 0
        """How far watermarks have gone back in this life."""
        node.on_ending = self._note_end
        replicas.ledger.on_cut.append(self._on_cut)

    def note_power_cut(self) -> None:
        """Seen by `SimulatedNode.boots`."""

    # While it runs.

    def _look_at(self, partition: Partition) -> None:
        log = partition.log
        view = self._view_of(partition)
        bounds = Bounds(log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset)
        before, view.bounds = view.bounds, bounds
        if not bounds[0] <= bounds[1] <= bounds[2] <= bounds[3]:
            raise Violation("I3", f"{self._where(view)}: {bounds}")
        if log.is_online:
            if bounds.log_end < before.log_end:
                self._note_truncated(view, before, bounds)
            check_cut(partition, self._node.disk, self._where(view))
            note_log_start(view.ledger, bounds.log_start, log.config)
        role, was = partition.role, view.role
        view.role = role
        if isinstance(role, Leader):
            if role != was:
                self._begin_to_lead(view, partition, role.epoch)
            if bounds.log_end > view.written:
                self._note_appended(view, bounds.log_end)
            if bounds.high_watermark > before.high_watermark:
                self._commit(view, bounds, role.epoch)
        elif bounds.high_watermark > before.high_watermark and (was or view.ledger.unclean_epoch < 0):
            # What a restart finds may be from before an unclean election.
            self._follow(view, bounds, partition.leader_epoch)

    def _view_of(self, partition: Partition) -> ReplicaView:
        index = partition.topic_partition[1]
        found = self._seen.get(partition) or self._views.get((partition.topic_id, index))
        if found is None:
            topic = partition.topic_partition[0]
            ledger = self._ledger.of(topic, partition.topic_id, index)
            cursor = LogCursor(self._node.disk, partition.log.directory)
            found = ReplicaView(ledger, cursor, self._replicas.holdings.of(self._node, ledger))
            self._views[partition.topic_id, index] = found
        self._seen[partition] = found
        assert isinstance(found, ReplicaView)
        return found

    def _where(self, view: ReplicaView) -> str:
        return f"{view.ledger} at {self._node.name}"

    def _note_truncated(self, view: ReplicaView, before: Bounds, after: Bounds) -> None:
        self._replicas.counts["truncations"] += 1
        self._replicas.counts["offsets truncated"] += before.log_end - after.log_end
        view.holding.forget(after.log_end)
        view.written = min(view.written, after.log_end)
        view.cursor = LogCursor(self._node.disk, view.cursor.directory)
        if after.high_watermark >= before.high_watermark:
            return
        what = f"{self._where(view)}: the high watermark goes back, {before} to {after}"
        state = self._replicas.states.present.get((view.ledger.topic_id, view.ledger.index))
        if state is None or state.node.unclean_epoch is None:
            raise Violation("I9", f"{what}, and no election was unclean")
        parts = self._node.node
        assert parts is not None
        counted = parts.metrics.counter(_TRUNCATED).value
        # What is below the log start was deleted before; a cut within its batch takes all of that.
        self._fallen += before.high_watermark - max(after.high_watermark, before.log_start)
        if counted < self._fallen:
            raise Violation("I9", f"{what}, and nobody has counted it")
        self._replicas.counts["truncations below the watermark"] += 1

    def _begin_to_lead(self, view: ReplicaView, partition: Partition, epoch: int) -> None:
        ledger, replicas = view.ledger, self._replicas
        me = (self._node.name, self._node.life.number)
        leader = replicas.leaders.setdefault((ledger.topic_id, ledger.index, epoch), me)
        if leader != me:
            raise Violation("I8", f"{ledger}: {leader} and {me} lead in epoch {epoch}")
        elected = replicas.states.elected(ledger.topic_id, ledger.index, epoch)
        if elected is None or elected.leader != self._node.node_id:
            raise Violation("I8", f"{ledger}: {me} leads in epoch {epoch}, for which {elected} was elected")
        epochs = partition.log.state.epochs
        view.written = epochs.latest_start if epochs.latest == epoch else view.bounds.log_end
        unclean = elected.unclean_epoch
        if unclean is not None and unclean > ledger.unclean_epoch:
            ledger.unclean_epoch = unclean
            # It may have appended already, to where records stood that were deleted.
            held = min(view.holding.look(), view.written)
            if ledger.is_compacted:
                held = _with_compacted(ledger, held, view.written, epochs)
            if held < ledger.end:
                replicas.counts["committed batches lost by unclean elections"] += 1
                self._ledger.cut(ledger, held)
            if view.bounds.high_watermark > ledger.end:
                # What another unclean election took, and this replica had for committed before that.
                self._commit(view, view.bounds, epoch)
            return
        until = _end_before(ledger, epoch)
        held = min(view.holding.look(until), view.written)
        if held < until:
            what = f"{me} is elected for epoch {epoch}, has what is committed up to {held}, not to {until}"
            raise Violation("I1", f"{ledger}: {what}")

    def _note_appended(self, view: ReplicaView, log_end: int) -> None:
        ledger = view.ledger
        is_sure = self._has_lease() or not self._replicas.states.is_replaceable(
            ledger.topic_id, ledger.index, NodeId(self._node.node_id)
        )
        for header, _ in view.cursor.read(view.written, log_end):
            ledger.written[header.base_offset, header.crc] = is_sure
        view.written = log_end

    def _commit(self, view: ReplicaView, bounds: Bounds, epoch: int) -> None:
        ledger = view.ledger
        if epoch < ledger.unclean_epoch:
            cursor = LogCursor(self._node.disk, view.cursor.directory)
            for header, data in cursor.read(ledger.start, bounds.high_watermark):
                if not ledger.is_the_same(header, memoryview(data)):
                    self._ledger.lose(ledger, header, data)
            return
        if bounds.log_start > ledger.end:
            first_offset = base_of(self._node.disk, view.cursor.directory, bounds.log_start)
            self._ledger.skip(ledger, bounds.log_start, first_offset)
        self._check_held(view, min(bounds.high_watermark, ledger.end))
        if bounds.high_watermark <= ledger.end:
            return
        cursor = LogCursor(self._node.disk, view.cursor.directory)
        for header, data in cursor.read(ledger.end, bounds.high_watermark):
            self._ledger.commit(ledger, header, data)
        if ledger.end != bounds.high_watermark:
            what = f"the watermark is {bounds.high_watermark}, the files end at {ledger.end}"
            raise Violation("I10", f"{self._where(view)}: {what}")
        for listener in self._replicas.on_committed:
            listener(ledger)

    def _follow(self, view: ReplicaView, bounds: Bounds, epoch: int) -> None:
        ledger = view.ledger
        if epoch < ledger.unclean_epoch:
            return
        if bounds.high_watermark > ledger.end:
            what = f"the watermark of a follower is {bounds.high_watermark}, committed is {ledger.end}"
            raise Violation("I4", f"{self._where(view)}: {what}")
        self._check_held(view, bounds.high_watermark)

    def _check_held(self, view: ReplicaView, until: int) -> None:
        held = view.holding.look(until)
        if held < until:
            what = f"up to {until} is taken for committed; from {held} on it is not what was committed"
            raise Violation("I7", f"{self._where(view)}: {what}")

    # Between its lives.

    def _note_end(self, node: SimulatedNode) -> None:
        """Its process ends now, however."""
        for partition, view in self._seen.items():
            log, ledger = partition.log, view.ledger
            if partition.topic_id != ledger.topic_id:
                continue
            assert isinstance(view, ReplicaView)
            is_online = log.is_online
            log_end = log.log_end_offset if is_online else 0
            flushed = log.flushed_offset if is_online and log.config.acks_fsync else 0
            self._left[ledger] = _Left(log_end, flushed, min(view.holding.end, log_end))
        self._seen.clear()  # If it dies in its next start, too, what was left is what it left here.

    def _on_cut(self, ledger: PartitionLedger) -> None:
        left = self._left.get(ledger)
        if left is not None:
            self._left[ledger] = left._replace(held=min(left.held, ledger.end))

    def forget_disk(self) -> None:
        """What was on it is gone."""
        self._left.clear()
        self._replicas.holdings.forget_all_of(self._node)

    def _check_recovered(self, node: SimulatedNode, parts: ObservedNode) -> None:
        self._views.clear()
        self._seen.clear()
        self._fallen = 0
        for check in self.on_recovered:
            check(node, parts)
        lost_power, self._boots = node.boots != self._boots, node.boots
        self._replicas.holdings.forget_all_of(node)
        for ledger, left in list(self._left.items()):
            if is_replica(node, parts, ledger):
                self._compare_left(node, parts, ledger, left, lost_power=lost_power)

    def _compare_left(
        self,
        node: SimulatedNode,
        parts: ObservedNode,
        ledger: PartitionLedger,
        left: _Left,
        *,
        lost_power: bool,
    ) -> None:
        holding = self._replicas.holdings.of(node, ledger)
        directory = next(iter(parts.log_directories_of(ledger.topic, ledger.index)), None)
        if directory is None and parts.directories._unusable:
            return
        for header, data in batches(node.disk, directory) if directory is not None else ():
            if not crc_is_valid(data, 0, header):
                what = f"a batch at {header.base_offset} with a wrong checksum is kept"
                raise Violation("I10", f"{ledger} at {node.name}: {what}")
        promised = left.flushed if lost_power else left.log_end
        how = "a power cut" if lost_power else "a crash"
        end = holding.files_end()
        if end < promised and promised > ledger.start:
            what = f"after {how} the log ends at {end}, {promised} was written"
            raise Violation("I10", f"{ledger} at {node.name}: {what}")
        until = min(left.held, promised, ledger.end)
        held = holding.look(until)
        if held < until:
            what = f"after {how} it has what was committed up to {held}, {until} was there before"
            raise Violation("I10", f"{ledger} at {node.name}: {what}")
        self._left[ledger] = _Left(end, min(left.flushed, end), min(left.held, end))
        state = self._replicas.states.present.get((ledger.topic_id, ledger.index))
        if lost_power and end < ledger.end and state is not None and len(state.replicas) == 1:
            # Nobody else has it, and a question is answered before the log is opened, which cuts the ledger.
            ledger.told_ends.clear()


def _with_compacted(ledger: PartitionLedger, held: int, written: int, epochs: LeaderEpochs) -> int:
    """A leader's files may lack what it has compacted away, and what comes next in them may be another than
    in the ledger. It had all of that which stood at offsets that it has under the same leader epoch."""
    for batch in ledger.batches[ledger.index_at(held) :]:
        next_offset = batch.header.next_offset
        if next_offset > written or epochs.epoch_for(batch.base_offset) != batch.header.leader_epoch:
            break
        held = next_offset
    return held


def _end_before(ledger: PartitionLedger, epoch: int) -> int:
    """Up to where the leader of this epoch must have everything: what came later was committed by others."""
    end = ledger.end
    for batch in reversed(ledger.batches):
        if batch.header.leader_epoch <= epoch:
            return end
        end = batch.base_offset
    return end
