"""The Spark sink on Apache Kafka itself: drivers are killed while they write, and each row is there once.

Kafka has no transactions without a timeout; the longest that it allows is much longer than this test.
"""

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.conftest import KAFKA
from tests.delivery.seeds import seeded
from tests.delivery.spark_pausing import COMMITTING, DECIDED, ONE_ENDED, WRITTEN
from tests.delivery.spark_run import QUERIES, SparkRun
from tests.delivery.test_spark_exactly_once import RETRYING, kill_driver
from tests.waiting import eventually


@dataclass(frozen=True, slots=True)
class Kafka:
    bootstrap_servers: str


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    port = _free_port()
    command = [str(KAFKA), "serve", str(port), str(tmp_path / "kafka")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _is_up(port), "Apache Kafka is not up", timeout_s=180)
        yield Kafka(f"127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(1200)
def test_each_row_is_written_once_though_drivers_are_killed(
    kafka: Kafka, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = SparkRun(kafka, tmp_path, seeded(request), RETRYING)
    run.make_topics()
    faults: Counter[str] = Counter()
    try:
        for point in (WRITTEN, COMMITTING, DECIDED, ONE_ENDED):
            run.start_driver()
            kill_driver(run, point, faults)
        run.start_driver()
        run.work_off(*QUERIES)
        run.check_rows(*QUERIES)
    finally:
        run.close()
    assert faults.total() == 4 * len(QUERIES)


def _free_port() -> int:
    """One with the next one free as well, which its controller takes."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def _is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
