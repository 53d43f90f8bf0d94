"""Which flows are kept running, of definitions whose plans are made up; Spark's engine makes tables later."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql.connect.proto import Read, Relation

from riverlog.spark.pipelines.definitions import Definitions, PythonFlow, SqlFile
from riverlog.spark.pipelines.graph import Resolution

HERE = SourceCodeLocation("flows.py", 1)
SINK = Sink("out", None, HERE, "riverlog", {})


class Server:
    """Knows these tables; a plan that it could not analyse once it never can, as Spark Connect."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.hopeless: set[str] = set()

    def analyse(self, table: str, plan: str) -> None:
        if table not in self.tables or plan in self.hopeless:
            self.hopeless.add(plan)
            raise AnalysisException(
                "no such table", errorClass="TABLE_OR_VIEW_NOT_FOUND", messageParameters={}
            )


class Frame:
    """Of a stream that is joined with a table."""

    def __init__(self, server: Server, table: str) -> None:
        plan = Relation(read=Read(named_table=Read.NamedTable(unparsed_identifier=table)))
        self._server, self._table = server, table
        self._plan = SimpleNamespace(to_proto=lambda _: plan)
        self._session = SimpleNamespace(client=None)

    @property
    def isStreaming(self) -> bool:
        self._server.analyse(self._table, f"{id(self)}")
        return True

    schema = isStreaming


def flow(name: str, target: str, frame: Any) -> PythonFlow:
    return PythonFlow(Flow(name, target, {}, HERE, lambda: frame), frame)


def resolution(definitions: Definitions, server: Server) -> Resolution:
    def run_sql(query: str) -> Any:
        return Frame(server, query.rpartition(" ")[2])

    def publish(output: Output, flow: PythonFlow) -> None:
        server.tables |= set() if isinstance(output, MaterializedView | Sink) else {output.name}

    return Resolution(definitions, publish, run_sql)


@pytest.mark.parametrize("by_view", [False, True])
@pytest.mark.parametrize("in_sql", [False, True])
def test_a_flow_that_reads_a_materialized_view_is_only_triggered_and_told_of(
    by_view: bool, in_sql: bool
) -> None:
    server = Server()
    server.tables.add("elsewhere")
    outputs: dict[str, Output] = {"out": SINK, "kept": SINK}
    flows = [flow("kept", "kept", Frame(server, "elsewhere"))]
    files = []
    if in_sql:
        text = "CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM elsewhere;"
        text += "CREATE TEMPORARY VIEW seen AS SELECT * FROM counts"
        files.append(SqlFile(None, text))  # type: ignore[arg-type]
    else:
        outputs["counts"] = MaterializedView("counts", None, HERE, {}, None, None, None, None)
        outputs["seen"] = TemporaryView("seen", None, HERE)
        flows += [
            flow("counts", "counts", Frame(server, "elsewhere")),
            flow("seen", "seen", Frame(server, "counts")),
        ]
    flows.append(flow("join", "out", Frame(server, "seen" if by_view else "counts")))
    resolving = resolution(Definitions(outputs, flows, sql_files=files), server)
    resolving.resolve()
    server.tables.add("counts")
    resolving.resolve(has_engine_run=True)
    graph = resolving.give_up()
    assert ([each.name for each in graph.streaming], graph.findings) == (["kept"], [])
    told = {each.name: each for each in graph.triggered}
    assert set(told) == {"counts", "out"}
    assert "materialized view" in told["out"].reason
    assert not told["out"].can_refresh


def test_what_is_made_of_a_materialized_view_is_made_by_the_engine_and_can_be_read() -> None:
    server = Server()
    server.tables.add("elsewhere")

    def made_of(kind: Any, name: str) -> Output:
        output: Output = kind(name, None, HERE, {}, None, None, None, None)
        return output

    outputs: dict[str, Output] = {"out": SINK, "seen": TemporaryView("seen", None, HERE)}
    outputs |= {name: made_of(MaterializedView, name) for name in ("counts", "more", "most")}
    outputs["table"] = made_of(StreamingTable, "table")
    flows = [
        flow("last", "out", Frame(server, "table")),
        flow("table", "table", Frame(server, "counts")),
        flow("most", "most", Frame(server, "seen")),
        flow("more", "more", Frame(server, "counts")),
        flow("seen", "seen", Frame(server, "counts")),
        flow("counts", "counts", Frame(server, "elsewhere")),
    ]
    resolving = resolution(Definitions(outputs, flows), server)
    names = {each.name for each in resolving.resolve().triggered if each.can_refresh}
    assert names == {"counts", "more", "most", "table"}
    server.tables |= names
    resolving.resolve(has_engine_run=True)
    graph = resolving.give_up()
    assert ([each.name for each in graph.streaming], graph.findings) == (["last"], [])


def test_flows_that_read_a_table_of_which_sql_says_more_are_kept_running() -> None:
    server = Server()
    server.tables.add("elsewhere")
    text = """
    CREATE STREAMING TABLE formatted USING orc AS SELECT * FROM STREAM elsewhere;
    CREATE TEMPORARY VIEW seen AS SELECT * FROM STREAM formatted;
    CREATE STREAMING TABLE plain AS SELECT * FROM STREAM seen;
    """
    flows = [flow("first", "out", Frame(server, "formatted")), flow("second", "out", Frame(server, "plain"))]
    definitions = Definitions({"out": SINK}, flows, sql_files=[SqlFile(None, text)])  # type: ignore[arg-type]
    resolving = resolution(definitions, server)
    names = {each.name for each in resolving.resolve().triggered}
    assert names == {"formatted", "plain"}
    server.tables |= names
    resolving.resolve(has_engine_run=True)
    graph = resolving.give_up()
    assert {each.name for each in graph.streaming} == {"formatted", "plain", "first", "second"}
    assert graph.triggered == []
    [formatted] = [each for each in graph.streaming if each.name == "formatted"]
    assert formatted.target.format == "orc"


def test_a_flow_that_nothing_else_explains_is_told_of() -> None:
    """Nobody writes the table that it reads, so that it is never made."""
    server = Server()
    table = StreamingTable("empty", None, HERE, {}, None, None, None, None)
    definitions = Definitions({"empty": table, "out": SINK}, [flow("join", "out", Frame(server, "empty"))])
    resolving = resolution(definitions, server)
    resolving.resolve()
    resolving.resolve(has_engine_run=True)
    [finding] = resolving.give_up().findings
    assert finding.message.startswith("flow join: ")


def test_what_is_kept_running_in_part_is_not_refreshed() -> None:
    server = Server()
    server.tables.add("elsewhere")
    table = StreamingTable("both", None, HERE, {}, None, None, None, "delta")
    view = MaterializedView("counts", None, HERE, {}, None, None, None, None)
    flows = [
        flow("counts", "counts", Frame(server, "elsewhere")),
        flow("kept", "both", Frame(server, "elsewhere")),
        flow("join", "both", Frame(server, "counts")),
    ]
    resolving = resolution(Definitions({"both": table, "counts": view}, flows), server)
    resolving.resolve()
    graph = resolving.give_up()
    assert [each.name for each in graph.streaming] == ["kept"]
    assert {each.name: each.can_refresh for each in graph.triggered} == {"counts": True, "both": False}
