"""The sink as Spark drives it: batches, streams, repeated epochs, and errors that people can read."""

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import rand
from pyspark.sql.streaming.query import StreamingQuery

from riverlog.client.cluster import Cluster
from riverlog.client.open_transactions import list_open
from riverlog.records.murmur2 import partition_for_key
from riverlog.testing import Broker
from tests.spark.sink_parts import messages_of, options_for, read_committed, values_of
from tests.waiting import eventually

_names = itertools.count()
_PATIENCE_S = 200


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"out-{next(_names)}"
    broker.create_topic(name, partitions=3)
    return name


def write(rows: DataFrame, broker: Broker, topic: str | None, **options: str) -> None:
    writer = rows.write.format("riverlog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    if topic is not None:
        writer = writer.option("topic", topic)
    writer.options(**options).mode("append").save()


def open_transactions(broker: Broker) -> set[str]:
    with Cluster(options_for(broker, None).client) as cluster:
        return list_open(cluster, "riverlog-spark/")


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=2).selectExpr("cast(id as string) as value")


def test_all_columns_of_sparks_connector_are_written(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = spark.sql(
        f"""select * from values
        ('k1', cast('v1' as binary), '{topic}', cast(null as int), array(struct('h', cast('x' as binary)))),
        ('k2', cast('v2' as binary), '{topic}', 2, null),
        (null, null, '{topic}', 0, array()) as t(key, value, topic, partition, headers)"""
    ).selectExpr(
        "key",
        "value",
        "topic",
        "partition",
        "cast(headers as array<struct<key:string,value:binary>>) headers",
    )
    write(rows, broker, None)
    found = {
        (each.partition(), each.key(), each.value(), tuple(each.headers() or ()))
        for each in messages_of(broker, topic)
    }
    assert found == {
        (partition_for_key(b"k1", 3), b"k1", b"v1", (("h", b"x"),)),
        (2, b"k2", b"v2", ()),
        (0, None, None, ()),
    }


def test_every_key_goes_where_the_java_client_puts_it(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    rows = spark.range(500).selectExpr("concat('key-', id) as key", "cast(id as string) as value")
    write(rows, broker, topic)
    found = read_committed(broker, topic)
    assert {(p, k) for p, k, _ in found} == {
        (partition_for_key(b"key-%d" % n, 3), b"key-%d" % n) for n in range(500)
    }
    assert len(found) == 500


def test_a_batch_is_written_again_unless_its_write_id_repeats(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    write(numbers(spark, 3), broker, topic)
    write(numbers(spark, 3), broker, topic)
    write(numbers(spark, 3), broker, topic, writeId=f"load of {topic}")
    write(numbers(spark, 3), broker, topic, writeId=f"load of {topic}")
    assert values_of(broker, topic) == {b"0": 3, b"1": 3, b"2": 3}
    assert open_transactions(broker) == set()


def test_of_a_batch_that_fails_nothing_is_left(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = spark.range(2000, numPartitions=2).selectExpr(
        "cast(if(id = 1999, raise_error('the last row'), id) as string) as value"
    )
    with pytest.raises(PySparkException, match="the last row"):
        write(rows, broker, topic)
    assert open_transactions(broker) == set()
    assert values_of(broker, topic) == {}


def test_at_least_once_leaves_no_transactions(spark: SparkSession, broker: Broker, topic: str) -> None:
    before = transactional_ids(broker)
    write(
        numbers(spark, 5),
        broker,
        topic,
        deliveryGuarantee="at-least-once",
        **{"kafka.compression.type": "lz4"},
    )
    assert values_of(broker, topic) == {b"%d" % n: 1 for n in range(5)}
    assert transactional_ids(broker) == before


def transactional_ids(broker: Broker) -> set[str]:
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.list_transactions import ListTransactionsRequest

    with Cluster(options_for(broker, None).client) as cluster:
        listed = cluster.ask_any(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        return {each.transactional_id for each in listed.transaction_states}


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("overwrite", {"topic": "t"}, 'a topic cannot be overwritten; use mode("append")'),
        ("append", {}, "a row has no topic; give the option topic"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_line(
    spark: SparkSession, broker: Broker, mode: str, options: dict[str, str], message: str
) -> None:
    """The first is found on the driver, the second by a task; `test_sink_rows` has the others."""
    rows = spark.range(1).selectExpr("cast(id as string) value", "cast(null as string) topic")
    writer = rows.write.format("riverlog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(PySparkException) as caught:
        writer.options(**options).mode(mode).save()
    assert any(message in line for line in str(caught.value).splitlines())


def started(rows: DataFrame, broker: Broker, topic: str, checkpoint: Path) -> StreamingQuery:
    return (
        rows.writeStream.format("riverlog")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def lines(spark: SparkSession, files: Path) -> DataFrame:
    return spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(files))


def test_epochs_that_are_repeated_after_a_lost_commit_log_are_not_written_again(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    files, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    files.mkdir()
    (files / "1.txt").write_text("a\nb\nc\nd\n")
    (files / "2.txt").write_text("e\nf\n")
    rows = lines(spark, files).repartition(2, rand())
    assert started(rows, broker, topic, checkpoint).awaitTermination(_PATIENCE_S)
    expected = dict.fromkeys([b"a", b"b", b"c", b"d", b"e", b"f"], 1)
    assert values_of(broker, topic) == expected
    # As if the driver had been killed after the sink's commit and before Spark's own.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    (files / "3.txt").write_text("g\n")
    assert started(rows, broker, topic, checkpoint).awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == {**expected, b"g": 1}
    assert open_transactions(broker) == set()


def test_an_epoch_that_fails_is_written_once_when_it_succeeds(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    files, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    files.mkdir()
    (files / "1.txt").write_text("".join(f"{n}\n" for n in range(100)) + "bad\n")
    failing = lines(spark, files).selectExpr("if(value = 'bad', raise_error('not yet'), value) as value")
    with pytest.raises(PySparkException, match="not yet"):
        started(failing, broker, topic, checkpoint).awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == {}
    assert started(lines(spark, files), broker, topic, checkpoint).awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == Counter([b"bad", *(b"%d" % n for n in range(100))])


def test_transactional_ids_do_not_pile_up_with_batch_writes(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """Also not where two threads of a driver write at the same time."""

    def write_four(number: int) -> None:
        # Made in the thread: this makes the session known to it.
        write(spark.createDataFrame([(f"{number}",)] * 4, "value string"), broker, topic)

    counts = []
    with ThreadPoolExecutor(2) as threads:
        for first in range(0, 24, 2):
            list(threads.map(write_four, (first, first + 1)))
            counts.append(len(transactional_ids(broker)))
    assert values_of(broker, topic) == {b"%d" % number: 4 for number in range(24)}
    # Two processes that plan and three that write is as many as there can be at first.
    assert counts[-1] == counts[5], counts
    assert open_transactions(broker) == set()


def has_ended_or_reached_batch_12(query: StreamingQuery) -> bool:
    progress = query.lastProgress
    return not query.isActive or (progress is not None and progress["batchId"] >= 12)


def test_queries_of_one_driver_commit_at_the_same_time(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Spark has any idle worker commit, so that each query is now in this one, now in that one."""
    names = [f"side-{next(_names)}" for _ in range(3)]
    queries = []
    for name in names:
        broker.create_topic(name, partitions=1)
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        writer = rate.selectExpr("cast(value as string) as value").writeStream.format("riverlog")
        writer = writer.options(**{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": name})
        queries.append(writer.option("checkpointLocation", str(tmp_path / name)).start())
    try:
        eventually(lambda: all(map(has_ended_or_reached_batch_12, queries)), timeout_s=_PATIENCE_S)
        assert [each.exception() for each in queries] == [None] * 3
    finally:
        for each in queries:
            each.stop()
    for name in names:
        found = values_of(broker, name)
        assert set(found.values()) == {1}
        assert len(found) >= 36
