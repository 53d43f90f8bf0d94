"""What a streaming query's progress says about topics: lag by partition, rows, batches and transactions.

Pure: from Spark's report of a batch to figures, and from figures to log lines and Prometheus text. The report
is the JSON that Spark gives to listeners, classic and Connect alike. Lag is what the source has seen at the
end of a partition (`latestOffset`) beyond what the batch has read (`endOffset`); control records count, as
with every Kafka tool. Not here: who hears of the reports (`riverlog.spark.listening`).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_PREFIX: Final = "riverlog_spark_"
_ESCAPES: Final = {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}

Partition = tuple[str, int]
"""Topic and number."""


@dataclass(slots=True)
class QueryFigures:
    """Of one query, since somebody began to listen."""

    query_id: str
    name: str
    is_running: bool = True
    batches: int = 0
    rows: int = 0
    last_batch: int | None = None
    batch_ms: int = 0
    rows_per_second: float = 0.0
    lag: dict[Partition, int] = field(default_factory=dict)
    transactions: int | None = None
    """How many the sink has committed; None where nobody asks the brokers."""
    open_transactions: int | None = None

    def add(self, report: Mapping[str, Any]) -> bool:
        """Whether the report tells of a batch that was not counted before."""
        sources: Sequence[Mapping[str, Any]] = report.get("sources") or ()
        self.lag = lag_of(sources)
        batch = int(report["batchId"])
        if "addBatch" not in (report.get("durationMs") or {}):
            return False  # The number is that of the batch to come.
        if self.last_batch is not None and batch <= self.last_batch:
            return False
        self.last_batch = batch
        self.batches += 1
        self.rows += sum(int(each.get("numInputRows") or 0) for each in sources)
        self.batch_ms = int(report.get("batchDuration") or 0)
        self.rows_per_second = float(report.get("processedRowsPerSecond") or 0.0)
        return True

    @property
    def total_lag(self) -> int:
        return sum(self.lag.values())

    def line(self) -> str:
        """For a log."""
        lags = ", ".join(f"{topic}-{number} {lag}" for (topic, number), lag in sorted(self.lag.items()))
        transactions = (
            f", {self.transactions} transactions, {self.open_transactions} open"
            if self.transactions is not None
            else ""
        )
        return (
            f"query {self.name}: batch {self.last_batch} in {self.batch_ms} ms, {self.rows} rows in "
            f"{self.batches} batches{transactions}, lag {self.total_lag}{f' ({lags})' if lags else ''}"
        )


def lag_of(sources: Iterable[Mapping[str, Any]]) -> dict[Partition, int]:
    """Of the sources that count in offsets of topics; two of the same topic count by the one behind."""
    found: dict[Partition, int] = {}
    for source in sources:
        ends = _offsets(source.get("latestOffset"))
        for at, position in _offsets(source.get("endOffset")).items():
            if at in ends:
                found[at] = max(found.get(at, 0), ends[at] - position, 0)
    return found


def _offsets(value: object) -> dict[Partition, int]:
    """Spark gives them as JSON, in a text or not."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
        return {
            (str(topic), int(number)): int(offset)
            for topic, partitions in parsed.items()  # type: ignore[union-attr]
            for number, offset in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    kind: str
    text: str
    value: Callable[[QueryFigures], float | None]


_METRICS: Final = (
    _Metric("running", "gauge", "Whether the query runs.", lambda each: int(each.is_running)),
    _Metric("batches_total", "counter", "Batches that have ended.", lambda each: each.batches),
    _Metric("rows_total", "counter", "Rows read.", lambda each: each.rows),
    _Metric("rows_per_second", "gauge", "Of the last batch.", lambda each: each.rows_per_second),
    _Metric("last_batch", "gauge", "Number of the last batch.", lambda each: each.last_batch),
    _Metric("batch_milliseconds", "gauge", "Time of the last batch.", lambda each: each.batch_ms),
    _Metric(
        "transactions_total",
        "counter",
        "Transactions that the sink committed.",
        lambda each: each.transactions,
    ),
    _Metric("open_transactions", "gauge", "Of the query, not ended.", lambda each: each.open_transactions),
)


def prometheus_text(queries: Iterable[QueryFigures]) -> str:
    """In the text format that Prometheus scrapes."""
    known = sorted(queries, key=lambda each: (each.name, each.query_id))
    lines: list[str] = []
    for metric in _METRICS:
        samples = [(each, value) for each in known if (value := metric.value(each)) is not None]
        if samples:
            lines += _head(metric.name, metric.kind, metric.text)
            lines += [f"{_PREFIX}{metric.name}{_labels(each)} {value:g}" for each, value in samples]
    lags = [(each, at, lag) for each in known for at, lag in sorted(each.lag.items())]
    if lags:
        lines += _head("lag", "gauge", "Offsets that are there and not read, by partition.")
        lines += [
            f"{_PREFIX}lag{_labels(each, topic=topic, partition=str(number))} {lag}"
            for each, (topic, number), lag in lags
        ]
    return "".join(f"{line}\n" for line in lines)


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]


def _labels(query: QueryFigures, **more: str) -> str:
    given = {"query": query.name, "id": query.query_id, **more}
    return "{" + ",".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in given.items()) + "}"
