"""`riverlog pipeline` on a real Spark and an embedded broker: checked, run once, kept running, resumed."""

import json
from pathlib import Path

import pytest

from riverlog.testing import Broker
from tests.spark.pipeline_parts import Pipelines, committed_values, produce, wait_for_a_value, wait_for_values


@pytest.fixture
def pipelines(tmp_path: Path, broker: Broker, spark_connect: str) -> Pipelines:
    return Pipelines(tmp_path, broker.bootstrap_servers, spark_connect)


def orders(first: int, end: int) -> list[str]:
    """Every tenth is no order."""
    return [
        json.dumps({"id": number, "region": "eu", "amount": 1.5}) if number % 10 else f"broken {number}"
        for number in range(first, end)
    ]


def ids(values: list[str]) -> list[int]:
    return sorted(json.loads(value)["id"] for value in values)


def good(end: int) -> list[int]:
    return [number for number in range(end) if number % 10]


def test_a_generated_project_validates_runs_once_runs_on_and_resumes_without_loss_or_doubles(
    pipelines: Pipelines, broker: Broker
) -> None:
    at = broker.bootstrap_servers
    pipelines("init", "shop", "--topic", "sales")
    for name in ("sales", "sales.clean", "sales.dead"):
        broker.create_topic(name)
    assert pipelines("validate", "shop", "-o", "json").json == []

    produce(at, "sales", orders(0, 100))
    done = pipelines("run", "shop", "--once")
    assert "caught up" in done.stderr
    assert "clean -> clean_orders: 100 offsets further" in done.stderr
    assert ids(committed_values(at, "sales.clean")) == good(100)
    assert committed_values(at, "sales.dead") == [f"broken {number}" for number in range(0, 100, 10)]

    produce(at, "sales", orders(100, 130))
    state = pipelines("status", "shop", "-o", "json").json
    flows = {each["flow"]: each for each in state["flows"]}
    assert flows["clean"]["positions"] == {"sales": {"0": 100}}
    assert (flows["clean"]["lag"], flows["dead"]["lag"], state["runner"]) == (30, 30, None)
    assert "/_checkpoints/clean_orders/clean/0" in flows["clean"]["checkpoint"]

    # The runner goes on from the checkpoints of Spark's engine.
    with pipelines.start("shop") as runner:
        wait_for_values(at, "sales.clean", len(good(130)), runner)
        runner.assert_alive()
        state = pipelines("status", "shop", "-o", "json").json
        assert (state["runner"]["pid"], state["runner"]["mode"]) == (runner.process.pid, "run")
        refused = pipelines("run", "shop", "--once", code=1)
        assert f"run already, by process {runner.process.pid}" in refused.stderr
        produce(at, "sales", orders(130, 160))
        wait_for_values(at, "sales.dead", 16, runner)
        ended = runner.terminate()
    assert ended.code == 0, ended.stderr
    assert "stopped after the current batch" in ended.stderr
    assert "clean -> clean_orders: " in ended.stderr

    produce(at, "sales", orders(160, 200))
    with pipelines.start("shop") as runner:
        wait_for_values(at, "sales.clean", len(good(200)), runner)
        wait_for_values(at, "sales.dead", 20, runner)
        assert runner.terminate().code == 0
    assert ids(committed_values(at, "sales.clean")) == good(200)
    assert len(committed_values(at, "sales.dead")) == 20


MISTAKES = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf

BROKERS = {"kafka.bootstrap.servers": "BOOTSTRAP"}
dp.create_sink("fine", "riverlog", {**BROKERS, "topic": "third"})
dp.create_sink("misspelt", "riverlog", {**BROKERS, "topik": "third"})
dp.create_sink("wrong_value", "riverlog", {**BROKERS, "topic": "third", "deliveryGuarantee": "twice"})
dp.create_sink("misspelt_kafka", "riverlog", {**BROKERS, "topic": "third", "kafka.batch.sice": "5"})
dp.create_sink("nowhere", "riverlog", {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "third"})


def stream(topic, **options):
    return spark.readStream.format("riverlog").options(**BROKERS, subscribe=topic, **options).load()


@dp.append_flow(target="fine")
def unknown_topic():
    return stream("thrid")


@dp.append_flow(target="fine")
def missing_column():
    return stream("third").select(
        sf.col("valeu")
    )


@dp.append_flow(target="fine")
def bad_option():
    return stream("third", startingOfsets="earliest")


