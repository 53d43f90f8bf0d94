"""How long Spark takes for a small batch: sources and sinks beside ones that do nothing, in one run.

A hundred rows a second, `local[2]`. The floor is a Python source and a Python sink that do no work: what
Spark itself needs to drive such a pair. A figure is the median time of a batch, or what it is over the floor.
The queries run one after the other, in rounds, so that what else the machine does hits all of them. A first
batch starts the query's own Python processes and is compared with the floor's first batch of the same round;
in the first round Spark warms up as well, the floor before all others, so that one is shown by itself.
"""

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from benchmarks import do_nothing
from benchmarks.figures import Aim, Figure
from benchmarks.servers import riverlog
from benchmarks.spark_rates import connector_jars

ROUNDS = 5
BATCHES = 8
ROWS_PER_S = 100
FIRST_AIM_MS = 1000.0
"""Over the floor's, in a Spark that has run such queries before."""
_PATIENCE_S = 180.0
NOTHING = do_nothing.NAME


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    source: str
    sink: str
    guarantee: str = ""
    aim_ms: float | None = None
    """Over the floor."""


FLOOR = Pair("floor", NOTHING, NOTHING)
PAIRS = (
    FLOOR,
    Pair("source", "riverlog", NOTHING, aim_ms=20),
    Pair("sink, at least once", NOTHING, "riverlog", "at-least-once", aim_ms=30),
    Pair("sink, exactly once", NOTHING, "riverlog", "exactly-once", aim_ms=60),
    Pair("source and sink, exactly once", "riverlog", "riverlog", "exactly-once"),
)
CONNECTOR = (Pair("connector, source", "kafka", NOTHING), Pair("connector, both", "kafka", "kafka"))


@dataclass(frozen=True, slots=True)
class Batches:
    first_ms: float
    median_ms: float


def run() -> list[Figure]:
    jars = connector_jars()
    pairs = PAIRS if jars is None else PAIRS + CONNECTOR
    with tempfile.TemporaryDirectory() as directory, riverlog(Path(directory) / "data") as broker:
        servers = "{}:{}".format(*broker.address)
        _create(servers)
        with _session(jars) as spark, _trickling(servers):
            measured = [
                {
                    pair: _measure(spark, servers, Path(directory) / f"{number}-{index}", pair)
                    for index, pair in enumerate(pairs)
                }
                for number in range(ROUNDS)
            ]
    return list(_figures(pairs, measured))


def _figures(pairs: tuple[Pair, ...], rounds: list[dict[Pair, Batches]]) -> Iterator[Figure]:
    later = [{pair: each.median_ms for pair, each in measured.items()} for measured in rounds]
    first = [{pair: each.first_ms for pair, each in measured.items()} for measured in rounds]
    for pair in pairs:
        yield from _beside_the_floor("small batch", pair, later, pair.aim_ms)
        first_aim = None if pair.aim_ms is None else FIRST_AIM_MS
        yield from _beside_the_floor("first batch", pair, first[1:], first_aim)
        yield Figure(f"first batch while Spark warms up, {pair.name}", first[0][pair], "ms")


def _beside_the_floor(
    what: str, pair: Pair, rounds: list[dict[Pair, float]], aim_ms: float | None
) -> Iterator[Figure]:
    floor = statistics.median(each[FLOOR] for each in rounds)
    yield Figure(
        f"{what}, {pair.name}", statistics.median(each[pair] for each in rounds), "ms", floor, "floor"
    )
    if aim_ms is not None:
        over = statistics.median(each[pair] - each[FLOOR] for each in rounds)
        yield Figure(f"{what}, {pair.name}, over the floor", over, "ms", aim=Aim(at_most=aim_ms))


def _measure(spark: SparkSession, servers: str, checkpoint: Path, pair: Pair) -> Batches:
    address = {"kafka.bootstrap.servers": servers}
    reader = spark.readStream.format(pair.source)
    if pair.source != NOTHING:
        reader = reader.options(**address, subscribe="in")
    writer = reader.load().select("value").writeStream.format(pair.sink)
    if pair.sink != NOTHING:
        writer = writer.options(**address, topic="out")
    if pair.guarantee:
        writer = writer.option("deliveryGuarantee", pair.guarantee)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while len(times := _times(query.recentProgress)) <= BATCHES:
            assert time.monotonic() < deadline, f"{pair.name}: {len(times)} batches"
            time.sleep(0.1)
    finally:
        query.stop()
    return Batches(times[0], statistics.median(times[-BATCHES:]))


def _times(progress: object) -> list[float]:
    """Of the batches that had rows, but for the first."""
    assert isinstance(progress, list)
    return [
        float(each["durationMs"]["triggerExecution"])
        for index, each in enumerate(progress)
        if "addBatch" in each["durationMs"] and (index == 0 or each["numInputRows"])
    ]


@contextmanager
def _session(jars: str | None) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("riverlog-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
    )
    spark = (builder if jars is None else builder.config("spark.jars", jars)).getOrCreate()
    # The workers need not find this package.
    cloudpickle.register_pickle_by_value(do_nothing)  # type: ignore[no-untyped-call]
    spark.dataSource.register(do_nothing.DoNothing)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _trickling(servers: str) -> Iterator[None]:
    stop = threading.Event()

    def send() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        while not stop.wait(1 / ROWS_PER_S):
            producer.produce("in", b"x" * 100)
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=send, name="trickle")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _create(servers: str) -> None:
    topics = [NewTopic(name, num_partitions=1) for name in ("in", "out")]
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics(topics).values():
        created.result(30)
