"""How long a record takes through a pipeline that is kept running: from the producer to the target topic.

The generated project of `riverlog pipeline init` (decode, sink with exactly-once) on a local Spark and an
embedded broker; one record at a time, seen by a reader of committed records.

    python -m benchmarks.pipeline_latency --records 60
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
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.testing import Broker

_START_TIMEOUT_S = 300.0
_RECORD_TIMEOUT_S = 60.0
_PAUSE_S = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=60)
    parser.add_argument("--master", default="local[2]")
    chosen = parser.parse_args()
    with Broker() as broker, tempfile.TemporaryDirectory() as directory:
        for topic in ("orders", "orders.clean", "orders.dead"):
            broker.create_topic(topic)
        delays = _measure(broker.bootstrap_servers, directory, chosen.master, chosen.records)
    delays.sort()
    print(f"records {len(delays)}, master {chosen.master}, load {os.getloadavg()[0]:.1f}")
    print(
        f"ms from send to committed in the target: median {statistics.median(delays):.0f}, "
        f"p95 {delays[int(len(delays) * 0.95)]:.0f}, max {delays[-1]:.0f}"
    )


def _measure(bootstrap: str, directory: str, master: str, records: int) -> list[float]:
    riverlog = str(Path(sys.executable).with_name("riverlog"))
    environ = {**os.environ, "RIVERLOG_BOOTSTRAP": bootstrap}
    subprocess.run([riverlog, "pipeline", "init", "shop"], cwd=directory, env=environ, check=True)
    runner = subprocess.Popen(
        [riverlog, "pipeline", "run", "shop", "--master", master], cwd=directory, env=environ
    )
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "l", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("orders.clean", 0, 0)])
    try:
        _one(producer, consumer, _START_TIMEOUT_S)
        for _ in range(5):
            _one(producer, consumer, _RECORD_TIMEOUT_S)
        return [_one(producer, consumer, _RECORD_TIMEOUT_S) for _ in range(records)]
    finally:
        consumer.close()
        runner.send_signal(signal.SIGTERM)
        print(f"the runner ended with {runner.wait(120)}")


def _one(producer: Producer, consumer: Consumer, timeout_s: float) -> float:
    """Milliseconds until the record is out."""
    time.sleep(_PAUSE_S)
    began = time.monotonic()
    producer.produce("orders", json.dumps({"id": 1, "region": "eu", "amount": 2.0}).encode())
    producer.flush(30)
    while time.monotonic() - began < timeout_s:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            return (time.monotonic() - began) * 1000
    raise TimeoutError(f"no record came out within {timeout_s:g} s")


if __name__ == "__main__":
    main()