@dp.append_flow(target="fine")
def no_value():
    return stream("third").select("key")


@dp.append_flow(target="nobody")
def no_target():
    return stream("third")


@dp.append_flow(target="fine")
def unknown_dataset():
    return spark.readStream.table("elsewhere")


@dp.append_flow(target="fine")
def raises():
    return 1 / 0


@dp.append_flow(target="fine")
def a_batch():
    return spark.read.format("riverlog").options(**BROKERS, subscribe="third").load()


@dp.temporary_view
def broken_view():
    return stream("third").select("nothing")


@dp.append_flow(target="fine")
def innocent():
    return spark.readStream.table("broken_view")


dp.create_streaming_table("united")


@dp.append_flow(target="united")
def the_first():
    return stream("third")


@dp.append_flow(target="united")
def the_second():
    return stream("third")
"""


def test_validate_finds_each_mistake_with_file_line_and_remedy(pipelines: Pipelines, broker: Broker) -> None:
    broker.create_topic("third")
    flows = MISTAKES.replace("BOOTSTRAP", broker.bootstrap_servers)
    directory = pipelines.project("mistakes", flows)
    lines = flows.splitlines()

    def line_of(text: str) -> int:
        return next(number for number, line in enumerate(lines, start=1) if text in line)

    found = pipelines("validate", "mistakes", "-o", "json", code=1).json
    assert {each["file"] for each in found} == {str(directory / "flows" / "flows.py")}
    by_line = {each["line"]: each for each in found}
    for text, message, remedy in (
        ('stream("thrid")', "topic thrid does not exist", "did you mean third?"),
        ('sf.col("valeu")', "`valeu` cannot be resolved", "column"),
        ("def bad_option", "startingOfsets", "startingOffsets"),
        ('"topik"', "option topik", "did you mean topic?"),
        ('"kafka.batch.sice"', "option kafka.batch.sice", "did you mean kafka.batch.size?"),
        ('"twice"', "option deliveryGuarantee", "exactly-once"),
        ('"nowhere"', "127.0.0.1:1", "start the broker"),
        ("def no_value", "column value: this column is missing", "select"),
        ("def no_target", "nobody", "dp.create_sink"),
        ("def unknown_dataset", "elsewhere", "define the dataset"),
        ("1 / 0", "ZeroDivisionError", ""),
        ("def a_batch", "reads a batch", "readStream"),
        ('select("nothing")', "`nothing` cannot be resolved", "column"),
        ("def the_second", "flow the_second and flow the_first write to united", "unite"),
    ):
        line = line_of(text)
        there = by_line.get(line) or by_line.get(line - 1) or by_line.get(line + 1)
        assert there is not None, f"nothing at {text!r}: {found}"
        assert message in there["message"]
        assert remedy in (there["remedy"] or "")
    assert len(found) == 14, found


def test_run_tells_the_first_mistake_and_runs_nothing(pipelines: Pipelines) -> None:
    pipelines.project("raising", "from pyspark import pipelines as dp\n\nraise RuntimeError('not today')\n")
    refused = pipelines("run", "raising", code=1)
    assert refused.stderr.splitlines()[0] == "error: flows/flows.py:3: RuntimeError: not today"
    assert "Traceback" not in refused.stderr


SLOW = """\
from pyspark import pipelines as dp

BROKERS = {"kafka.bootstrap.servers": "BOOTSTRAP"}
dp.create_sink("copied", "riverlog", {**BROKERS, "topic": "copied"})


