"""A Python source and sink for Spark that do no work: what remains is what Spark needs to drive them."""

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

NAME = "do_nothing"
ROWS = 20


class Reader(DataSourceStreamReader):
    """A few rows whenever it is asked, without looking anywhere."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        return {"at": time.monotonic_ns()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa  # type: ignore[import-untyped]

        yield pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 100] * ROWS, pa.binary())})

    def commit(self, end: dict[str, int]) -> None:
        pass


class Writer(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass


class DoNothing(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return Reader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return Writer()
