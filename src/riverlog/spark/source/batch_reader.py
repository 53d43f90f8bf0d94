"""What Spark calls for `spark.read`: planning says which task looks after what, the task finds the offsets.

Spark 4.3 plans a DataFrame of a Python source once and uses that for every query on it. Offsets found then
would be those of the first query for ever, so planning only finds mistakes and how to cut.

Filters are not taken over, though Spark could push them down: what it pushes for one query stays with the
DataFrame as well, and would be missing from the next one's rows.
"""

from collections.abc import Iterator

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from riverlog.spark.kept_clusters import kept_cluster
from riverlog.spark.plain_errors import plainly, plainly_each
from riverlog.spark.source.arrow_batches import ArrowBatch
from riverlog.spark.source.batch_ranges import batch_ranges
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.plan import Split
from riverlog.spark.source.positions import require_all, select
from riverlog.spark.source.shares import Share, plan_shares
from riverlog.spark.source.split_reader import read_split


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @plainly
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with kept_cluster(options.connection.settings) as cluster:
            selected = select(cluster, options.selection)
            require_all(selected, options.selection)
            ranges = batch_ranges(cluster, options, selected.partitions, selected.partitions)
        return list(
            plan_shares(
                ranges,
                min_partitions=options.min_partitions,
                max_records=options.max_records_per_partition,
            )
        )

    @plainly_each
    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        assert isinstance(partition, Share), "there is always at least one"
        options = self._options
        with kept_cluster(options.connection.settings) as cluster:
            selected = select(cluster, options.selection)
            require_all(selected, options.selection)
            pieces = {piece.at: piece for piece in partition.pieces(selected.partitions)}
            for whole in batch_ranges(cluster, options, pieces, selected.partitions):
                wanted = pieces[whole.at].of(whole)
                split = Split(wanted.at, wanted.start, wanted.end, selected.topic_ids.get(wanted.at.topic))
                if wanted.size:
                    yield from read_split(
                        cluster, options, to_arrow_schema(self._schema, timezone="UTC"), split
                    )
