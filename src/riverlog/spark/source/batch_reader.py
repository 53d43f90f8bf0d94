"""What Spark calls for `spark.read`: offsets are found when the read is planned, a task reads one split."""

from collections.abc import Iterator

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from riverlog.client.cluster import Cluster
from riverlog.spark.plain_errors import plainly, plainly_each
from riverlog.spark.source.arrow_batches import ArrowBatch
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.plan import Range, Split, plan_splits
from riverlog.spark.source.positions import find, require_all, select
from riverlog.spark.source.split_reader import read_split


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @plainly
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with Cluster(options.connection.settings) as cluster:
            selected = select(cluster, options.selection)
            require_all(selected, options.selection)
            starts = find(cluster, options, options.starting, selected.partitions, "starting")
            ends = find(cluster, options, options.ending, selected.partitions, "ending")
        ranges = [Range(at, starts[at], ends[at]) for at in selected.partitions]
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
            yield from read_split(self._options, to_arrow_schema(self._schema, timezone="UTC"), partition)
