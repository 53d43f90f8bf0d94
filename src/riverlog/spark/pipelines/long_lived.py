"""The long-lived queries of a project, one for each streaming flow, on the checkpoints of Spark's engine.

A query is what the engine itself would start, with one difference: its trigger does not end when the input
has been read. An observation counts the rows that go out, which sinks written in Python do not report.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, Table, TemporaryView
from pyspark.sql import functions
from pyspark.sql.types import StructType

from riverlog.spark.pipelines.checkpoints import CheckpointStore, Positions
from riverlog.spark.pipelines.definitions import PythonFlow
from riverlog.spark.pipelines.failures import PipelineError, one_line
from riverlog.spark.pipelines.graph import StreamingFlow
from riverlog.spark.pipelines.progress import OBSERVED, ROWS_OUT
from riverlog.spark.pipelines.project import Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


_CATALOG_THAT_LASTS: Final = (
    "if it is left over from an earlier run, give the project a catalog that lasts, such as the "
    "configuration spark.sql.catalogImplementation: hive"
)


class LongLivedQueries:
    """Publishes datasets to the session and starts the queries that fill them."""

    def __init__(self, project: Project, spark: "SparkSession", *, trigger_s: float) -> None:
        self._project = project
        self._spark = spark
        self._trigger = f"{int(trigger_s * 1000)} milliseconds"
        self._checkpoints = CheckpointStore(project)

    def publish(self, output: Output, flow: PythonFlow) -> None:
        match output:
            case TemporaryView():
                flow.frame.createOrReplaceTempView(output.name)
            case StreamingTable():
                self._create_table(output, flow.frame.schema)
            case MaterializedView() | Sink():
                pass  # Spark's engine makes the one, and the other is nothing to read from.

    def start(self, flow: StreamingFlow) -> Any:
        counted = flow.frame.observe(OBSERVED, functions.count(functions.lit(1)).alias(ROWS_OUT))
        location = self._checkpoints.location(*self._place(flow))
        writer = (
            counted.writeStream.queryName(flow.name)
            .outputMode("append")
            .trigger(processingTime=self._trigger)
            .option("checkpointLocation", location)
        )
        with self._configured(flow.spark_conf):
            if isinstance(flow.target, Sink):
                return writer.format(flow.target.format).options(**flow.target.options).start()
            if flow.target.format:
                writer = writer.format(flow.target.format)
            return writer.toTable(flow.target.name)

    def positions(self, flow: StreamingFlow) -> list[Positions]:
        """Where it goes on from."""
        return self._checkpoints.positions(*self._place(flow))

    def _place(self, flow: StreamingFlow) -> tuple[tuple[str, ...], str]:
        return self._target_path(flow.target), flow.name.rpartition(".")[2]

    def _create_table(self, table: Table, inferred: StructType) -> None:
        if self._spark.catalog.tableExists(table.name):
            return
        try:
            self._create(table, _schema(table, inferred))
        except PySparkException as error:
            raise PipelineError(
                f"the table {table.name} cannot be created: {one_line(error)}", remedy=_CATALOG_THAT_LASTS
            ) from error

    def _create(self, table: Table, schema: StructType) -> None:
        if not (table.partition_cols or table.cluster_by or table.table_properties):
            # Without a file: from the first one on, a stream that reads the table takes its files as they
            # are, and not the list of whole batches that the stream which writes it keeps.
            self._spark.catalog.createTable(table.name, source=table.format, schema=schema)
            return
        writer = self._spark.createDataFrame([], schema).writeTo(table.name)
        if table.format:
            writer = writer.using(table.format)
        for key, value in table.table_properties.items():
            writer = writer.tableProperty(key, value)
        if table.partition_cols:
            writer = writer.partitionedBy(*(functions.col(name) for name in table.partition_cols))
        if table.cluster_by:
            writer = writer.clusterBy(*table.cluster_by)
        writer.create()

    def _target_path(self, target: Sink | StreamingTable) -> tuple[str, ...]:
        if isinstance(target, Sink):
            return (target.name,)
        parts = target.name.replace("`", "").split(".")
        return (*(self._project.catalog, self._project.database, "")[: 3 - len(parts)], *parts)

    @contextmanager
    def _configured(self, settings: Mapping[str, str]) -> Iterator[None]:
        """A query takes the session's settings as they are when it starts."""
        before = {key: self._spark.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, old)


def _schema(table: Table, inferred: StructType) -> StructType:
    if table.schema is None:
        return inferred
    if isinstance(table.schema, StructType):
        return table.schema
    parsed = StructType.fromDDL(table.schema)
    assert isinstance(parsed, StructType), "a table has columns"
    return parsed
