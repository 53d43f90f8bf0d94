"""Spark's own Kafka connector, which stands on the Java clients, reads and writes our broker.

Not about `format("riverlog")`, which tests/spark is for: what Spark's users have today works as it is.
"""

import os
import random
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit

from interop.conftest import Server
from riverlog.model.ids import TopicPartition as OurTopicPartition
from riverlog.spark.source.plan import Range, cut_ranges
from tests.spark.stopped_query import ROWS, errors_of_a_stop
from tests.spark.test_migrating import CONNECTOR as CONNECTOR_OPTIONS
from tests.spark.test_stop import OF_SPARK

CONNECTOR = Path(__file__).parent.parent / "scripts" / "spark-connector"
OPTIONS_BEGIN = ("starting", "ending", "failon", "fetchoffset.", "groupid", "include", "kafkaconsumer.",
                 "maxo", "maxr", "maxt", "mino", "minp", "subscribe")  # fmt: skip
PARTITIONS = 3
RECORDS = 600
START_MS = int(time.time() * 1000) - 60_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("connector")
        .config("spark.jars", _jars())
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
    # The JVM would keep the connector's producers, which go on looking for the broker.
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


def test_a_batch_read_has_every_column_of_every_record(spark: SparkSession, server: Server) -> None:
    _make(server, "read-batch")
    _fill(server, "read-batch", 0, RECORDS)
    found = _read(spark, server, "read-batch", includeHeaders="true").collect()
    assert sorted((row.partition, row.offset) for row in found) == [
        (number % PARTITIONS, number // PARTITIONS)
        for number in sorted(range(RECORDS), key=lambda each: (each % PARTITIONS, each))
    ]
    for row in found:
        number = row.offset * PARTITIONS + row.partition
        assert (bytes(row.key), bytes(row.value)) == _record(number)
        assert row.topic == "read-batch"
        assert round(row.timestamp.timestamp() * 1000) == START_MS + number
        assert row.timestampType == 0
        assert [(header.key, bytes(header.value)) for header in row.headers] == [("n", b"%d" % number)]


def test_offsets_are_found_by_time_and_for_a_pattern_of_topics(spark: SparkSession, server: Server) -> None:
    for topic in ("timed-a", "timed-b"):
        _make(server, topic)
        _fill(server, topic, 0, RECORDS)
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("subscribePattern", "timed-.*")
        .option("startingTimestamp", START_MS + 150)
        .option("endingTimestamp", START_MS + 450)
        .load()
    )
    found = sorted((row.topic, bytes(row.value)) for row in frame.collect())
    assert found == sorted(
        (topic, _record(number)[1]) for topic in ("timed-a", "timed-b") for number in range(150, 450)
    )


def test_a_stream_reads_on_from_its_checkpoint(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    _make(server, "read-stream")
    for start in (0, RECORDS):
        _fill(server, "read-stream", start, start + RECORDS)
        query = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", server.bootstrap)
            .option("subscribe", "read-stream")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", RECORDS // 2)
            .load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(90)
        assert len([each for each in query.recentProgress if each.numInputRows]) == 2
    found = sorted(
        (bytes(row.key), bytes(row.value)) for row in spark.read.parquet(str(tmp_path / "out")).collect()
    )
    assert found == sorted(map(_record, range(2 * RECORDS)))


def test_a_read_of_committed_records_leaves_aborted_ones_out(spark: SparkSession, server: Server) -> None:
    _make(server, "read-committed")
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "spark-interop"})
    producer.init_transactions(30)
    for number in range(30):
        producer.begin_transaction()
        key, value = _record(number)
        producer.produce("read-committed", value, key, partition=number % PARTITIONS)
        producer.flush(30)
        producer.abort_transaction(30) if number % 3 == 0 else producer.commit_transaction(30)
    options = {"kafka.isolation.level": "read_committed"}
    found = _read(spark, server, "read-committed", **options).collect()
    assert sorted(bytes(row.key) for row in found) == sorted(
        _record(number)[0] for number in range(30) if number % 3
    )


def test_what_spark_logs_when_a_query_is_stopped_within_an_epoch_is_the_same_for_the_connector(
    server: Server, tmp_path: Path
) -> None:
    """So it is for every sink, and nothing that a sink could avoid."""
    for topic in ("stopped-in", "stopped-out"):
        _make(server, topic)
    _fill(server, "stopped-in", 0, ROWS)
    directory = tmp_path / "driver"
    directory.mkdir()
    errors = errors_of_a_stop(
        server.bootstrap, "stopped-in", "stopped-out", directory, sink="kafka", jars=_jars()
    )
    found = [OF_SPARK.search(line) for line in errors]
    assert all(found), errors
    assert {each[2] or each[3] or "task" for each in found if each} == {
        "ing",
        "ed",
        "is aborting",
        "aborted",
        "task",
    }


def test_a_batch_write_is_read_back_by_another_client(spark: SparkSession, server: Server) -> None:
    _make(server, "written-batch")
    (
        _numbers(spark.range(RECORDS))
        .write.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("topic", "written-batch")
        .save()
    )
    assert sorted(_consume(server, "written-batch", RECORDS)) == sorted(map(_record, range(RECORDS)))


