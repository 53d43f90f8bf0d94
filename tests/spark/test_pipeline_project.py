"""Around the running of a pipeline, without Spark: the file of a project, its lock, checkpoints, words."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from riverlog.spark.pipelines import runner_lock, scaffold
from riverlog.spark.pipelines.checkpoints import CheckpointStore, positions_in
from riverlog.spark.pipelines.checks.file_checks import files_wrong_with
from riverlog.spark.pipelines.checks.findings import Place
from riverlog.spark.pipelines.checks.source_lines import place_of_text
from riverlog.spark.pipelines.failures import PipelineError, ProjectNotFound, one_line
from riverlog.spark.pipelines.java import check_java, major_version
from riverlog.spark.pipelines.progress import FlowProgress
from riverlog.spark.pipelines.project import Project, SpecError, find, load
from riverlog.spark.pipelines.sql_text import SqlDataset, datasets_in


def project_at(directory: Path, *lines: str) -> Project:
    text = "\n".join(["name: shop", f"storage: {(directory / 'storage').as_uri()}", *lines])
    (directory / "spark-pipeline.yml").write_text(text + "\n")
    return load(directory / "spark-pipeline.yml")


def test_a_project_is_found_from_a_directory_below(tmp_path: Path) -> None:
    project_at(tmp_path)
    (tmp_path / "transformations").mkdir()
    assert find(tmp_path / "transformations") == tmp_path / "spark-pipeline.yml"
    assert find(tmp_path / "spark-pipeline.yml") == tmp_path / "spark-pipeline.yml"


def test_where_no_project_is_the_remedy_is_init(tmp_path: Path) -> None:
    with pytest.raises(ProjectNotFound) as caught:
        find(tmp_path)
    assert "init" in caught.value.remedy
    with pytest.raises(ProjectNotFound, match="no such file"):
        find(tmp_path / "nowhere")


def test_two_project_files_in_one_directory_are_refused(tmp_path: Path) -> None:
    project_at(tmp_path)
    (tmp_path / "spark-pipeline.yaml").write_text("name: other\n")
    with pytest.raises(PipelineError, match="both"):
        find(tmp_path)


@pytest.mark.parametrize(
    ("lines", "line", "complaint"),
    [
        (["storag: x"], 3, "unknown field 'storag'"),
        (["configuration:", "  spark.sql.shuffle.partitions: 2"], 4, "must be a text"),
        (["configuration: many"], 3, "configuration must be"),
        (["libraries:", "  - flows/*.py"], 4, "list of globs"),
        (["libraries: [{glob: {include: flows/*.py}}]"], 3, "not one that Spark takes"),
        (["libraries: ]"], 3, "not YAML"),
        (["catalog: [a]"], 3, "catalog must be a text"),
    ],
)
def test_a_mistake_in_the_project_file_is_told_with_its_line(
    tmp_path: Path, lines: list[str], line: int, complaint: str
) -> None:
    with pytest.raises(SpecError, match=complaint) as caught:
        project_at(tmp_path, *lines)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"spark-pipeline.yml:{line}: ")


def test_a_project_file_needs_a_name_and_a_storage(tmp_path: Path) -> None:
    path = tmp_path / "spark-pipeline.yml"
    path.write_text("name: shop\n")
    with pytest.raises(SpecError, match="'storage' is missing"):
        load(path)
    path.write_text("- shop\n")
    with pytest.raises(SpecError, match="must have fields"):
        load(path)


def test_definitions_are_looked_for_as_spark_does(tmp_path: Path) -> None:
    project = project_at(tmp_path, "libraries: [{glob: {include: flows/**}}, {glob: {include: one.sql}}]")
    (tmp_path / "flows" / "__pycache__").mkdir(parents=True)
    for name in ("flows/a.py", "flows/__pycache__/a.pyc", "one.sql", "two.sql"):
        (tmp_path / name).touch()
    assert [path.name for path in project.files()] == ["a.py", "one.sql"]


def test_files_that_spark_cannot_read_are_found_without_it(tmp_path: Path) -> None:
    project = project_at(tmp_path, "libraries: [{glob: {include: flows/**}}]")
    [nothing] = files_wrong_with(project)
    assert "match no file" in nothing.message
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "bad.py").write_text("x = 1\ndef flow(:\n")
    (tmp_path / "flows" / "notes.txt").touch()
    found = {Path(each.place.path).name: each for each in files_wrong_with(project)}
    assert (found["bad.py"].place.line, "not Python" in found["bad.py"].message) == (2, True)
    assert ".py and .sql" in found["notes.txt"].message


def test_triggers_that_python_sources_cannot_have_are_found_with_their_line(tmp_path: Path) -> None:
    project = project_at(tmp_path, "libraries: [{glob: {include: flows/**}}]")
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "live.py").write_text(
        "writer = frame.writeStream.trigger(processingTime='1 second')\n"
        "writer.trigger(\n"
        "    continuous='1 second'\n"
        ")\n"
        "writer.trigger(realTime='5 minutes')\n"
        "elsewhere(continuous=True)\n"
    )
    continuous, real_time = files_wrong_with(project)
    assert (continuous.place.short, real_time.place.short) == ("live.py:3", "live.py:5")
    assert continuous.message.startswith("the continuous trigger is not open to sources and sinks in Python")
    assert real_time.message.startswith("real-time mode is not open")
    assert "processingTime" in continuous.remedy


def test_the_second_runner_of_a_project_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    assert runner_lock.alive(tmp_path) is None
    code = (
        "import sys, time; from pathlib import Path; from riverlog.spark.pipelines.runner_lock import held\n"
        "with held(Path(sys.argv[1]), 'run', 'local[2]'): print('held', flush=True); time.sleep(60)"
    )
    first = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        runner = runner_lock.alive(tmp_path)
        assert runner is not None
        assert (runner.pid, runner.mode, runner.master) == (first.pid, "run", "local[2]")
        with (
            pytest.raises(runner_lock.RunnerIsAlive, match=f"process {first.pid}"),
            runner_lock.held(tmp_path, "run", "local[2]"),
        ):
            pass
    finally:
        first.kill()
        first.communicate()
    assert runner_lock.alive(tmp_path) is None
    with runner_lock.held(tmp_path, "run --once", "local[2]") as mine:
        assert mine.pid == os.getpid()


def write_batch(directory: Path, batch: int, offsets: list[str], *, committed: bool) -> None:
    for kind in ("offsets", "commits"):
        (directory / kind).mkdir(parents=True, exist_ok=True)
    (directory / "offsets" / str(batch)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *offsets]))
    if committed:
        (directory / "commits" / str(batch)).write_text("v1\n{}")


def test_positions_are_those_of_the_last_committed_batch(tmp_path: Path) -> None:
    project = project_at(tmp_path)
    of_sink = tmp_path / "storage" / "_checkpoints" / "clean" / "flow_a" / "0"
    write_batch(of_sink, 8, ['{"orders":{"0":10,"1":11}}', "-"], committed=True)
    write_batch(of_sink, 9, ['{"orders":{"0":90,"1":91}}', "-"], committed=False)
    of_table = tmp_path / "storage" / "_checkpoints" / "spark_catalog" / "default" / "sums" / "sums"
    write_batch(of_table / "0", 3, ['{"orders":{"0":1}}'], committed=True)
    write_batch(of_table / "1", 0, ['{"orders":{"0":7}}'], committed=True)
    clean, sums = sorted(CheckpointStore(project).all(), key=lambda each: each.flow)
    assert (clean.target, clean.flow, clean.committed_batch, clean.planned_batch) == ("clean", "flow_a", 8, 9)
    assert clean.positions == ({"orders": {0: 10, 1: 11}}, {})
    assert (sums.target, sums.positions) == ("spark_catalog.default.sums", ({"orders": {0: 7}},))
    store = CheckpointStore(project)
    assert store.location(("clean",), "flow_a") == clean.location
    assert store.location(("spark_catalog", "default", "sums"), "sums").endswith("/sums/sums/1")
    assert store.location(("clean",), "new").endswith("/storage/_checkpoints/clean/new/0")


@pytest.mark.parametrize("text", ["-", "5", '{"logOffset":3}', '{"t":{"x":1}}', "not json", "null"])
def test_offsets_of_other_sources_are_no_positions(text: str) -> None:
    assert positions_in(text) == {}


def test_a_checkpoint_on_a_storage_that_does_not_exist_is_none(tmp_path: Path) -> None:
    assert CheckpointStore(project_at(tmp_path)).all() == []


def report(batch: int, rows: int, out: int, *, ran: bool = True) -> dict[str, object]:
    return {
        "batchId": batch,
        "batchDuration": 200,
        "durationMs": {"addBatch": 150} if ran else {"latestOffset": 1},
        "sources": [{"numInputRows": rows, "endOffset": {"orders": {"0": 100}}}],
        "sink": {"numOutputRows": -1},
        "observedMetrics": {"riverlog": {"values": [out], "schema": {}}},
    }


def test_each_batch_is_counted_once_and_an_idle_report_is_none() -> None:
    progress = FlowProgress("clean", "clean_orders")
    assert progress.add(report(0, 10, 9))
    assert not progress.add(report(0, 10, 9))
    assert not progress.add(report(1, 0, 0, ran=False))
    assert progress.add(report(1, 5, 5))
    assert (progress.batches, progress.rows_in, progress.rows_out, progress.last_batch) == (2, 15, 14, 1)
    assert progress.positions == [{"orders": {0: 100}}]
    progress.add({**report(2, 0, 0, ran=False), "sources": [{"numInputRows": 0, "endOffset": None}]})
    assert progress.positions == [{"orders": {0: 100}}]
    assert progress.rows_per_second > 0
    assert not progress.is_dead_letters
    assert FlowProgress("dead", "dead_letters").is_dead_letters


def test_datasets_of_sql_are_known_by_name_and_by_their_query() -> None:
    text = """
    -- CREATE STREAMING TABLE not_me AS SELECT 1;
    CREATE OR REFRESH STREAMING TABLE `a`.b AS SELECT * FROM STREAM c WHERE d = ';--';
    create materialized view if not exists m as select 1;
    CREATE TEMPORARY VIEW v AS SELECT 1 /* ; */ AS one;
    CREATE STREAMING TABLE two AS SELECT * FROM STREAM c;
    """
    elsewhere = "CREATE FLOW more AS INSERT INTO Two BY NAME SELECT * FROM STREAM e"
    assert datasets_in([text, elsewhere]) == [
        SqlDataset("a.b", False, "SELECT * FROM STREAM c WHERE d = ';--'"),
        SqlDataset("m", False, is_materialized=True),
        SqlDataset("v", True, "SELECT 1 /* ; */ AS one"),
        SqlDataset("two", False),
    ]


@pytest.mark.parametrize(
    ("head", "is_plain", "format"),
    [
        ("", True, None),
        (" USING orc", False, "orc"),
        (" COMMENT 'AS SELECT 1'", False, None),
        ("(a STRING COMMENT 'x', b INT)", False, None),
        (" (`as` STRING)\n USING parquet\n PARTITIONED BY (bucket(4, a))", False, "parquet"),
        (" CLUSTER BY (a) TBLPROPERTIES ('made' = 'by us;', 'x' = '(') -- AS\n", False, None),
    ],
)
def test_the_query_of_a_table_in_sql_is_known_whatever_else_is_said_of_the_table(
    head: str, is_plain: bool, format: str | None
) -> None:
    query = "WITH b AS (SELECT 1 AS one) SELECT * FROM STREAM c JOIN b"
    [made] = datasets_in([f"CREATE STREAMING TABLE t{head} AS {query}"])
    assert made == SqlDataset("t", False, query, None, not is_plain, format)


def test_the_query_of_the_one_flow_into_a_table_in_sql_is_known() -> None:
    flow = "CREATE FLOW f COMMENT 'c' AS INSERT INTO d.t BY NAME SELECT a FROM STREAM c"
    for head in ("t", "t (a STRING) USING orc"):
        [made] = datasets_in([f"CREATE STREAMING TABLE {head};", flow])
        made_as = "orc" if "orc" in head else None
        assert made == SqlDataset("t", False, "SELECT a FROM STREAM c", "f", True, made_as)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAMING TABLE t STORED AS orc AS SELECT a FROM STREAM c",
        "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM c KEYS (a) SEQUENCE BY b",
        "CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO t BY NAME SELECT 1;"
        "CREATE FLOW g AS INSERT INTO t BY NAME SELECT 2",
        "SET spark.sql.ansi.enabled = false; CREATE STREAMING TABLE t AS SELECT a FROM STREAM c",
        "USE elsewhere; CREATE STREAMING TABLE t AS SELECT a FROM STREAM c",
    ],
)
def test_what_is_the_engines_has_no_query(text: str) -> None:
    assert datasets_in([text]) == [SqlDataset("t", False)]


def test_what_a_query_in_sql_may_read_is_known_by_the_names_in_it() -> None:
    dataset = SqlDataset("clean", False, "SELECT * FROM STREAM orders JOIN shop.`customers`")
    assert dataset.reads("orders")
    assert dataset.reads("spark_catalog.default.Customers")
    assert not dataset.reads("order")
    assert not SqlDataset("m", False).reads("orders")


def test_the_line_of_a_text_is_looked_for_in_its_definition_first(tmp_path: Path) -> None:
    path = tmp_path / "flows.py"
    path.write_text('X = "orders"\n\n@flow\ndef one():\n    return read("orders")\n\nY = "elsewhere"\n')
    near = Place(str(path), 3)
    assert place_of_text(near, ["orders"]).line == 5
    assert place_of_text(near, ["nowhere", "elsewhere"]).line == 7
    assert place_of_text(near, ["nowhere"]) == near


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025', 17),
        ('java version "1.8.0_392"', 8),
        ('version "21"', 21),
        ("?", None),
    ],
)
def test_the_version_of_java_is_read_from_what_it_prints(text: str, version: int | None) -> None:
    assert major_version(text) == version


def test_a_missing_or_old_java_is_told_with_how_to_install_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match="there is none") as caught:
        check_java()
    assert "apt install" in caught.value.remedy
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(PipelineError, match="17 or newer"):
        check_java()


def test_of_a_spark_error_the_sentence_is_left() -> None:
    assert (
        one_line("[UNRESOLVED_COLUMN] No such column `x`. SQLSTATE: 42703;\n'Filter\n+- Plan")
        == "No such column `x`."
    )
    raised = "Traceback (most recent call last):\n  File x\na.b.OptionError: option topic: is missing\n"
    nested = f"[PYTHON] Failed\n{raised}"
    assert one_line(nested) == "option topic: is missing"


def test_a_new_project_is_not_put_over_an_old_one(tmp_path: Path) -> None:
    made = scaffold.create(tmp_path, "shop", topic="sales", bootstrap="broker:9092")
    project = load(find(made))
    assert (project.name, project.local_storage) == ("shop", made / "pipeline-storage")
    text = (made / "transformations" / "orders.py").read_text()
    assert '"subscribe", "sales"' in text
    assert "broker:9092" in text
    compile(text, "orders.py", "exec")
    with pytest.raises(PipelineError, match="exists already"):
        scaffold.create(tmp_path, "shop", topic="sales", bootstrap="broker:9092")
    with pytest.raises(PipelineError, match="no name"):
        scaffold.create(tmp_path, "../shop", topic="sales", bootstrap="broker:9092")
    assert json.dumps(project.configuration)
