"""One split read as Arrow batches, in a task: the next fetch is on its way while the last one is decoded.

What is gone though it was promised is data loss: an error that says which offsets, or, when the user has
allowed it, a warning and the rest.
"""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from riverlog.client.cluster import Cluster
from riverlog.client.offsets import EARLIEST, list_offsets
from riverlog.client.reading import Fetched, OffsetGone, PartitionReader, TopicGone
from riverlog.spark.source.arrow_batches import ArrowBatch, ArrowBatches, ArrowSchema
from riverlog.spark.source.data_loss import DataLoss, tell_loss
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.plan import Split

_COLLECT_AFTER_OBJECTS: Final = 500_000


def read_split(
    cluster: Cluster, options: SourceOptions, schema: ArrowSchema, split: Split
) -> Iterator[ArrowBatch]:
    with _rare_garbage_collection():
        reader = PartitionReader(cluster, split.at, options.reading, topic_id=split.topic_id)
        arrow = ArrowBatches(split.at, schema, split.end)
        for fetched in _fetches(cluster, reader, options, split):
            for batch in fetched.batches:
                yield from arrow.add(batch, fetched.first_offset)
        yield from arrow.rest()


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Records come and go by the thousand, none in a cycle: looking for cycles took most of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _fetches(
    cluster: Cluster, reader: PartitionReader, options: SourceOptions, split: Split
) -> Iterator[Fetched]:
    def fetch(offset: int) -> Fetched:
        try:
            return reader.fetch(offset, split.end)
        except OffsetGone as gone:
            return Fetched(offset, [], _after_loss(cluster, options, split, offset, gone), False)
        except TopicGone as gone:
            _lost(options, DataLoss(split.at, offset, split.end, str(gone)))
            return Fetched(offset, [], split.end, True)

    with ThreadPoolExecutor(1, "riverlog-fetch") as ahead:
        coming = ahead.submit(fetch, split.start)
        while True:
            fetched = coming.result()
            is_last = fetched.is_at_end or fetched.next_offset >= split.end
            if not is_last:
                coming = ahead.submit(fetch, fetched.next_offset)
            yield fetched
            if is_last:
                return


def _after_loss(cluster: Cluster, options: SourceOptions, split: Split, offset: int, gone: OffsetGone) -> int:
    """Where to go on, when that is allowed."""
    earliest = list_offsets(cluster, {split.at: EARLIEST})[split.at] or 0
    if earliest <= offset:
        _lost(options, DataLoss(split.at, offset, split.end, "the log ends before them"))
        return split.end
    _lost(
        options, DataLoss(split.at, offset, min(earliest, split.end), "they were deleted, as retention does")
    )
    return min(earliest, split.end)


def _lost(options: SourceOptions, loss: DataLoss) -> None:
    tell_loss(loss, is_allowed=not options.fail_on_data_loss)
