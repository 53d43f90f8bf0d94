"""Queries of Spark over one broker, driver after driver, and what is to be seen of them from outside."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from riverlog.client.cluster import ClientSettings, Cluster
from riverlog.model.network import Address
from riverlog.spark.sink.decisions import decision_log, task_prefix
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.broker.raw_client import RawClient, Served
from tests.delivery.reading import fill, make_topics, read_all
from tests.delivery.seeds import Seeded
from tests.delivery.spark_driver import START_S, SparkDriver
from tests.delivery.spark_pausing import COMMITTING, WRITING
from tests.delivery.spark_points import Points
from tests.delivery.spark_query import FOREACH_BATCH, STREAM
from tests.delivery.workers import until

QUERIES = ("random", "deterministic")
"""Each repartitions as its name says."""
PARTITIONS = 2
ROWS_A_BATCH = 60


@dataclass(slots=True)
class SparkRun:
    server: Served
    directory: Path
    chance: Seeded
    master: str
    settings: dict[str, str] = field(default_factory=dict)
    way: str = STREAM
    drivers: list[SparkDriver] = field(default_factory=list)
    rows: int = 0

    def make_topics(self) -> None:
        topics = [f"{query}-{end}" for query in QUERIES for end in ("in", "out")]
        make_topics(self.server.bootstrap_servers, PARTITIONS, *topics)

    def add_rows(self) -> None:
        """More than a batch for each query."""
        more = self.chance.dice.randint(ROWS_A_BATCH + 1, 2 * ROWS_A_BATCH)
        for query in QUERIES:
            values = [(number % PARTITIONS, str(number)) for number in range(self.rows, self.rows + more)]
            fill(self.server.bootstrap_servers, f"{query}-in", values)
        self.rows += more

    def start_driver(self) -> None:
        points = self._points(len(self.drivers))
        points.directory.mkdir()
        self.drivers.append(
            SparkDriver(
                self.directory,
                master=self.master,
                bootstrap=self.server.bootstrap_servers,
                points=str(points.directory),
                rows_a_batch=ROWS_A_BATCH,
                way=self.way,
                settings=self.settings,
            )
        )

    @property
    def driver(self) -> SparkDriver:
        return self.drivers[-1]

    @property
    def points(self) -> Points:
        """Those of the newest driver."""
        return self._points(len(self.drivers) - 1)

    @contextmanager
    def held_at(self, point: str, *queries: str, count: int = 1) -> Iterator[None]:
        """With more rows to read, the queries stay at this point, in `count` places each, in the block."""
        self.add_rows()
        with self.points.closed(point):
            self.driver.run(*queries)
            self._wait_at(point, queries, count)
            yield

    @contextmanager
    def held_in_second_epoch(self, *queries: str) -> Iterator[None]:
        """With two batches to read: the first is committed, and tasks of the second write."""
        with self.held_at(WRITING, *queries):
            self.points.close(COMMITTING)
        self._wait_at(COMMITTING, queries)
        first = {each["query"]: each["epoch"] for each in self.points.reached(COMMITTING)}
        with self.points.closed(WRITING):
            self.points.open(COMMITTING)
            self._wait_at(WRITING, queries)
            later = {each["query"]: each["epoch"] for each in self.points.reached(WRITING)}
            assert all(later[query] == first[query] + 1 for query in queries), (first, later)
            yield

    def _wait_at(self, point: str, queries: Sequence[str], count: int = 1) -> None:
        def are_there() -> bool:
            self.driver.assert_silent()
            there = Counter(each["query"] for each in self.points.reached(point))
            return all(there[query] >= count for query in queries)

        until(are_there, f"{queries} at {point}", START_S)

    def work_off(self, *queries: str) -> None:
        """Until everything is read, without a failure."""
        self.driver.run(*queries)
        self.expect_success()

    def expect_success(self) -> None:
        failures = {query: each for query, each in self.driver.outcomes().items() if each is not None}
        assert not failures, failures

    def attempts(self) -> Counter[str]:
        """How many attempts of tasks there were, by their number."""
        found: Counter[str] = Counter()
        for index in range(len(self.drivers)):
            found.update(f"attempt {each['attempt']}" for each in self._points(index).attempts())
        return found

    def open_transactions(self, query: str) -> set[str]:
        """Those of its tasks, as the coordinator has them."""
        with RawClient(self.server) as client:
            reply = client.ask(
                ApiKey.LIST_TRANSACTIONS, 0, ListTransactionsRequest(state_filters=["Ongoing"])
            )
        found = {str(each.transactional_id) for each in reply.transaction_states}
        return {each for each in found if each.startswith(task_prefix(self.identity(query)))}

    def decided_epoch(self, query: str) -> int | None:
        """The newest."""
        host, _, port = self.server.bootstrap_servers.rpartition(":")
        with Cluster(ClientSettings((Address(host, int(port)),), "test")) as cluster:
            log = decision_log(cluster, self.identity(query))
            decision = None if log is None else log.refresh()
        return None if decision is None else decision.epoch

    def identity(self, query: str) -> str:
        """What the sink knows it by."""
        metadata = json.loads((self.directory / "checkpoints" / query / "metadata").read_text())
        return f"{metadata['id']}:{query}-out" if self.way == FOREACH_BATCH else str(metadata["id"])

    def check_rows(self, *queries: str) -> None:
        """Each row once in the target, for a client that reads what is committed; nothing is left open."""
        wanted = Counter(str(number) for number in range(self.rows))
        for query in queries:
            reads = read_all(self.server.bootstrap_servers, f"{query}-out", PARTITIONS)
            found = Counter(each.value for each in reads)
            missing, doubled = wanted - found, found - wanted
            assert not missing, f"{query}: {missing.total()} rows are missing, as {sorted(missing)[:5]}"
            assert not doubled, f"{query}: {doubled.total()} rows too many, as {sorted(doubled)[:5]}"
            assert not self.open_transactions(query)

    def close(self) -> None:
        for driver in self.drivers:
            driver.__exit__(None, None, None)

    def _points(self, index: int) -> Points:
        return Points(self.directory / f"points-{index}")
