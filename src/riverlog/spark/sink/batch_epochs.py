"""A batch that `foreachBatch` hands over, written as an epoch of its query.

Spark drives it as a batch write of its own: one writer for tasks and commit, an abort when it fails. What it
writes is told by the query and the number of the batch, so that the same batch again finds what was decided
about it. Transactional ids are those of a stream, a few for each run of the query and used again in the next
batch. Not here: how the query is found, which is for `riverlog.spark.each_batch`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from riverlog.client.cluster import Cluster
from riverlog.spark.plain_errors import plainly
from riverlog.spark.sink.commit import TASKS_END_WITHIN_S, EpochCommit
from riverlog.spark.sink.options import Guarantee, SinkOptions
from riverlog.spark.sink.tasks import Task, TaskWrote, told_by_all, told_in

if TYPE_CHECKING:
    from riverlog.spark.sink.columns import RowBatch

_IDENTITY: Final = "riverlog.batch.identity"
_RUN: Final = "riverlog.batch.run"
_NUMBER: Final = "riverlog.batch.number"


@dataclass(frozen=True, slots=True)
class BatchEpoch:
    """Travels to the sink among the options, as Spark has no other way to it."""

    identity: str
    """Of the query and of this writer in it."""
    run: str
    number: int

    def as_options(self) -> dict[str, str]:
        return {_IDENTITY: self.identity, _RUN: self.run, _NUMBER: str(self.number)}


def batch_epoch_in(options: Mapping[str, str]) -> tuple[BatchEpoch | None, dict[str, str]]:
    """The epoch if the options tell of one, and the other options."""
    others = {key: value for key, value in options.items() if key.lower() not in (_IDENTITY, _RUN, _NUMBER)}
    lower = {key.lower(): value for key, value in options.items()}
    if _IDENTITY not in lower:
        return None, others
    return BatchEpoch(lower[_IDENTITY], lower[_RUN], int(lower[_NUMBER])), others


class EpochWriter(DataSourceArrowWriter):
    commit_class: ClassVar[type[EpochCommit]] = EpochCommit

    def __init__(self, options: SinkOptions, epoch: BatchEpoch) -> None:
        self._options = options
        self._epoch = epoch

    def task(self) -> Task:
        """The one that runs here."""
        epoch = self._epoch
        return Task.of_batch(epoch.identity, epoch.run, epoch.number, may_be_repeated=True)

    @plainly
    def write(self, iterator: "Iterator[RowBatch]") -> WriterCommitMessage:
        from riverlog.spark.sink.task_writer import write_rows

        return write_rows(self._options, self.task(), iterator)

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        what = f"batch {self._epoch.number} of {self._epoch.identity}"
        told = told_by_all(messages, what, again="the batch")
        with Cluster(self._options.client) as cluster:
            self._commit_of(cluster, told).commit()

    @plainly
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        with Cluster(self._options.client) as cluster:
            self._commit_of(cluster, told_in(messages)).abort(tasks_end_within_s=TASKS_END_WITHIN_S)

    def _commit_of(self, cluster: Cluster, told: Sequence[TaskWrote]) -> EpochCommit:
        return self.commit_class(
            cluster,
            self._epoch.identity,
            self._epoch.run,
            self._epoch.number,
            told,
            is_stream=True,
            accepted_epoch=self._options.accepted_epoch,
        )
