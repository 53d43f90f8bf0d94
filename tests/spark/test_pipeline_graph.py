"""Which flows are kept running, of definitions whose plans are made up; Spark's engine makes tables later."""

from types import SimpleNamespace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import MaterializedView, Output, Sink
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


def test_a_flow_that_reads_a_materialized_view_is_kept_running() -> None:
    server = Server()
    server.tables.add("elsewhere")
    view = MaterializedView("counts", None, HERE, {}, None, None, None, None)
    definitions = Definitions(
        {"counts": view, "out": SINK},
        [flow("join", "out", Frame(server, "counts")), flow("counts", "counts", Frame(server, "elsewhere"))],
    )
    resolving = resolution(definitions, server)
    resolving.resolve()
    server.tables.add("counts")
    resolving.resolve(has_engine_run=True)
    graph = resolving.give_up()
    assert ([each.name for each in graph.streaming], graph.findings) == (["join"], [])
    assert [each.name for each in graph.triggered] == ["counts"]


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
    """The view that it reads is not there even when the engine has run."""
    server = Server()
    server.tables.add("elsewhere")
    view = MaterializedView("counts", None, HERE, {}, None, None, None, None)
    definitions = Definitions(
        {"counts": view, "out": SINK},
        [flow("join", "out", Frame(server, "counts")), flow("counts", "counts", Frame(server, "elsewhere"))],
    )
    resolving = resolution(definitions, server)
    resolving.resolve()
    resolving.resolve(has_engine_run=True)
    [finding] = resolving.give_up().findings
    assert finding.message.startswith("flow join: ")
