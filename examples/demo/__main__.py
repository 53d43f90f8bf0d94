"""`make demo`: orders stream through a broker and a pipeline on Spark, and the counts are proved equal.

    python -m examples.demo --orders 20000 --seed 7

Progress goes to stderr, the report to stdout; the exit code is 1 when anything is missing, doubled or wrong.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.demo.orders import Record, expected, sample
from examples.demo.pipeline import DEAD, ORDERS, REGION_TOPICS, REVENUE, Pipeline, spark_session
from examples.demo.proof import Line, check, summary
from riverlog.testing import Broker

DEADLINE_S = 600.0
_SETTLE_S = 0.25


class Feed:
    """Sends the sample at a pace, on a thread of its own."""

    def __init__(self, bootstrap: str, records: list[Record], seconds: float) -> None:
        self._bootstrap = bootstrap
        self._records = records
        self._pace_s = seconds / max(1, len(records))
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.acknowledged = 0
        self.wrong: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self.acknowledged != len(self._records):
            self.wrong.append(f"{self.acknowledged} of {len(self._records)} orders were acknowledged")

    def _run(self) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "log.connection.close": False, "linger.ms": 5}
        producer = Producer({**settings, "partitioner": "murmur2_random", "enable.idempotence": True})
        began = time.monotonic()
        for number, record in enumerate(self._records):
            while began + number * self._pace_s > time.monotonic():
                producer.poll(0.005)
            producer.produce(ORDERS, record.value, record.key, on_delivery=self._settled)
            producer.poll(0)
        producer.flush(60)

    def _settled(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.wrong.append(error.str())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--orders", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long the orders take to come in")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    progress, report = Console(stderr=True, highlight=False), Console(highlight=False, soft_wrap=True)
    began = time.monotonic()
    records = sample(options.orders, options.seed)
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="riverlog-demo-") as directory:
        progress.print(f"broker on {broker.bootstrap_servers}; starting Spark")
        for topic in (ORDERS, DEAD, REVENUE, *REGION_TOPICS):
            broker.create_topic(topic, options.partitions)
        with spark_session(Path(directory)) as spark:
            pipeline = Pipeline(spark, broker.bootstrap_servers, Path(directory))
            feed = Feed(broker.bootstrap_servers, records, options.seconds)
            wrong = run(progress, pipeline, feed, len(records))
        lines: list[Line] = []
        if not wrong:
            progress.print("reading back every topic and the Parquet files")
            lines = check(broker.bootstrap_servers, pipeline.archive_path, records, expected(records))
    show(report, lines, summary(expected(records)), time.monotonic() - began)
    for text in wrong:
        report.print(f"wrong: {text}", style="red")
    is_right = not wrong and all(line.is_right for line in lines)
    report.print("all counts are equal" if is_right else "the counts are NOT equal")
    return 0 if is_right else 1


def run(console: Console, pipeline: Pipeline, feed: Feed, total: int) -> list[str]:
    """Feed the queries until all has passed through them; what went wrong."""
    queries: dict[str, StreamingQuery] = {}
    deadline = time.monotonic() + DEADLINE_S
    try:
        # One at a time: each starts Python processes, for which Spark waits ten seconds and no longer.
        for name, query in pipeline.start():
            queries[name] = query
            while (
                query.isActive and query.status["message"].startswith("Init") and time.monotonic() < deadline
            ):
                time.sleep(_SETTLE_S)
        feed.start()
        with live(console, total, [*queries]) as draw:
            while not _is_through(queries, feed, total) and time.monotonic() < deadline:
                draw(feed, queries)
                time.sleep(_SETTLE_S)
            feed.join(max(0.0, deadline - time.monotonic()))
            for query in queries.values():
                query.processAllAvailable()
            draw(feed, queries)
        console.print("all orders are through; now the revenue of each window")
        queries["revenue"] = pipeline.start_revenue()
        if not queries["revenue"].awaitTermination(int(DEADLINE_S)):
            feed.wrong.append("the revenue did not catch up in time")
    except StreamingQueryException as error:
        feed.wrong.append(str(error).splitlines()[0])
    finally:
        for query in queries.values():
            query.stop()
    return feed.wrong


def _is_through(queries: dict[str, StreamingQuery], feed: Feed, total: int) -> bool:
    """All is read, or a query has failed: then asking it to go on says why."""
    if not all(query.isActive for query in queries.values()):
        return True
    return feed.acknowledged == total and all(taken(query) >= total for query in queries.values())


def is_starting(query: StreamingQuery) -> bool:
    return query.isActive and str(query.status["message"]).startswith("Initializing")


def taken(query: StreamingQuery) -> int:
    """Rows that a query has read so far, by Spark's own account."""
    return sum(each["numInputRows"] for each in query.recentProgress)


@contextmanager
def live(
    console: Console, total: int, names: list[str]
) -> Iterator[Callable[[Feed, dict[str, StreamingQuery]], None]]:
    """Bars on a terminal; elsewhere a line every few seconds."""
    columns = (TextColumn("{task.description:>22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {"sent": bars.add_task("sent", total=total)}
        tasks |= {name: bars.add_task(f"read for {name}", total=total) for name in names}
        last = 0.0

        def draw(feed: Feed, queries: dict[str, StreamingQuery]) -> None:
            nonlocal last
            counts = {"sent": feed.acknowledged, **{name: taken(query) for name, query in queries.items()}}
            for name, count in counts.items():
                bars.update(tasks[name], completed=count)
            if not console.is_terminal and time.monotonic() - last > 3:
                last = time.monotonic()
                sent, *read = (f"{name} {count:,}" for name, count in counts.items())
                console.print(f"  {sent}; read for {', '.join(read)}")

        yield draw


def show(console: Console, lines: list[Line], text: str, elapsed_s: float) -> None:
    table = Table(title="What went in and what came out", title_justify="left")
    for heading, justify in (("step", "left"), ("where", "left"), ("expected", "right"), ("found", "right")):
        table.add_column(heading, justify="left" if justify == "left" else "right")
    table.add_column("")
    for line in lines:
        verdict = "equal" if line.is_right else "; ".join(line.wrong) or "not equal"
        table.add_row(line.step, line.where, f"{line.wanted:,}", f"{line.found:,}", verdict)
    console.print(table)
    console.print(f"{text} It took {elapsed_s:.0f} s with the start of Spark.")


if __name__ == "__main__":
    sys.exit(main())
