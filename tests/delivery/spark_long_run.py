"""A long run of Spark on a trickle of rows, measured from outside: memory, transactional ids, batch times."""

import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Producer

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.broker.raw_client import RawClient
from tests.delivery.control import client_settings
from tests.delivery.reading import make_topics, read_all
from tests.delivery.server import Server
from tests.delivery.spark_driver import START_S, SparkDriver
from tests.delivery.spark_trickle import WAYS

PARTITIONS = 2
_ROWS_A_TURN = 5
_TURN_S = 0.05
_SAMPLES = 24


@dataclass(frozen=True, slots=True)
class Sample:
    heap_mb: float
    """Of the driver's JVM, after a collection."""
    workers_mb: float
    """Of all Python processes of the driver: planners, daemon and task workers."""
    broker_mb: float
    transactional_ids: int


@dataclass(slots=True)
class LongRun:
    server: Server
    directory: Path
    batches: int
    seconds: float
    rows: int = 0
    samples: list[Sample] = field(default_factory=list)
    batch_ms: dict[str, list[int]] = field(default_factory=lambda: {way: [] for way in WAYS})

    def run(self) -> None:
        """Until both queries have had so many batches and so much time has passed."""
        make_topics(self.server.bootstrap_servers, PARTITIONS, "in", *(f"out-{way}" for way in WAYS))
        producer = Producer(client_settings(self.server.bootstrap_servers, enable_idempotence=True))
        bootstrap = self.server.bootstrap_servers
        with SparkDriver(
            self.directory,
            module="spark_trickle",
            master="local[2]",
            bootstrap=bootstrap,
            sample_every=max(1, self.batches // _SAMPLES),
            # Half of the time that each batch may take; more batches than asked for would show nothing more.
            interval_ms=int(500 * self.seconds / self.batches),
        ) as driver:
            ends_at = time.monotonic() + self.seconds
            while min(map(len, self.batch_ms.values())) < self.batches or time.monotonic() < ends_at:
                self._feed(producer)
                while driver.has_told():
                    self._hear(driver, driver.next())
            assert producer.flush(START_S) == 0
            driver.tell(finish=True)
            while (told := driver.next(START_S))["at"] != "done":
                self._hear(driver, told)

    def check_rows(self) -> None:
        """Each row once in each target."""
        wanted = Counter(str(number) for number in range(self.rows))
        for way in WAYS:
            reads = read_all(self.server.bootstrap_servers, f"out-{way}", PARTITIONS)
            assert Counter(each.value for each in reads) == wanted, way

    def grown(self) -> dict[str, tuple[float, float]]:
        """Of each figure the median in the second quarter of the run, when all is warm, and in the last."""
        figures: dict[str, Sequence[float]] = {
            "driver heap MB": [each.heap_mb for each in self.samples],
            "Python workers MB": [each.workers_mb for each in self.samples],
            "broker MB": [each.broker_mb for each in self.samples],
            "transactional ids": [each.transactional_ids for each in self.samples],
            **{f"batch ms, {way}": times for way, times in self.batch_ms.items()},
        }
        return {name: _second_and_last_quarter(each) for name, each in figures.items()}

    def _feed(self, producer: Producer) -> None:
        for _ in range(_ROWS_A_TURN):
            producer.produce("in", str(self.rows), partition=self.rows % PARTITIONS)
            self.rows += 1
        producer.poll(_TURN_S)

    def _hear(self, driver: SparkDriver, told: Mapping[str, Any]) -> None:
        if told["at"] == "batch":
            self.batch_ms[told["way"]].append(told["ms"])
            return
        workers = psutil.Process(driver.pid).children(recursive=True)
        self.samples.append(
            Sample(
                told["heap_mb"],
                round(sum(map(_python_mb, workers)), 1),
                _python_mb(psutil.Process(self.server.pid)),
                self._transactional_ids(),
            )
        )

    def _transactional_ids(self) -> int:
        with RawClient(self.server) as client:
            return len(client.ask(ApiKey.LIST_TRANSACTIONS, 0, ListTransactionsRequest()).transaction_states)


def _python_mb(process: psutil.Process) -> float:
    """What it has for itself alone, if it is a Python; one that has just ended has nothing."""
    try:
        return process.memory_full_info().uss / 1e6 if "python" in process.name() else 0.0
    except psutil.NoSuchProcess:
        return 0.0


def _second_and_last_quarter(figures: Sequence[float]) -> tuple[float, float]:
    quarter = len(figures) // 4
    assert quarter, "too few figures to compare"
    return statistics.median(figures[quarter : 2 * quarter]), statistics.median(figures[-quarter:])
