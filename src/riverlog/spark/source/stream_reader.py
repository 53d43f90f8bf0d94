"""What Spark calls for `spark.readStream`: on the driver the plan of each batch, in the tasks the reading.

Goes to the tasks by pickle, without the driver's connection. Spark hands a limit in with each question; when
it says to read all that is available, the options about limits do not count.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from riverlog.client.cluster import Cluster
from riverlog.spark.kept_clusters import kept_cluster
from riverlog.spark.plain_errors import plainly, plainly_each
from riverlog.spark.source.arrow_batches import ArrowBatch
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.places import OffsetJson, from_json, to_json
from riverlog.spark.source.plan import Split
from riverlog.spark.source.progress_group import introduce
from riverlog.spark.source.running_query import running_query
from riverlog.spark.source.split_reader import read_split
from riverlog.spark.source.stream_plan import StreamPlan


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._cluster: Cluster | None = None
        self._planned: StreamPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None, "_planned": None}

    @plainly
    def initialOffset(self) -> OffsetJson:  # noqa: N802 - this and the following are Spark's names
        return to_json(self._plan.initial())

    @plainly
    def latestOffset(self, start: OffsetJson, limit: ReadLimit) -> OffsetJson:  # noqa: N802
        rows_min = rows_max = None
        if not isinstance(limit, ReadAllAvailable):
            rows_min = (
                limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_offsets_per_trigger
            )
            rows_max = (
                limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_offsets_per_trigger
            )
        return to_json(self._plan.next_end(from_json(start), rows_min, rows_max))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark takes one limit only; what else the options say is added when it comes back.
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @plainly
    def reportLatestOffset(self) -> OffsetJson:  # noqa: N802
        return to_json(self._plan.newest())

    @plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._plan.stop_at_present_ends()

    @plainly
    def partitions(self, start: OffsetJson, end: OffsetJson) -> list[InputPartition]:
        return list(self._plan.splits(from_json(start), from_json(end)))

    @plainly_each
    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        # Without splits Spark makes up a partition of its own.
        if isinstance(partition, Split):
            with kept_cluster(self._options.connection.settings) as cluster:
                if partition.introduction is not None and (query := running_query()) is not None:
                    introduce(cluster, partition, query)
                schema = to_arrow_schema(self._schema, timezone="UTC")
                yield from read_split(cluster, self._options, schema, partition)

    @plainly
    def commit(self, end: OffsetJson) -> None:
        self._plan.finished(from_json(end))

    def stop(self) -> None:
        if self._planned is not None:
            self._planned.close()
        if self._cluster is not None:
            self._cluster.close()

    @property
    def _plan(self) -> StreamPlan:
        if self._planned is None:
            self._cluster = Cluster(self._options.connection.settings)
            self._planned = StreamPlan(self._options, self._cluster)
        return self._planned
