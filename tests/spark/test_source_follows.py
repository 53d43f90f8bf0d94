"""One DataFrame, several queries: each sees the topic as it is then, whatever the queries before it asked."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

from riverlog.spark import latest_by_key
from riverlog.testing import Broker
from tests.spark.logs import batch, numbered, put, stream, values
from tests.spark.pipeline_parts import Pipelines, committed_values, produce, wait_for_values

EXAMPLES = Path(__file__).parents[2] / "examples"


def add_partitions(broker: Broker, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(10)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_second_query_sees_what_has_come_since_the_first(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("grows", 2)
    put(broker, "grows", numbered(0, 50))
    frame = batch(spark, broker, subscribe="grows")
    cut = batch(spark, broker, subscribe="grows", minPartitions=5)
    # Up to a time that is to come, from one that everything is later than.
    times = {
        "startingTimestamp": 1,
        "startingOffsetsByTimestampStrategy": "latest",
        "endingTimestamp": 1 << 52,
    }
    timed = batch(spark, broker, subscribe="grows", **times)
    frame.createOrReplaceTempView("grows")
    assert (frame.count(), cut.count(), timed.count(), spark.table("grows").count()) == (50, 50, 50, 50)
    put(broker, "grows", numbered(50, 57))
    put(broker, "grows", numbered(57, 60), partition=1)
    add_partitions(broker, "grows", 4)
    put(broker, "grows", numbered(60, 61), partition=2)
    put(broker, "grows", numbered(61, 62), partition=3)
    assert values(frame) == values(cut) == values(timed) == numbered(0, 62)
    assert spark.sql("select count(*) as rows from grows").first() == (62,)


def test_a_topic_that_matches_the_pattern_later_is_read_by_the_next_query(
    spark: SparkSession, broker: Broker
) -> None:
    frame = batch(spark, broker, subscribePattern="^later-")
    assert frame.count() == 0
    broker.create_topic("later-a", 3)
    for partition in range(3):
        put(broker, "later-a", numbered(partition, partition + 1), partition=partition)
    assert values(frame) == numbered(0, 3)


def test_bounds_that_were_given_as_numbers_stay(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("bounded")
    put(broker, "bounded", numbered(0, 10))
    bounds = {"startingOffsets": '{"bounded": {"0": 2}}', "endingOffsets": '{"bounded": {"0": 8}}'}
    frame = batch(spark, broker, subscribe="bounded", minPartitions=3, **bounds)
    assert values(frame) == numbered(2, 8)
    put(broker, "bounded", numbered(10, 20))
    assert values(frame) == numbered(2, 8)


def test_what_one_query_filters_the_next_one_still_sees(
    spark: SparkSession, broker: Broker, pushing: None
) -> None:
    broker.create_topic("filtered", 3)
    for partition in range(3):
        put(broker, "filtered", numbered(0, 100), partition=partition)
    frame = batch(spark, broker, subscribe="filtered")
    assert frame.count() == 300
    assert frame.filter("offset < 5").count() == 15
    assert frame.count() == 300
    assert frame.filter("partition = 1 and topic = 'filtered'").count() == 100
    assert frame.filter("timestamp > timestamp_millis(0)").count() == 300
    few, all_of_it = frame.filter("offset < 5").alias("few"), frame.alias("whole")
    assert few.join(all_of_it, "offset").count() == 5 * 3 * 3
    assert frame.filter("offset < 5").union(frame.filter("offset >= 90")).count() == 15 + 30
    assert frame.count() == 300


def test_a_stream_is_joined_with_the_table_as_it_is_at_each_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("table", 2)
    broker.create_topic("events")
    put(broker, "table", ["old"], key=b"k")
    table = latest_by_key(batch(spark, broker, subscribe="table")).selectExpr("key", "value as state")
    events = stream(spark, broker, subscribe="events", startingOffsets="earliest")
    joined: list[tuple[str, str]] = []

    def collect(frame: DataFrame, _: int) -> None:
        rows = frame.selectExpr("cast(value as string) event", "cast(state as string) state").collect()
        joined.extend((row.event, row.state) for row in rows)

    query = (
        events.join(table, "key")
        .writeStream.foreachBatch(collect)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        for event, state in (("first", "new"), ("second", "newer"), ("third", "newest")):
            put(broker, "table", [state], key=b"k")
            put(broker, "events", [event], key=b"k")
            query.processAllAvailable()
    finally:
        query.stop()
    assert joined == [("first", "new"), ("second", "newer"), ("third", "newest")]


def test_over_spark_connect_a_second_query_sees_what_has_come(broker: Broker, spark_connect: str) -> None:
    broker.create_topic("connected")
    put(broker, "connected", numbered(0, 5))
    command = [sys.executable, "-m", "tests.spark.connect_counts", spark_connect]
    client = subprocess.Popen(
        [*command, broker.bootstrap_servers, "connected"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=EXAMPLES.parent,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    with client:
        counts = []
        for _ in range(2):
            client.stdin.write("count\n")
            client.stdin.flush()
            counts.append(client.stdout.readline().split())
            put(broker, "connected", numbered(5, 9))
    assert counts == [["5", "3", "5", "5"], ["9", "3", "9", "9"]]


def test_a_pipeline_that_runs_on_joins_with_the_table_as_it_is_then(
    broker: Broker, tmp_path: Path, spark_connect: str
) -> None:
    shutil.copytree(EXAMPLES / "orders_with_customers", tmp_path / "joined")
    spec = tmp_path / "joined" / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/riverlog-examples", (tmp_path / "s").as_uri()))
    for topic in ("orders", "orders.enriched", "customers"):
        broker.create_topic(topic)
    at = broker.bootstrap_servers
    with Pipelines(tmp_path, at, spark_connect).start("joined") as runner:
        for number, name in enumerate(["Ada", "Ada Lovelace"]):
            put(broker, "customers", [f'{{"name": "{name}"}}'], key=b"ada")
            produce(at, "orders", [f'{{"id": {number}, "customer": "ada", "cents": 1}}'])
            wait_for_values(at, "orders.enriched", number + 1, runner)
        assert runner.terminate().code == 0
    first, second = committed_values(at, "orders.enriched")
    assert '"name":"Ada"' in first
    assert '"name":"Ada Lovelace"' in second


@pytest.fixture(scope="module")
def ten(broker: Broker) -> Broker:
    """With ten records in a topic of that name, the first two of which are deleted."""
    broker.create_topic("ten")
    put(broker, "ten", numbered(0, 10))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [deleted] = admin.delete_records([TopicPartition("ten", 0, 2)]).values()
    deleted.result(10)
    return broker


def between(starting: int, ending: int) -> dict[str, str]:
    return {
        "subscribe": "ten",
        "startingOffsets": f'{{"ten": {{"0": {starting}}}}}',
        "endingOffsets": f'{{"ten": {{"0": {ending}}}}}',
    }


@pytest.mark.parametrize(
    ("starting", "ending", "missing"),
    [
        (20, 30, "offsets 20 to 29 of partition 0 of topic ten cannot be read: the log ends at 10"),
        (5, 30, "offsets 10 to 29 of partition 0 of topic ten cannot be read: the log ends at 10"),
        (0, 5, "offsets 0 to 1 of partition 0 of topic ten cannot be read: the log begins at 2"),
        (0, 2, "offsets 0 to 1 of partition 0 of topic ten cannot be read: the log begins at 2"),
    ],
)
def test_offsets_that_the_log_does_not_have_are_an_error_unless_loss_is_allowed(
    spark: SparkSession, ten: Broker, starting: int, ending: int, missing: str
) -> None:
    with pytest.raises(AnalysisException, match=missing):
        batch(spark, ten, **between(starting, ending)).count()
    allowed = batch(spark, ten, failOnDataLoss=False, **between(starting, ending))
    assert values(allowed) == numbered(max(starting, 2), min(ending, 10))


@pytest.mark.parametrize(("starting", "ending", "end"), [(20, -1, 10), (8, 5, 5)])
def test_a_batch_that_begins_after_its_end_is_an_error_as_with_sparks_connector(
    spark: SparkSession, ten: Broker, starting: int, ending: int, end: int
) -> None:
    complaint = f"begin at offset {starting} of partition 0 of topic ten, after its end at {end}"
    for allowed in (False, True):
        with pytest.raises(AnalysisException, match=complaint):
            batch(spark, ten, failOnDataLoss=not allowed, **between(starting, ending)).count()


def test_a_batch_at_the_end_of_the_log_is_empty(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("at-end")
    put(broker, "at-end", numbered(0, 3))
    frame = batch(spark, broker, subscribe="at-end", startingOffsets='{"at-end": {"0": 3}}')
    assert frame.count() == 0
    put(broker, "at-end", numbered(3, 4))
    assert values(frame) == numbered(3, 4)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["at-end"])["at-end"].result(10)
    with pytest.raises(PythonException, match="topic at-end does not exist"):
        frame.count()
