"""The sink of `format("riverlog")` with points at which a test stops it or makes a task fail.

Only what lies between the steps is added: every step is that of the sink itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from riverlog.client.cluster import Cluster
from riverlog.spark.data_source import RiverlogDataSource
from riverlog.spark.each_batch import ForeachBatchWriter
from riverlog.spark.sink.batch_epochs import BatchEpoch, EpochWriter, batch_epoch_in
from riverlog.spark.sink.columns import RowBatch
from riverlog.spark.sink.commit import EpochCommit
from riverlog.spark.sink.decisions import Written
from riverlog.spark.sink.options import SinkOptions, sink_options
from riverlog.spark.sink.tasks import Task, TaskWrote
from riverlog.spark.sink.writers import StreamWriter
from tests.delivery.spark_points import Points

FORMAT = "riverlog_pausing"
WRITING, WRITTEN, COMMITTING, DECIDED, ONE_ENDED = "writing", "written", "committing", "decided", "one-ended"
RAISING = "raising"


class PausingDataSource(RiverlogDataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> "PausingStreamWriter":
        pauses, options = Pauses.taken_from(self.options)
        return PausingStreamWriter(sink_options(options, is_stream=True), pauses)

    def writer(self, schema: StructType, overwrite: bool) -> "PausingEpochWriter":
        pauses, options = Pauses.taken_from(self.options)
        epoch, others = batch_epoch_in(options)
        assert epoch is not None, "only foreachBatch writes batches here"
        return PausingEpochWriter(sink_options(others, is_stream=False), epoch, pauses)


class PausingForeachBatchWriter(ForeachBatchWriter):
    format_name = FORMAT

    def __init__(self, options: Mapping[str, str], pausing: Mapping[str, str]) -> None:
        super().__init__(options)
        self._options.update(pausing)


@dataclass(frozen=True, slots=True)
class Pauses:
    """What the writers of streams and of batches do alike."""

    points: Points
    label: str

    @classmethod
    def taken_from(cls, options: Mapping[str, str]) -> "tuple[Pauses, dict[str, str]]":
        others = {key: value for key, value in options.items() if key.lower() not in ("points", "label")}
        return cls(Points(Path(options["points"])), options["label"]), others

    def write(
        self,
        task: Task,
        rows: Iterator[RowBatch],
        write: Callable[[Iterator[RowBatch]], WriterCommitMessage],
    ) -> WriterCommitMessage:
        who = {
            "query": self.label,
            "epoch": task.epoch,
            "partition": task.partition,
            "attempt": task.attempt,
        }
        self.points.note("attempt", who)
        told = write(self._stopped(rows, who))
        assert isinstance(told, TaskWrote)
        if task.partition == 0 and not told.is_skipped:
            self.points.reach(WRITTEN, **who)
            if task.attempt == 0:
                # Behind all that the sink does: as when the executor is lost then.
                self.points.fail(RAISING, **who)
        return told

    def before_commit(self, messages: Sequence[WriterCommitMessage | None], epoch: int) -> None:
        if not any(isinstance(each, TaskWrote) and each.is_skipped for each in messages):
            self.points.reach(COMMITTING, query=self.label, epoch=epoch)

    def commit_with(self, commit: EpochCommit) -> EpochCommit:
        pausing = cast(PausingCommit, commit)
        pausing.points, pausing.label = self.points, self.label
        return pausing

    def _stopped(self, rows: Iterator[RowBatch], who: dict[str, object]) -> Iterator[RowBatch]:
        for batch in rows:
            yield batch
            # Now the batch has been handed to the connection.
            if who["partition"] == 0:
                self.points.reach(WRITING, **who)
            elif who["attempt"] == 0:
                self.points.fail(RAISING, **who)


class PausingCommit(EpochCommit):
    """Stopped between the decision and the end of the first, or of the second, transaction."""

    points: Points
    label: str

    def finish(self, decided: Sequence[Written]) -> None:
        newest = self.decider.log.newest
        if newest is not None and newest.epoch == self.epoch:
            self._reach(DECIDED)
            if self.points.is_closed(ONE_ENDED):
                super().finish(decided[:1])
                self._reach(ONE_ENDED)
        super().finish(decided)

    def _reach(self, point: str) -> None:
        self.points.reach(point, query=self.label, epoch=self.epoch)


class PausingStreamWriter(StreamWriter):
    commit_class = PausingCommit

    def __init__(self, options: SinkOptions, pauses: Pauses) -> None:
        super().__init__(options)
        self._pauses = pauses

    def write(self, iterator: Iterator[RowBatch]) -> WriterCommitMessage:
        return self._pauses.write(Task.of_stream(), iterator, super().write)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._pauses.before_commit(messages, batchId)
        super().commit(messages, batchId)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote], epoch: int) -> EpochCommit:
        return self._pauses.commit_with(super()._commit_of(cluster, told, epoch))


class PausingEpochWriter(EpochWriter):
    commit_class = PausingCommit

    def __init__(self, options: SinkOptions, epoch: BatchEpoch, pauses: Pauses) -> None:
        super().__init__(options, epoch)
        self._pauses = pauses

    def write(self, iterator: Iterator[RowBatch]) -> WriterCommitMessage:
        return self._pauses.write(self.task(), iterator, super().write)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._pauses.before_commit(messages, self._epoch.number)
        super().commit(messages)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote]) -> EpochCommit:
        return self._pauses.commit_with(super()._commit_of(cluster, told))