def test_a_stream_is_written_and_read_back_by_another_client(
    spark: SparkSession, server: Server, tmp_path: Path
) -> None:
    _make(server, "through-in")
    _make(server, "through-out")
    _fill(server, "through-in", 0, RECORDS)
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("subscribe", "through-in")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
        .select("key", "value", "headers", lit("through-out").alias("topic"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(90)
    assert sorted(_consume(server, "through-out", RECORDS)) == sorted(map(_record, range(RECORDS)))


def test_the_table_for_those_who_migrate_has_every_option_that_the_jar_names() -> None:
    """They are texts in its classes, in lower case."""
    jars = subprocess.run([CONNECTOR], capture_output=True, text=True, check=True, timeout=300).stdout
    [connector] = [each for each in jars.strip().split(",") if "spark-sql-kafka" in each]
    with zipfile.ZipFile(connector) as jar:
        provider = jar.read("org/apache/spark/sql/kafka010/KafkaSourceProvider.class")
        provider += jar.read("org/apache/spark/sql/kafka010/KafkaSourceProvider$.class")
        settings = jar.read("org/apache/spark/sql/kafka010/package$.class")
    named = {each.decode().lower() for each in re.findall(rb"spark\.kafka\.[a-zA-Z.]+", settings)}
    texts = set(_texts(provider))
    named |= {each for each in texts if each.startswith(OPTIONS_BEGIN)}
    assert named <= CONNECTOR_OPTIONS
    assert {each for each in CONNECTOR_OPTIONS if not each.startswith(("kafka.", "spark."))} <= texts


def test_our_source_cuts_offsets_into_the_same_tasks(spark: SparkSession) -> None:
    """The connector's own calculation, asked about many partitions, `minPartitions` and limits."""
    dice = random.Random(1)
    for _ in range(300):
        starts = [dice.randrange(50) for _ in range(dice.randint(1, 5))]
        sizes = [dice.choice([0, 1, dice.randrange(60), dice.randrange(2000)]) for _ in starts]
        ranges = [
            Range(OurTopicPartition("t", index), start, start + size)
            for index, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]
        least = dice.choice([None, dice.randint(1, 40)])
        most = dice.choice([None, dice.randint(1, 900)])
        ours = [(each.at.partition, each.start, each.end) for each in cut_ranges(ranges, least, most)]
        assert ours == _cut_by_connector(spark, ranges, least, most), (ranges, least, most)


def _cut_by_connector(
    spark: SparkSession, ranges: list[Range], least: int | None, most: int | None
) -> list[tuple[int, int, int]]:
    jvm = spark._jvm
    assert jvm is not None
    connector, convert = jvm.org.apache.spark.sql.kafka010, jvm.scala.jdk.javaapi.CollectionConverters
    options = {"minPartitions": least, "maxRecordsPerPartition": most}
    given = {name: str(value) for name, value in options.items() if value is not None}
    calculator = connector.KafkaOffsetRangeCalculator.apply(
        jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(given)
    )
    theirs = [
        connector.KafkaOffsetRange(
            jvm.org.apache.kafka.common.TopicPartition(each.at.topic, each.at.partition),
            each.start,
            each.end,
            jvm.scala.Option.empty(),
        )
        for each in ranges
    ]
    cut = calculator.getRanges(convert.asScala(theirs).toSeq(), convert.asScala([]).toSeq())
    return [(each.partition(), each.fromOffset(), each.untilOffset()) for each in convert.asJava(cut)]


def _texts(java_class: bytes) -> Iterator[str]:
    """Its constants of lower-case letters and dots: a tag, the length in two bytes, the text."""
    for found in re.finditer(rb"(?=\x01(..)([a-z][a-z.]{3,60}))", java_class, re.DOTALL):
        text = found[2][: int.from_bytes(found[1])]
        if len(text) == int.from_bytes(found[1]):
            yield text.decode()


def _record(number: int) -> tuple[bytes, bytes]:
    return b"key-%d" % number, b"value %d" % number


def _numbers(frame: DataFrame) -> DataFrame:
    number = col("id").cast("string")
    return frame.select(
        concat(lit("key-"), number).cast("binary").alias("key"),
        concat(lit("value "), number).cast("binary").alias("value"),
    )


def _read(spark: SparkSession, server: Server, topic: str, **options: str) -> DataFrame:
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", server.bootstrap)
        .option("subscribe", topic)
        .options(**options)
        .load()
    )


def _jars() -> str:
    return subprocess.run([CONNECTOR], capture_output=True, text=True, check=True, timeout=300).stdout.strip()


def _make(server: Server, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS)]).values():
        made.result(30)


def _fill(server: Server, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    for number in range(first, end):
        key, value = _record(number)
        producer.produce(
            topic,
            value,
            key,
            partition=number % PARTITIONS,
            timestamp=START_MS + number,
            headers=[("n", b"%d" % number)],
        )
    assert producer.flush(30) == 0


def _consume(server: Server, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    """All records, which must be as many as this and not one more."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, 30)[1] for place in places]
    consumer.assign(places)
    found: list[tuple[bytes | None, bytes | None]] = []
    deadline = time.monotonic() + 30
    while any(at.offset < end for at, end in zip(consumer.position(places), ends, strict=True)):
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.1):
            assert message.error() is None
            found.append((message.key(), message.value()))
    consumer.close()
    assert len(found) == count
    return found
