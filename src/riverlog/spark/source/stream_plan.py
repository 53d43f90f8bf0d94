"""Where a stream stands and how far its next batch goes: the driver's side of `spark.readStream`.

Lives as long as the query, in one process. The position is Spark's alone, which keeps it in the checkpoint;
what is remembered here only spares questions or finds what went wrong in between. Offsets that were there
and are gone are data loss: an error, or a warning when the user has allowed it.
"""

import time
from typing import Final
from uuid import UUID, uuid4

from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.model.ids import TopicPartition
from riverlog.spark.source.data_loss import DataLoss, tell_loss
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.places import Offsets
from riverlog.spark.source.plan import Range, Split, Standing, limited, plan_splits
from riverlog.spark.source.positions import (
    Selected,
    earliest,
    find,
    latest,
    option_without,
    require_all,
    select,
)
from riverlog.spark.source.progress_group import ProgressGroup

_LOOK_S: Final = 1.0
"""How often new and deleted topics and partitions are looked for."""


class StreamPlan:
    def __init__(self, options: SourceOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._selected: Selected | None = None
        self._looked_at = 0.0
        self._topic_ids: dict[str, UUID | None] = {}
        self._first_offsets: Offsets = {}
        self._targets: Offsets | None = None
        self._known_ends: Offsets | None = None
        self._last_batch_at: float | None = time.monotonic()
        self._is_restart = True
        self._progress = ProgressGroup(cluster, options.group_id, options.group_prefix, str(uuid4()))

    def initial(self) -> Offsets:
        """Where a new query begins."""
        self._is_restart = False
        # Spark makes a batch of whatever a new query finds, so that one does not wait for more.
        self._last_batch_at = None
        selected = self._look()
        require_all(selected, self._options.selection)
        there = selected.partitions
        return find(self._cluster, self._options, self._options.starting, there, there, "starting")

    def stop_at_present_ends(self) -> None:
        """From now on as if nothing more came."""
        self._targets = self._ends()

    def newest(self) -> Offsets:
        """Where the partitions end, whatever the limits: as the batch before this question was planned."""
        known, self._known_ends = self._known_ends, None
        if known is not None:
            return known
        return self._ends() if self._targets is None else self._targets

    def next_end(self, start: Offsets, rows_min: int | None, rows_max: int | None) -> Offsets:
        """The end of the next batch, which is `start` when there is to be none."""
        self._progress.check(self._standing(start, self._look_sometimes()))
        # Spark asks for more only when the batches up to here are done.
        self.finished(start)
        if self._targets is not None:
            rows_min = None
        self._known_ends = self._ends() if self._targets is None else self._targets
        ends = self._checked(start, self._known_ends)
        begins = {at: start[at] if at in start else self._first(at) for at in ends}
        waiting = sum(max(0, end - begins[at]) for at, end in ends.items())
        if rows_min is not None and waiting < rows_min and not self._has_waited_enough():
            return start
        if waiting:
            self._last_batch_at = time.monotonic()
        if rows_max is None or waiting <= rows_max:
            return ends
        return limited(self._past_gaps(begins, ends), ends, rows_max)

    def _past_gaps(self, begins: Offsets, ends: Offsets) -> Offsets:
        """Where the logs begin now, if that is later: what was deleted fills no batches."""
        behind = [at for at, end in ends.items() if begins[at] < end]
        there = earliest(self._cluster, behind)
        return {**begins, **{at: min(max(begins[at], there[at]), ends[at]) for at in behind}}

    def splits(self, start: Offsets, end: Offsets) -> list[Split]:
        """One or more for each partition that has something between the two.

        What is deleted or made anew after a look is found by the tasks, by the topic's id. Where that is no
        error they would leave out what the new topic has, so it is looked for each time.
        """
        selected = self._look_sometimes() if self._options.fail_on_data_loss else self._look()
        try:
            ranges = self._ranges(selected, start, end)
        except BrokerRefused:
            selected = self._look()
            ranges = self._ranges(selected, start, end)
        splits = plan_splits(
            ranges,
            selected.topic_ids,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )
        standing = self._standing(start, selected)
        self._progress.check(standing)
        return self._progress.introduced(splits, standing)

    def finished(self, offsets: Offsets) -> None:
        """All batches up to these offsets are done."""
        self._progress.reached(offsets, self._topic_ids)
        if self._targets is not None:
            # The query ends soon, and with it this process.
            self._progress.flush()

    def close(self) -> None:
        self._progress.close()

    def _standing(self, start: Offsets, selected: Selected) -> Standing:
        there = {at: offset for at, offset in start.items() if at.topic in selected.topic_ids}
        return Standing(
            there, selected.topic_ids, self._is_restart, loss_is_allowed=not self._options.fail_on_data_loss
        )

    def _has_waited_enough(self) -> bool:
        waits_since = self._last_batch_at
        return waits_since is None or time.monotonic() - waits_since >= self._options.max_trigger_delay_s

    def _ends(self) -> Offsets:
        """Of all partitions that there are."""
        selected = self._look_sometimes()
        committed = self._options.reading.read_committed
        try:
            ends = latest(self._cluster, selected.partitions, read_committed=committed)
        except BrokerRefused:
            # Something was deleted since the last look.
            selected = self._look()
            ends = latest(self._cluster, selected.partitions, read_committed=committed)
        return ends

    def _checked(self, start: Offsets, ends: Offsets) -> Offsets:
        """The ends, when nothing that `start` knows has gone or gone backwards."""
        for at in sorted(start.keys() - ends.keys()):
            self._lost(DataLoss(at, start[at], None, self._why_gone(at)))
        back = [at for at in ends if at in start and ends[at] < start[at]]
        # Where a stream of all records has been, one of committed records has to wait for the others.
        logs = latest(self._cluster, back, read_committed=False)
        for at in back:
            if logs[at] < start[at]:
                self._lost(DataLoss(at, logs[at], start[at], f"the log now ends at {logs[at]}"))
        waiting = {at: start[at] for at in back if logs[at] >= start[at]}
        return {**ends, **waiting}

    def _why_gone(self, at: TopicPartition) -> str:
        option = option_without(self._options.selection, at)
        if option is None:
            return "the partition is not there any more"
        return f"the checkpoint has it, but option {option} does not name it any more; put it back"

    def _first(self, at: TopicPartition) -> int:
        """Where a partition begins that the checkpoint does not know: new ones are read whole."""
        if at not in self._first_offsets:
            self._first_offsets.update(earliest(self._cluster, [at]))
        return self._first_offsets[at]

    def _ranges(self, selected: Selected, start: Offsets, end: Offsets) -> list[Range]:
        there = [at for at in end if at in set(selected.partitions)]
        for at in end:
            begin = start.get(at, 0)
            if at not in there and end[at] > begin:
                self._lost(DataLoss(at, begin, end[at], self._why_gone(at)))
        begins = earliest(self._cluster, there)
        ranges = []
        for at in there:
            begin = start[at] if at in start else self._first(at)
            if begin < begins[at] and begin < end[at]:
                gone = min(begins[at], end[at])
                self._lost(DataLoss(at, begin, gone, f"the log now begins at {begins[at]}"))
            if begin > end[at]:
                # The log was cut back or made anew, and that was allowed: what is there now is all new.
                begin = begins[at]
            ranges.append(Range(at, max(begin, begins[at]), end[at]))
        return ranges

    def _look_sometimes(self) -> Selected:
        if self._selected is None or time.monotonic() - self._looked_at > _LOOK_S:
            return self._look()
        return self._selected

    def _look(self) -> Selected:
        selected = select(self._cluster, self._options.selection)
        self._looked_at = time.monotonic()
        self._selected = selected
        for topic, topic_id in selected.topic_ids.items():
            known = self._topic_ids.setdefault(topic, topic_id)
            if known != topic_id:
                self._topic_ids[topic] = topic_id
                self._made_anew(topic, selected)
        return selected

    def _made_anew(self, topic: str, selected: Selected) -> None:
        at = next(at for at in selected.partitions if at.topic == topic)
        self._first_offsets = {at: offset for at, offset in self._first_offsets.items() if at.topic != topic}
        self._lost(DataLoss(at, 0, None, "the topic was deleted and made anew"))

    def _lost(self, loss: DataLoss) -> None:
        tell_loss(loss, is_allowed=not self._options.fail_on_data_loss)
