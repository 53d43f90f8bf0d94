"""A listener for streaming queries: lag by partition, rows, transactions, as log lines and Prometheus text.

    spark.streams.addListener(ProgressListener(prometheus_file="/var/lib/node_exporter/orders.prom"))

In classic Spark and over Spark Connect, where it runs on the client's side. It hears of every query of the
session. The text is written after each batch, as a whole, for the textfile collector of Prometheus' node
exporter or anybody who serves files; `prometheus_text()` gives it to a server of your own. What goes wrong
here is logged and never reaches a query.
"""

import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from riverlog.client.cluster import ClientSettings, Cluster
from riverlog.model.errors import RiverlogError
from riverlog.spark.connection import connection_of
from riverlog.spark.progress_figures import QueryFigures, prometheus_text
from riverlog.spark.sink.committed import CommitCount

_PATIENCE_S: Final = 3.0
"""A figure for people is not worth waiting for a broker that is away."""
_QUERIES_MAX: Final = 256
"""Those that ended first are forgotten first."""

_log = logging.getLogger(__name__)


class ProgressListener(StreamingQueryListener):
    """`brokers` are the options of the cluster that is written to; without them transactions are not counted.
    `writers` are the names of the `ForeachBatchWriter`s, as `name` or topic gives them."""

    def __init__(
        self,
        *,
        prometheus_file: str | Path | None = None,
        brokers: Mapping[str, str] | None = None,
        writers: Sequence[str] = (),
    ) -> None:
        self._file = None if prometheus_file is None else Path(prometheus_file)
        self._settings = None if brokers is None else _settings(brokers)
        self._writers = tuple(writers)
        self._cluster: Cluster | None = None
        self._queries: dict[str, QueryFigures] = {}
        self._commits: dict[str, CommitCount] = {}
        # Spark calls on a thread of its own, and the text may be wanted on another.
        self._lock = threading.Lock()

    def prometheus_text(self) -> str:
        with self._lock:
            return prometheus_text(self._queries.values())

    def figures(self) -> list[QueryFigures]:
        """Of every query that was heard of."""
        with self._lock:
            return list(self._queries.values())

    def close(self) -> None:
        """Drop the connection to the brokers; it is opened again when it is needed."""
        with self._lock:
            if self._cluster is not None:
                self._cluster.close()
                self._cluster = None

    # What Spark calls.

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names
        with self._lock:
            self._figures(str(event.id), event.name).is_running = True
        self._write()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        report = json.loads(event.progress.json)
        with self._lock:
            figures = self._figures(str(report["id"]), report.get("name"))
            figures.is_running = True
            if figures.add(report):
                self._count_commits(figures)
                _log.info("%s", figures.line())
        self._write()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        with self._lock:
            figures = self._figures(str(event.id), None)
        _log.info("%s, idle", figures.line())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        with self._lock:
            figures = self._figures(str(event.id), None)
            figures.is_running = False
        _log.info("query %s ended%s", figures.name, f": {event.exception}" if event.exception else "")
        self._write()

    # What they are made of.

    def _figures(self, query_id: str, name: str | None) -> QueryFigures:
        figures = self._queries.get(query_id)
        if figures is None:
            while len(self._queries) >= _QUERIES_MAX:
                self._forget_one()
            figures = self._queries[query_id] = QueryFigures(query_id, name or query_id)
        return figures

    def _forget_one(self) -> None:
        ended = [each.query_id for each in self._queries.values() if not each.is_running]
        gone = next(iter(ended or self._queries))
        del self._queries[gone]
        self._commits.pop(gone, None)

    def _count_commits(self, figures: QueryFigures) -> None:
        if self._settings is None:
            return
        identities = [f"{figures.query_id}:{name}" for name in self._writers] or [figures.query_id]
        commits = self._commits.setdefault(figures.query_id, CommitCount(identities))
        try:
            if self._cluster is None:
                self._cluster = Cluster(self._settings)
            commits.refresh(self._cluster)
        except RiverlogError as error:
            _log.warning("the transactions of query %s are not counted: %s", figures.name, error)
            return
        figures.transactions = commits.transactions
        figures.open_transactions = commits.open_transactions

    def _write(self) -> None:
        if self._file is None:
            return
        fresh = self._file.with_name(f".{self._file.name}.new")
        try:
            fresh.write_text(self.prometheus_text())
            os.replace(fresh, self._file)
        except OSError as error:
            _log.warning("%s is not written: %s", self._file, error)


def _settings(brokers: Mapping[str, str]) -> ClientSettings:
    known = [key.removeprefix("kafka.") for key in brokers]
    chosen = connection_of(brokers, known, client_id="riverlog-listener").settings
    return ClientSettings(chosen.bootstrap, chosen.client_id, _PATIENCE_S, _PATIENCE_S)
