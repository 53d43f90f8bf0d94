"""Transactions of 100 records, one after the other, from one client of the kind that applications use."""

import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from benchmarks import load
from benchmarks.figures import Aim, Figure
from benchmarks.servers import Server, riverlog

RECORDS = 100
VALUE = bytes(100)
WARM_UP_S = 1.0
MEASURED_S = 8.0


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory, riverlog(Path(directory)) as broker:
        with load.connect(broker.address) as client:
            load.call(client, load.Frames("paid").create())
        return _measure(broker, _producer(broker))


def _producer(broker: Server) -> Producer:
    host, port = broker.address
    producer = Producer({"bootstrap.servers": f"{host}:{port}", "transactional.id": "bench"})
    producer.init_transactions(30)
    return producer


def _measure(broker: Server, producer: Producer) -> list[Figure]:
    _transactions(producer, WARM_UP_S)
    busy_before, own_before, started = broker.cpu_s, time.process_time(), time.perf_counter()
    count = _transactions(producer, MEASURED_S)
    elapsed = time.perf_counter() - started
    busy_ms = (broker.cpu_s - busy_before) / count * 1e3
    own_ms = (time.process_time() - own_before) / count * 1e3
    name = f"transactions of {RECORDS} records, one client"
    return [
        Figure(name, count / elapsed, "per s", aim=Aim(at_least=200)),
        Figure("broker CPU per transaction", busy_ms, "ms"),
        Figure("client CPU per transaction", own_ms, "ms"),
    ]


def _transactions(producer: Producer, duration_s: float) -> int:
    count, end = 0, time.perf_counter() + duration_s
    while time.perf_counter() < end:
        producer.begin_transaction()
        for _ in range(RECORDS):
            producer.produce("paid", VALUE)
        producer.commit_transaction(30)
        count += 1
    return count
