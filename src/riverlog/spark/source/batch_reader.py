"""What Spark calls for `spark.read`: offsets are found when the read is planned, a task reads one split."""

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from riverlog.client.cluster import Cluster
from riverlog.client.offsets import list_offsets
from riverlog.spark.plain_errors import plainly, plainly_each
from riverlog.spark.source.arrow_batches import ArrowBatch
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.plan import Range, Split, plan_splits
from riverlog.spark.source.positions import Selected, find, require_all, select
from riverlog.spark.source.push_down import Pushed, push_down
from riverlog.spark.source.split_reader import read_split

_MICROSECONDS_PER_MS: Final = 1000


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._pushed = Pushed()

    @property
    def pushFilters(self) -> "_PushFilters":  # noqa: N802 - Spark's name
        return _PushFilters(self)

    def take_over(self, filters: list[Filter]) -> list[Filter]:
        """Those that Spark still has to look at."""
        self._pushed, left = push_down(filters)
        return left

    @plainly
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with Cluster(options.connection.settings) as cluster:
            selected = select(cluster, options.selection)
            require_all(selected, options.selection)
            ranges = self._ranges(cluster, selected)
        return list(
            plan_splits(
                ranges,
                selected.topic_ids,
                min_partitions=options.min_partitions,
                max_records=options.max_records_per_partition,
            )
        )

    @plainly_each
    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        # Without splits Spark makes up a partition of its own.
        if isinstance(partition, Split):
            schema = to_arrow_schema(self._schema, timezone="UTC")
            yield from read_split(self._options, schema, partition, self._pushed.timestamps_us)

    def _ranges(self, cluster: Cluster, selected: Selected) -> list[Range]:
        options = self._options
        starts = find(cluster, options, options.starting, selected.partitions, "starting")
        ends = find(cluster, options, options.ending, selected.partitions, "ending")
        wanted = [at for at in selected.partitions if self._pushed.takes(at)]
        first_us = self._pushed.timestamps_us.first
        if first_us is not None:
            times = dict.fromkeys(wanted, max(0, first_us // _MICROSECONDS_PER_MS))
            for at, offset in list_offsets(cluster, times).items():
                starts[at] = ends[at] if offset is None else max(starts[at], offset)
        return [self._pushed.within(Range(at, starts[at], ends[at])) for at in wanted]


class _PushFilters:
    """`pushFilters`, without what Spark takes as the sign that it is there.

    While spark.sql.python.filterPushdown.enabled is off, as it is by default, Spark refuses to read from a
    source that can push filters down, instead of not asking it to.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader
        self.__func__: Any = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        return self._reader.take_over(filters)
