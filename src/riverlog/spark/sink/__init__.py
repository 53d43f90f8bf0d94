"""The sink: rows of a DataFrame into topics, exactly once.

Each task leaves its rows in an open transaction; the driver decides in one record which of them make up the
epoch, then commits them. `docs/adr/0010` says why that neither loses nor doubles, whoever is killed when.
Not here: how rows become text or bytes, which is for DataFrame operations and `riverlog.spark.decode`.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from riverlog.spark.connection import OptionError
from riverlog.spark.sink.batch_epochs import EpochWriter, batch_epoch_in
from riverlog.spark.sink.options import check_columns, sink_options
from riverlog.spark.sink.writers import BatchWriter, StreamWriter


def make_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceWriter:
    if overwrite:
        raise OptionError("mode", "a topic cannot be overwritten", 'use mode("append")')
    epoch, others = batch_epoch_in(options)
    chosen = sink_options(others, is_stream=False)
    check_columns(schema, chosen.topic)
    return BatchWriter(chosen) if epoch is None else EpochWriter(chosen, epoch)


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceStreamWriter:
    # In complete mode Spark asks to overwrite; as with its own connector each epoch writes all its rows then.
    chosen = sink_options(options, is_stream=True)
    check_columns(schema, chosen.topic)
    return StreamWriter(chosen)
