"""Several flows into one table of files: found where they stand, in Python and in SQL."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import Sink, StreamingTable
from pyspark.pipelines.source_code_location import SourceCodeLocation

from riverlog.spark.pipelines.checks.table_checks import tables_of_several_flows
from riverlog.spark.pipelines.definitions import Definitions, PythonFlow, SqlFile
from riverlog.spark.pipelines.project import DEFAULT_CATALOG

HERE = SourceCodeLocation("flows.py", 1)
IN_SQL = """\
-- One table:
CREATE STREAMING TABLE Made{head};

CREATE FLOW a AS INSERT INTO made BY NAME SELECT 1 AS one FROM STREAM c;
CREATE STREAMING TABLE other AS SELECT 1 AS one FROM STREAM c;
CREATE FLOW b AS
  INSERT INTO spark_catalog.default.made BY NAME SELECT 2 AS one FROM STREAM c
"""


def flow(name: str, target: str, line: int) -> PythonFlow:
    nothing: Any = None
    return PythonFlow(Flow(name, target, {}, SourceCodeLocation("flows.py", line), nothing), None)


def found(definitions: Definitions, default: str = "parquet", catalog: str = DEFAULT_CATALOG) -> list[str]:
    findings = tables_of_several_flows(definitions, default, catalog)
    return [f"{each.place.short} {each.message.partition(':')[0]}" for each in findings]


def in_python(table: str, format_name: str | None) -> Definitions:
    made = StreamingTable(table, None, HERE, {}, None, None, None, format_name)
    sink = Sink("sink", None, HERE, "riverlog", {})
    flows = [
        flow(name, to, line) for line, (name, to) in enumerate([("a", table), ("s", "sink"), ("b", table)])
    ]
    return Definitions({table: made, "sink": sink}, [*flows, flow("t", "sink", 9)])


@pytest.mark.parametrize(
    ("table", "format_name", "default", "catalog", "is_lossy"),
    [
        ("t", None, "parquet", DEFAULT_CATALOG, True),
        ("t", "ORC", "delta", "spark_catalog", True),
        ("t", None, "delta", DEFAULT_CATALOG, False),
        ("t", "delta", "parquet", DEFAULT_CATALOG, False),
        ("t", None, "parquet", "lake", False),
        ("lake.d.t", None, "parquet", "spark_catalog", False),
        ("spark_catalog.d.t", None, "parquet", "lake", True),
    ],
)
def test_the_second_flow_into_a_table_of_files_is_found(
    table: str, format_name: str | None, default: str, catalog: str, is_lossy: bool
) -> None:
    told = found(in_python(table, format_name), default, catalog)
    name, files = table.rpartition(".")[2], format_name or default
    expected = [f"flows.py:2 flow b and flow a write to {name}, a table of {files} files"]
    assert told == (expected if is_lossy else [])


@pytest.mark.parametrize(
    ("head", "count"), [("", 1), (" USING delta", 0), (" AS SELECT 3 AS one FROM STREAM c", 2)]
)
def test_flows_in_sql_are_found_with_their_line(head: str, count: int) -> None:
    definitions = Definitions(sql_files=[SqlFile(Path("more.sql"), IN_SQL.format(head=head))])
    lines = [each.partition(" ")[0] for each in found(definitions)]
    assert lines == {0: [], 1: ["more.sql:6"], 2: ["more.sql:4", "more.sql:6"]}[count]


def test_flows_in_python_and_in_sql_count_together() -> None:
    definitions = in_python("t", None)
    del definitions.flows[2]
    assert found(definitions) == []
    text = "CREATE FLOW x AS INSERT INTO t BY NAME SELECT 1"
    definitions.sql_files.append(SqlFile(Path("more.sql"), text))
    assert found(definitions) == ["more.sql:1 flow x and flow a write to t, a table of parquet files"]
