"""How long a record takes through a pipeline that is kept running: from the producer to the target topic.

The generated project of `riverlog pipeline init` (decode, sink with exactly-once) on a local Spark and an
embedded broker; one record at a time, seen by a reader of committed records.

    python -m benchmarks.pipeline_latency --records 60
    python -m benchmarks.pipeline_latency --first-batch 5

With `--first-batch` it is how long the first batch takes where Spark is warm: a Connect server that has run
the project before. From when the command has loaded its modules, and from its start as a process.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.testing import Broker

_START_TIMEOUT_S = 300.0
_RECORD_TIMEOUT_S = 60.0
_PAUSE_S = 0.3
_RIVERLOG = str(Path(sys.executable).with_name("riverlog"))
_ORDER = json.dumps({"id": 1, "region": "eu", "amount": 2.0}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=60)
    parser.add_argument("--first-batch", type=int, default=0, metavar="RUNS")
    parser.add_argument("--master", default="local[2]")
    chosen = parser.parse_args()
    with Broker() as broker, tempfile.TemporaryDirectory() as directory:
        for topic in ("orders", "orders.clean", "orders.dead"):
            broker.create_topic(topic)
        if chosen.first_batch:
            _show_first_batches(broker.bootstrap_servers, directory, chosen.master, chosen.first_batch)
            return
        delays = _measure(broker.bootstrap_servers, directory, chosen.master, chosen.records)
    delays.sort()
    print(f"records {len(delays)}, master {chosen.master}, load {os.getloadavg()[0]:.1f}")
    print(
        f"ms from send to committed in the target: median {statistics.median(delays):.0f}, "
        f"p95 {delays[int(len(delays) * 0.95)]:.0f}, max {delays[-1]:.0f}"
    )


def _show_first_batches(bootstrap: str, directory: str, master: str, runs: int) -> None:
    """The record is there before the run begins, so that it is in the first batch."""
    environ = _with_project(bootstrap, directory)
    producer, consumer = _clients(bootstrap)
    from_start: list[float] = []
    from_lock: list[float] = []
    with _connect_server(master, directory) as url:
        for _ in range(runs + 1):
            producer.produce("orders", _ORDER)
            producer.flush(30)
            began = time.monotonic()
            runner = _runner(url, directory, environ)
            try:
                locked = _when_locked(Path(directory) / "shop", runner, began)
                _await_record(consumer, _START_TIMEOUT_S)
                from_start.append(time.monotonic() - began)
                from_lock.append(time.monotonic() - locked)
            finally:
                runner.send_signal(signal.SIGTERM)
                runner.wait(120)
    consumer.close()
    print(f"runs {runs} after one, master {master}, load {os.getloadavg()[0]:.1f}")
    for name, values in (("it is loaded", from_lock[1:]), ("the process starts", from_start[1:])):
        each = ", ".join(f"{value:.2f}" for value in values)
        print(
            f"s to the first committed record since {name}: median {statistics.median(values):.2f} ({each})"
        )


def _when_locked(project: Path, runner: "subprocess.Popen[bytes]", began: float) -> float:
    """The runner takes the project's lock when its own imports are done."""
    while time.monotonic() - began < _START_TIMEOUT_S:
        if any(f'"pid": {runner.pid}' in lock.read_text() for lock in project.rglob("runner.lock")):
            return time.monotonic()
        time.sleep(0.01)
    raise TimeoutError("the runner has not begun")


@contextmanager
def _connect_server(master: str, directory: str) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.spark.connect_server", master, directory]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        line = b""
        while not line.startswith(b"port "):
            line = server.stdout.readline()
            assert line, "the Spark Connect server has ended"
        try:
            yield f"sc://localhost:{int(line.split()[1])}"
        finally:
            server.stdin.close()


def _measure(bootstrap: str, directory: str, master: str, records: int) -> list[float]:
    environ = _with_project(bootstrap, directory)
    runner = _runner(master, directory, environ)
    producer, consumer = _clients(bootstrap)
    try:
        _one(producer, consumer, _START_TIMEOUT_S)
        for _ in range(5):
            _one(producer, consumer, _RECORD_TIMEOUT_S)
        return [_one(producer, consumer, _RECORD_TIMEOUT_S) for _ in range(records)]
    finally:
        consumer.close()
        runner.send_signal(signal.SIGTERM)
        print(f"the runner ended with {runner.wait(120)}")


def _with_project(bootstrap: str, directory: str) -> dict[str, str]:
    environ = {**os.environ, "RIVERLOG_BOOTSTRAP": bootstrap}
    subprocess.run([_RIVERLOG, "pipeline", "init", "shop"], cwd=directory, env=environ, check=True)
    return environ


def _runner(master: str, directory: str, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [_RIVERLOG, "pipeline", "run", "shop", "--master", master], cwd=directory, env=environ
    )


def _clients(bootstrap: str) -> tuple[Producer, Consumer]:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "l", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("orders.clean", 0, 0)])
    return producer, consumer


def _one(producer: Producer, consumer: Consumer, timeout_s: float) -> float:
    """Milliseconds until the record is out."""
    time.sleep(_PAUSE_S)
    began = time.monotonic()
    producer.produce("orders", _ORDER)
    producer.flush(30)
    _await_record(consumer, timeout_s)
    return (time.monotonic() - began) * 1000


def _await_record(consumer: Consumer, timeout_s: float) -> None:
    began = time.monotonic()
    while time.monotonic() - began < timeout_s:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            return
    raise TimeoutError(f"no record came out within {timeout_s:g} s")


if __name__ == "__main__":
    main()