@dp.append_flow(target="copied")
def copy():
    one_by_one = {"subscribe": "many", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1"}
    return spark.readStream.format("riverlog").options(**BROKERS, **one_by_one).load().select("value")
"""


def test_an_interrupt_before_all_is_caught_up_is_no_success(pipelines: Pipelines, broker: Broker) -> None:
    at = broker.bootstrap_servers
    for topic in ("many", "copied"):
        broker.create_topic(topic)
    produce(at, "many", [str(number) for number in range(2000)])
    pipelines.project("slow", SLOW.replace("BOOTSTRAP", at))
    with pipelines.start("slow", "--once") as runner:
        wait_for_a_value(at, "copied", runner)
        ended = runner.interrupt()
    assert ended.code == 130, ended.stderr
    assert "stopped before everything was caught up" in ended.stderr
    assert "Traceback" not in ended.stderr


MIXED = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf


@dp.temporary_view
def words():
    rows = spark.readStream.format("riverlog").option("kafka.bootstrap.servers", "BOOTSTRAP")
    return rows.option("subscribe", "words").option("startingOffsets", "earliest").load()


@dp.table
def all_words():
    return spark.readStream.table("words").select(sf.col("value").cast("string").alias("word"))


@dp.materialized_view
def counts():
    return spark.read.table("all_words").groupBy("word").count()


dp.create_sink("shouted", "riverlog", {"kafka.bootstrap.servers": "BOOTSTRAP", "topic": "shouted"})


@dp.append_flow(target="shouted")
def shout():
    return spark.readStream.table("all_words").select(sf.upper("word").alias("value"))


dp.create_sink("whispered", "riverlog", {"kafka.bootstrap.servers": "BOOTSTRAP", "topic": "whispered"})


@dp.append_flow(target="whispered")
def whisper():
    return spark.readStream.table("marked").select("value")


dp.create_sink("counted", "riverlog", {"kafka.bootstrap.servers": "BOOTSTRAP", "topic": "counted"})


@dp.append_flow(target="counted")
def count():
    return spark.readStream.table("lengths").select(sf.concat("word", "length").alias("value"))


dp.create_sink("ranked", "riverlog", {"kafka.bootstrap.servers": "BOOTSTRAP", "topic": "ranked"})


@dp.append_flow(target="ranked")
def rank():
    return spark.readStream.table("all_words").join(spark.read.table("counts"), "word")
"""
IN_SQL = """\
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM all_words;
CREATE TEMPORARY VIEW lower_words AS SELECT lower(word) AS word FROM STREAM all_words;
CREATE STREAMING TABLE marked AS SELECT concat(word, '!') AS value FROM STREAM lower_words;
CREATE STREAMING TABLE lengths (word STRING, length INT) USING orc TBLPROPERTIES ('made' = 'in SQL');
"""
IN_MORE_SQL = """\
CREATE FLOW measure AS INSERT INTO lengths BY NAME
SELECT word, length(word) AS length FROM STREAM all_words
"""


def test_a_local_spark_keeps_tables_and_sinks_going_and_refreshes_what_is_only_triggered(
    tmp_path: Path, broker: Broker
) -> None:
    at = broker.bootstrap_servers
    local = Pipelines(tmp_path, at, "local[2]")
    for topic in ("words", "shouted", "whispered", "counted"):
        broker.create_topic(topic)
    produce(at, "words", ["a", "b", "a"])
    directory = local.project(
        "mixed",
        MIXED.replace("BOOTSTRAP", at),
        "configuration:",
        '  spark.ui.enabled: "false"',
        '  spark.driver.memory: "1g"',
        f'  spark.sql.warehouse.dir: "{tmp_path / "warehouse"}"',
        files={"more.sql": IN_SQL, "flow.sql": IN_MORE_SQL},
    )
    with local.start("mixed") as runner:
        wait_for_values(at, "shouted", 3, runner)
        produce(at, "words", ["c"])
        assert sorted(wait_for_values(at, "shouted", 4, runner)) == ["A", "A", "B", "C"]
        assert sorted(wait_for_values(at, "whispered", 4, runner)) == ["a!", "a!", "b!", "c!"]
        assert sorted(wait_for_values(at, "counted", 4, runner)) == ["a1", "a1", "b1", "c1"]
        metrics = (directory / "storage" / "_riverlog" / "metrics.prom").read_text()
        assert any("riverlog.spark.worker_daemon" in command for command in runner.commands())
        ended = runner.interrupt()
    assert ended.code == 0, ended.stderr
    assert "stopped after the current batch" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "counts is only triggered, every 60 s: a materialized view is made anew" in ended.stderr
    assert "total is only triggered, every 60 s: it is defined in SQL" in ended.stderr
    assert "marked is only triggered" not in ended.stderr
    assert "lengths is only triggered" not in ended.stderr
    assert "ranked is not kept running, use `run --once` for it: it reads counts" in ended.stderr
    assert (directory / "storage" / "_riverlog" / "spark.log").exists()
    assert 'riverlog_spark_rows_total{query="whisper"' in metrics
    assert "query shout: batch 0" in (directory / "storage" / "_riverlog" / "progress.log").read_text()
    state = local("status", "mixed", "-o", "json").json
    assert {each["target"] for each in state["flows"]} == {
        "shouted",
        "whispered",
        "counted",
        "spark_catalog.default.all_words",
        "spark_catalog.default.marked",
        "spark_catalog.default.lengths",
    }
