"""`ForeachBatchWriter` as Spark calls it: updates, repeated batches, several writes of one, Spark Connect."""

import itertools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import rand
from pyspark.sql.streaming.query import StreamingQuery

from riverlog.client.cluster import Cluster
from riverlog.model.errors import RiverlogError
from riverlog.spark import ForeachBatchWriter
from riverlog.spark.connection import OptionError
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.spark.sink_parts import options_for, values_of

_names = itertools.count()
_PATIENCE_S = 200
BOOTSTRAP = "kafka.bootstrap.servers"


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"each-{next(_names)}"
    broker.create_topic(name, partitions=2)
    return name


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "in"
    directory.mkdir()
    return directory


def lines(spark: SparkSession, files: Path) -> DataFrame:
    return spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(files))


def started(
    rows: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: Path, mode: str = "append"
) -> StreamingQuery:
    return (
        rows.writeStream.outputMode(mode)
        .foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def forget_commit(checkpoint: Path, batch: int) -> None:
    """As if the driver had been killed after the sink's commit and before Spark's own."""
    (checkpoint / "commits" / str(batch)).unlink()
    (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def transactional_ids(broker: Broker, *states: str) -> set[str]:
    with Cluster(options_for(broker, None).client) as cluster:
        request = ListTransactionsRequest(state_filters=list(states))
        listed = cluster.ask_any(ApiKey.LIST_TRANSACTIONS, request)
        return {each.transactional_id for each in listed.transaction_states}


def test_rows_that_a_batch_updates_are_written_once_each(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    (files / "1.txt").write_text("a\nb\na\n")
    (files / "2.txt").write_text("a\n")
    counts = lines(spark, files).groupBy("value").count()
    told = counts.selectExpr("value as key", "concat(value, '=', count) as value")
    write = ForeachBatchWriter({BOOTSTRAP: broker.bootstrap_servers, "topic": topic})
    assert started(told, write, tmp_path / "checkpoint", "update").awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == {b"a=2": 1, b"b=1": 1, b"a=3": 1}


def test_a_batch_that_spark_repeats_is_not_written_again(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    (files / "1.txt").write_text("a\nb\n")
    (files / "2.txt").write_text("c\nd\n")
    rows = lines(spark, files).repartition(2, rand())
    write = ForeachBatchWriter({BOOTSTRAP: broker.bootstrap_servers, "topic": topic})
    assert started(rows, write, checkpoint).awaitTermination(_PATIENCE_S)
    forget_commit(checkpoint, 1)
    (files / "3.txt").write_text("e\n")
    assert started(rows, write, checkpoint).awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == dict.fromkeys([b"a", b"b", b"c", b"d", b"e"], 1)
    assert transactional_ids(broker, "Ongoing") == set()


def test_a_batch_that_fails_between_two_writers_is_completed_by_the_next_run(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    (files / "1.txt").write_text("a\nb\n")
    broker.create_topic(f"{topic}-copy")
    options = {BOOTSTRAP: broker.bootstrap_servers}
    first = ForeachBatchWriter({**options, "topic": topic})
    second = ForeachBatchWriter({**options, "topic": f"{topic}-copy"})
    has_failed: list[int] = []

    def write(rows: DataFrame, batch_id: int) -> None:
        first(rows, batch_id)
        if not has_failed:
            has_failed.append(batch_id)
            raise RiverlogError("between the two")
        second(rows, batch_id)

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(PySparkException, match="between the two"):
        started(lines(spark, files), write, checkpoint).awaitTermination(_PATIENCE_S)
    assert started(lines(spark, files), write, checkpoint).awaitTermination(_PATIENCE_S)
    for each in (topic, f"{topic}-copy"):
        assert values_of(broker, each) == {b"a": 1, b"b": 1}


def test_of_a_batch_that_fails_nothing_stays(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    (files / "1.txt").write_text("".join(f"{n}\n" for n in range(50)) + "bad\n")
    failing = lines(spark, files).selectExpr("if(value = 'bad', raise_error('not yet'), value) as value")
    write = ForeachBatchWriter({BOOTSTRAP: broker.bootstrap_servers, "topic": topic})
    with pytest.raises(PySparkException, match="not yet"):
        started(failing, write, tmp_path / "checkpoint").awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == {}
    assert transactional_ids(broker, "Ongoing") == set()
    assert started(lines(spark, files), write, tmp_path / "checkpoint").awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == Counter([b"bad", *(b"%d" % n for n in range(50))])


def test_two_writes_of_one_batch_under_one_name_are_refused(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    (files / "1.txt").write_text("a\n")
    options = {BOOTSTRAP: broker.bootstrap_servers, "topic": topic}

    def write(rows: DataFrame, batch_id: int) -> None:
        ForeachBatchWriter(options)(rows, batch_id)
        ForeachBatchWriter(options)(rows, batch_id)

    with pytest.raises(PySparkException, match="give each write of a batch a ForeachBatchWriter with a name"):
        started(lines(spark, files), write, tmp_path / "checkpoint").awaitTermination(_PATIENCE_S)

    def write_named(rows: DataFrame, batch_id: int) -> None:
        ForeachBatchWriter(options, name="first")(rows, batch_id)
        ForeachBatchWriter(options, name="second")(rows, batch_id)

    assert started(lines(spark, files), write_named, tmp_path / "other").awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic) == {b"a": 3}


def test_batches_use_the_same_transactional_ids_again(
    spark: SparkSession, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    batches = 12
    for number in range(batches):
        (files / f"{number:02}.txt").write_text(f"{number}\n")
    before = transactional_ids(broker)
    write = ForeachBatchWriter({BOOTSTRAP: broker.bootstrap_servers, "topic": topic})
    assert started(lines(spark, files), write, tmp_path / "checkpoint").awaitTermination(_PATIENCE_S)
    assert values_of(broker, topic).keys() == {b"%d" % number for number in range(batches)}
    # One of the driver; of tasks one for each process that Spark has had them run in, two at a time.
    made = transactional_ids(broker) - before
    assert len(made) < batches / 2, sorted(made)


@pytest.mark.parametrize(
    ("options", "names", "message"),
    [
        ({"topic": "t", "writeId": "x"}, {}, "option writeId: a batch is known by its query and number"),
        ({"topic": "t"}, {"name": "a/b"}, "option name: 'a/b' is not a name"),
        ({"topic": "t"}, {"query_name": "a:b"}, "option query_name: 'a:b' is not a name"),
        ({"topic": "t", "kafka.acks": "0"}, {}, "option kafka.acks: 0 would lose rows unnoticed"),
    ],
)
def test_what_is_wrong_with_a_writer_is_said_when_it_is_made(
    options: dict[str, str], names: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        ForeachBatchWriter({BOOTSTRAP: "localhost:9092", **options}, **names)


def test_outside_of_a_query_it_says_where_it_belongs(spark: SparkSession) -> None:
    write = ForeachBatchWriter({BOOTSTRAP: "localhost:9092", "topic": "t"})
    with pytest.raises(RiverlogError, match="call ForeachBatchWriter in the function of foreachBatch"):
        write(spark.range(1).selectExpr("cast(id as string) value"), 0)


def test_over_spark_connect_a_named_query_writes_each_batch_once(
    spark_connect: str, broker: Broker, topic: str, files: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    (files / "1.txt").write_text("a\nb\n")
    (files / "2.txt").write_text("c\n")
    asked = {
        "url": spark_connect,
        "files": str(files),
        "checkpoint": str(checkpoint),
        "options": {BOOTSTRAP: broker.bootstrap_servers, "topic": topic},
    }
    assert "give ForeachBatchWriter a query_name" in over_connect(asked)
    assert over_connect({**asked, "query_name": topic}) == ""
    forget_commit(checkpoint, 1)
    (files / "3.txt").write_text("d\n")
    assert over_connect({**asked, "query_name": topic}) == ""
    assert values_of(broker, topic) == dict.fromkeys([b"a", b"b", b"c", b"d"], 1)


def over_connect(asked: Mapping[str, object]) -> str:
    """What the query failed with, in a process of its own: PySpark is classic or Connect as a whole."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_each_batch", json.dumps(asked)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failure: str = json.loads(done.stdout.splitlines()[-1])
    return failure
