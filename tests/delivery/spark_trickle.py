"""Worker: a Spark driver that keeps two queries running on a trickle of rows, and tells of each batch.

One writes as a stream, the other by `foreachBatch`. Told anything, it works off what is there and ends.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from riverlog.spark import ForeachBatchWriter
from tests.delivery.control import Control, options
from tests.delivery.spark_query import FOREACH_BATCH, STREAM, keep_stdout_clean, session
from tests.waiting import eventually

WAYS = (STREAM, FOREACH_BATCH)
_POLL_S = 0.2
_FIRST_BATCH_S = 240.0


class Trickle:
    def __init__(self, control: Control) -> None:
        self._control = control
        self._given = options()
        self._spark = session(self._given["master"], Path(self._given["directory"]), {})
        self._told = dict.fromkeys(WAYS, -1)

    def run(self) -> None:
        queries = {way: self._start(way) for way in WAYS}
        is_over = threading.Event()
        threading.Thread(target=self._wait_for_the_end, args=(is_over,), daemon=True).start()
        while not is_over.is_set():
            for way, query in queries.items():
                self._tell(way, query)
            is_over.wait(_POLL_S)
        for way, query in queries.items():
            query.processAllAvailable()
            query.stop()
            self._tell(way, query)
        self._control.tell("done")
        self._spark.stop()

    def _start(self, way: str) -> StreamingQuery:
        rows = (
            self._spark.readStream.format("riverlog")
            .option("kafka.bootstrap.servers", self._given["bootstrap"])
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .load()
            .select("key", "value")
        )
        target = {"kafka.bootstrap.servers": self._given["bootstrap"], "topic": f"out-{way}"}
        writer = rows.writeStream.queryName(way)
        if way == FOREACH_BATCH:
            writer = writer.outputMode("update").foreachBatch(ForeachBatchWriter(target))
        else:
            writer = writer.format("riverlog").options(**target)
        checkpoint = Path(self._given["directory"]) / "checkpoints" / way
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(processingTime=f"{self._given['interval_ms']} milliseconds").start()
        # Two queries that begin at the same moment can spoil something that Spark keeps for both.
        eventually(
            lambda: not query.isActive or query.lastProgress, "its first batch did not end", _FIRST_BATCH_S
        )
        return query

    def _tell(self, way: str, query: StreamingQuery) -> None:
        failure = query.exception()
        if failure is not None:
            raise failure
        for progress in query.recentProgress:
            if progress.batchId > self._told[way] and "addBatch" in progress.durationMs:
                self._told[way] = progress.batchId
                self._control.tell("batch", way=way, ms=progress.batchDuration)
                if way == STREAM and progress.batchId % self._given["sample_every"] == 0:
                    self._control.tell("sample", heap_mb=self._heap_mb())

    def _wait_for_the_end(self, is_over: threading.Event) -> None:
        sys.stdin.readline()
        is_over.set()

    def _heap_mb(self) -> float:
        """What is alive in the JVM, once it has collected the rest."""
        jvm: Any = self._spark.sparkContext._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return round(float(runtime.totalMemory() - runtime.freeMemory()) / 1e6, 1)


def main() -> None:
    keep_stdout_clean()
    Trickle(Control()).run()


if __name__ == "__main__":
    main()
