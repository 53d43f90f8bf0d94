"""What a task of the sink is, and what it tells the driver when it has written.

Not here: how it writes. A driver's process reads what tasks tell, and has no use for what encodes rows, which
takes longer to load than all the rest of the sink.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from riverlog.model.errors import RiverlogError
from riverlog.spark.sink.decisions import Written


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """How many rows, and for which topics."""

    count: int = 0
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TaskWrote(WriterCommitMessage):
    """What a task tells the driver."""

    identity: str
    run: str
    epoch: int
    written: Written | None
    """None where there was nothing to write."""
    is_skipped: bool
    """The epoch was decided already."""
    rows: RowsSeen
    partition: int
    attempt: int


def told_in(messages: Sequence[WriterCommitMessage | None]) -> list[TaskWrote]:
    return [each for each in messages if isinstance(each, TaskWrote)]


def told_by_all(messages: Sequence[WriterCommitMessage | None], what: str, *, again: str) -> list[TaskWrote]:
    """What is to be committed. `again` is what has to be run again where a task has told nothing."""
    told = told_in(messages)
    if len(told) != len(messages):
        raise RiverlogError(f"{what}: a task has not told what it wrote; run {again} again")
    return told


@dataclass(frozen=True, slots=True)
class Task:
    identity: str
    """Of the query, or of the batch write."""
    run: str
    epoch: int
    partition: int
    attempt: int
    may_be_repeated: bool
    """Whether the epoch may have been decided before."""

    @classmethod
    def of_stream(cls) -> "Task":
        context = _context()
        identity = context.getLocalProperty("sql.streaming.queryId")
        epoch = context.getLocalProperty("streaming.sql.batchId")
        run = context.getLocalProperty("spark.jobGroup.id")
        if not identity or epoch is None or not run:
            raise RiverlogError("the task does not know its streaming query; write batches with df.write")
        return cls(identity, run, int(epoch), context.partitionId(), context.attemptNumber(), True)

    @classmethod
    def of_batch(cls, identity: str, run: str, epoch: int, *, may_be_repeated: bool) -> "Task":
        context = _context()
        return cls(identity, run, epoch, context.partitionId(), context.attemptNumber(), may_be_repeated)

    def wrote(self, written: Written | None, rows: RowsSeen, *, is_skipped: bool = False) -> TaskWrote:
        return TaskWrote(
            self.identity, self.run, self.epoch, written, is_skipped, rows, self.partition, self.attempt
        )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context
