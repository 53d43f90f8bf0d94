"""The sink of `format("riverlog")` with points at which a test stops it or makes a task fail.

Only what lies between the steps is added: every step is that of the sink itself.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from riverlog.client.cluster import Cluster
from riverlog.spark.data_source import RiverlogDataSource
from riverlog.spark.sink.columns import RowBatch
from riverlog.spark.sink.commit import EpochCommit
from riverlog.spark.sink.decisions import Written
from riverlog.spark.sink.options import SinkOptions, sink_options
from riverlog.spark.sink.task_writer import Task, TaskWrote
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
        points = Points(Path(self.options["points"]))
        return PausingStreamWriter(sink_options(self.options, is_stream=True), points, self.options["label"])


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

    def __init__(self, options: SinkOptions, points: Points, label: str) -> None:
        super().__init__(options)
        self._points = points
        self._label = label

    def write(self, iterator: Iterator[RowBatch]) -> WriterCommitMessage:
        task = Task.of_stream()
        who = {
            "query": self._label,
            "epoch": task.epoch,
            "partition": task.partition,
            "attempt": task.attempt,
        }
        self._points.note("attempt", who)
        told = super().write(self._rows(iterator, who))
        assert isinstance(told, TaskWrote)
        if task.partition == 0 and not told.is_skipped:
            self._points.reach(WRITTEN, **who)
            if task.attempt == 0:
                # Behind all that the sink does: as when the executor is lost then.
                self._points.fail(RAISING, **who)
        return told

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if not any(isinstance(each, TaskWrote) and each.is_skipped for each in messages):
            self._points.reach(COMMITTING, query=self._label, epoch=batchId)
        super().commit(messages, batchId)

    def _rows(self, iterator: Iterator[RowBatch], who: dict[str, object]) -> Iterator[RowBatch]:
        for batch in iterator:
            yield batch
            # Now the batch has been handed to the connection.
            if who["partition"] == 0:
                self._points.reach(WRITING, **who)
            elif who["attempt"] == 0:
                self._points.fail(RAISING, **who)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote], epoch: int) -> EpochCommit:
        commit = cast(PausingCommit, super()._commit_of(cluster, told, epoch))
        commit.points, commit.label = self._points, self._label
        return commit
