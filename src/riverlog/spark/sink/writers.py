"""The writers that Spark drives: made on the driver, sent to the tasks, asked again to commit or abort.

For a stream Spark makes a new writer for each commit, which knows nothing of the query: tasks know it, and
tell it in their messages. For a batch the same writer goes to tasks and commit, and knows its identity. What
encodes rows is loaded by tasks only: every process of the driver would take a tenth of a second for it.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from riverlog.client.cluster import Cluster
from riverlog.model.errors import RiverlogError
from riverlog.spark.kept_clusters import kept_cluster
from riverlog.spark.plain_errors import plainly
from riverlog.spark.sink.commit import TASKS_END_WITHIN_S, EpochCommit
from riverlog.spark.sink.leftovers import abort_stopped
from riverlog.spark.sink.options import Guarantee, SinkOptions
from riverlog.spark.sink.tasks import Task, TaskWrote, told_by_all, told_in
from riverlog.spark.sink.write_lanes import Lane, LaneCommit, take_lane

if TYPE_CHECKING:
    from riverlog.spark.sink.columns import RowBatch

_log = logging.getLogger(__name__)


class StreamWriter(DataSourceStreamArrowWriter):
    commit_class: ClassVar[type[EpochCommit]] = EpochCommit

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    @plainly
    def write(self, iterator: "Iterator[RowBatch]") -> WriterCommitMessage:
        from riverlog.spark.sink.task_writer import write_rows

        return write_rows(self._options, Task.of_stream(), iterator)

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        told = told_by_all(messages, f"epoch {batchId}", again="the epoch")
        if told:
            with kept_cluster(self._options.client) as cluster:
                self._commit_of(cluster, told, batchId).commit()

    @plainly
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        told = told_in(messages)
        if told:
            with kept_cluster(self._options.client) as cluster:
                self._commit_of(cluster, told, batchId).abort()
        # No task has told which query this is when it was stopped early. What this does not find, the next
        # commit of the query does.
        if self._options.tag is not None:
            count = abort_stopped(self._options.client, self._options.tag)
            _log.info("aborted %d transactions of epoch %d", count, batchId)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote], epoch: int) -> EpochCommit:
        first = told[0]
        others = {(each.identity, each.run, each.epoch) for each in told} - {
            (first.identity, first.run, epoch)
        }
        if others:
            raise RiverlogError(f"epoch {epoch} of query {first.identity} got messages of {sorted(others)}")
        return self.commit_class(
            cluster,
            first.identity,
            first.run,
            epoch,
            told,
            is_stream=True,
            accepted_epoch=self._options.accepted_epoch,
        )


class BatchWriter(DataSourceArrowWriter):
    """A write that a `writeId` names can be run again, and then is passed over; others take a lane."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        if options.write_id is not None or options.guarantee is Guarantee.AT_LEAST_ONCE:
            self._lane = Lane(f"write-{options.write_id}", uuid.uuid4().hex, 0)
        else:
            with kept_cluster(options.client) as cluster:
                self._lane = take_lane(cluster)

    @plainly
    def write(self, iterator: "Iterator[RowBatch]") -> WriterCommitMessage:
        from riverlog.spark.sink.task_writer import write_rows

        lane = self._lane
        task = Task.of_batch(lane.identity, lane.run, lane.epoch, may_be_repeated=self._is_named)
        return write_rows(self._options, task, iterator)

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        told = told_by_all(messages, self._lane.identity, again="it")
        with kept_cluster(self._options.client) as cluster:
            self._commit_of(cluster, told).commit()

    @plainly
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        with kept_cluster(self._options.client) as cluster:
            self._commit_of(cluster, told_in(messages)).abort(tasks_end_within_s=TASKS_END_WITHIN_S)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote]) -> EpochCommit:
        lane = self._lane
        commit_class = EpochCommit if self._is_named else LaneCommit
        return commit_class(cluster, lane.identity, lane.run, lane.epoch, told, is_stream=not self._is_named)

    @property
    def _is_named(self) -> bool:
        return self._options.write_id is not None
