"""What a task does: writes its rows in a transaction of its own and leaves it open for the driver.

No row, no transaction. Where the epoch is decided already, nothing is written. A task that fails aborts what
it began; one that is killed leaves it to the driver. When all rows are written the task looks once more
whether the epoch has been decided meanwhile, without it: an attempt that was overtaken by another one ends
its own transaction then. The driver looks for such transactions after it has decided, the task for the
decision after it has written, so that one of the two sees the other.
"""

import logging
from collections.abc import Callable, Iterable

from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.client.transaction_dialect import Dialect, dialect_of
from riverlog.client.transactions import begin_with_longest_timeout, end, idempotent_producer
from riverlog.client.writing import BatchWriter, Transactional
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.spark.kept_clusters import kept_cluster
from riverlog.spark.sink.columns import RowBatch, topics_of
from riverlog.spark.sink.decisions import Written, decision_log
from riverlog.spark.sink.options import Guarantee, SinkOptions
from riverlog.spark.sink.placement import Placement, RowRefused
from riverlog.spark.sink.rows import EncodeSettings, RowEncoder
from riverlog.spark.sink.slots import is_first_epoch, take_transactional_id
from riverlog.spark.sink.tasks import RowsSeen, Task, TaskWrote
from riverlog.spark.sink.topics import partition_count

_log = logging.getLogger(__name__)


def write_rows(options: SinkOptions, task: Task, rows: Iterable[RowBatch]) -> TaskWrote:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return write_at_least_once(options, task, rows)
    return write_exactly_once(options, task, rows)


def write_exactly_once(options: SinkOptions, task: Task, rows: Iterable[RowBatch]) -> TaskWrote:
    with kept_cluster(options.client) as cluster:
        if (
            task.may_be_repeated
            and is_first_epoch(task.identity, task.run, task.epoch)
            and _is_decided(cluster, task, None)
        ):
            return task.wrote(None, _passed_over(options, rows), is_skipped=True)
        opened = _OpenTransaction(cluster, options, task)
        try:
            seen = _write(cluster, options, rows, task.partition, opened.writer)
        except BaseException:
            opened.abort()
            raise
        finally:
            opened.close()
        written = opened.written
        if written is not None and _is_decided(cluster, task, written):
            opened.abort()
            return task.wrote(None, seen, is_skipped=True)
        return task.wrote(written, seen)


def write_at_least_once(options: SinkOptions, task: Task, rows: Iterable[RowBatch]) -> TaskWrote:
    with kept_cluster(options.client) as cluster:
        producer = idempotent_producer(cluster) if options.is_idempotent else None
        writer = BatchWriter(cluster, producer, settings=options.writing)
        try:
            seen = _write(cluster, options, rows, task.partition, lambda: writer)
        finally:
            writer.close()
        return task.wrote(None, seen)


class _OpenTransaction:
    """Begun with the first row."""

    def __init__(self, cluster: Cluster, options: SinkOptions, task: Task) -> None:
        self._cluster = cluster
        self._options = options
        self._task = task
        self._begun: tuple[BatchWriter, Written, Dialect] | None = None

    def writer(self) -> BatchWriter:
        if self._begun is None:
            task = self._task
            is_named = self._options.write_id is not None
            name = take_transactional_id(
                task.identity, task.run, task.epoch, self._options.tag, is_only_epoch=is_named
            )
            dialect = dialect_of(self._cluster)
            producer, _ = begin_with_longest_timeout(
                self._cluster, name, dialect, self._options.transaction_timeout_ms
            )
            writer = BatchWriter(self._cluster, producer, Transactional(name, dialect), self._options.writing)
            self._begun = (writer, Written(name, producer), dialect)
        return self._begun[0]

    @property
    def written(self) -> Written | None:
        return None if self._begun is None else self._begun[1]

    def close(self) -> None:
        """The connections, not the transaction."""
        if self._begun is not None:
            self._begun[0].close()

    def abort(self) -> None:
        """As far as it can be done from here; the driver ends what stays."""
        if self._begun is None:
            return
        _, written, dialect = self._begun
        self.close()
        try:
            end(self._cluster, written.transactional_id, written.producer, dialect, commit=False)
        except RiverlogError as error:
            _log.warning("a task's transaction could not be aborted and is left to the driver: %s", error)


def _write(
    cluster: Cluster,
    options: SinkOptions,
    rows: Iterable[RowBatch],
    partition: int,
    writer_of: Callable[[], BatchWriter],
) -> RowsSeen:
    """What was written, all of it for good."""
    settings = EncodeSettings(
        options.topic, options.batch_bytes, options.record_bytes_max, options.codec, options.level
    )
    placement = Placement(lambda topic: partition_count(cluster, topic), turn=partition)
    encoder = RowEncoder(settings, placement)
    writer: BatchWriter | None = None
    topics: set[str] = set()
    try:
        for batch in rows:
            for group in encoder.encode(batch):
                writer = writer_of()
                writer.write(group)
                topics.update(each.topic for each in group)
        if writer is None:
            return RowsSeen()
        writer.flush()
    except BrokerRefused as refusal:
        if refusal.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise RowRefused(
                f"{refusal}; lower kafka.batch.size, or raise the topic's max.message.bytes"
            ) from refusal
        raise
    return RowsSeen(writer.records_written, frozenset(topics))


def _passed_over(options: SinkOptions, rows: Iterable[RowBatch]) -> RowsSeen:
    """What would have been written by a named write; an epoch of a stream is what it was before."""
    if options.write_id is None:
        return RowsSeen()
    count = 0
    topics: set[str] = set()
    for batch in rows:
        count += batch.num_rows
        topics.update([options.topic] if options.topic is not None else topics_of(batch))
    return RowsSeen(count, frozenset(topics))


def _is_decided(cluster: Cluster, task: Task, written: Written | None) -> bool:
    """Whether the epoch is decided, or a later one, without what is written here."""
    log = decision_log(cluster, task.identity, is_same_topic=written is not None)
    decision = None if log is None else log.refresh()
    if decision is None:
        # A write that nobody repeats has begun, and is forgotten when it is over.
        return not task.may_be_repeated
    if decision.is_begun or decision.epoch < task.epoch:
        return decision.epoch > task.epoch
    return written not in decision.transactions
