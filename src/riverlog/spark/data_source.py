"""The format `riverlog` as Spark sees it: a door to the source and the sink, which are loaded when asked for.

Spark looks this class up by the package `pyspark_riverlog`, in the interpreter that `PYSPARK_PYTHON` names.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from riverlog.spark.plain_errors import plainly

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


class RiverlogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "riverlog"

    @plainly
    def schema(self) -> StructType:
        from riverlog.spark.source.columns import source_schema
        from riverlog.spark.source.options import includes_headers

        return source_schema(includes_headers(self.options))

    @plainly
    def reader(self, schema: StructType) -> "DataSourceReader":
        from riverlog.spark.source.batch_reader import BatchReader
        from riverlog.spark.source.columns import check_schema
        from riverlog.spark.source.options import batch_options

        options = batch_options(self.options)
        check_schema(schema, options.include_headers)
        return BatchReader(options, schema)

    @plainly
    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":  # noqa: N802 - Spark's name
        from riverlog.spark.source.columns import check_schema
        from riverlog.spark.source.options import stream_options
        from riverlog.spark.source.stream_reader import StreamReader

        options = stream_options(self.options)
        check_schema(schema, options.include_headers)
        return StreamReader(options, schema)

    @plainly
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from riverlog.spark.sink import make_writer

        return make_writer(self.options, schema, overwrite)

    @plainly
    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802
        from riverlog.spark.sink import make_stream_writer

        return make_stream_writer(self.options, schema, overwrite)
