"""The definitions of a project, collected from its files as Spark's own command collects them.

PySpark imports the Python files and hands every output and flow to a registry; this one keeps them, instead
of sending them to a server at once. A flow's function runs when it is registered, as with Spark. What a
definition raises is kept as a `Finding` at its line, so that one mistake does not hide the next.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.pipelines.add_pipeline_analysis_context import add_pipeline_analysis_context
from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import Output
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

from riverlog.spark.pipelines.checks.findings import Finding, Place
from riverlog.spark.pipelines.checks.table_checks import tables_of_several_flows
from riverlog.spark.pipelines.failures import one_line
from riverlog.spark.pipelines.project import Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True, slots=True)
class PythonFlow:
    """A flow of a Python file, with the DataFrame that its function made."""

    flow: Flow
    frame: Any

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def target(self) -> str:
        return self.flow.target

    @property
    def place(self) -> Place:
        return place_of(self.flow)


@dataclass(frozen=True, slots=True)
class SqlFile:
    path: Path
    text: str


@dataclass(slots=True)
class Definitions:
    outputs: dict[str, Output] = field(default_factory=dict)
    flows: list[PythonFlow] = field(default_factory=list)
    cdc_flows: list[AutoCdcFlow] = field(default_factory=list)
    sql_files: list[SqlFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def register_all(self, registry: GraphElementRegistry) -> None:
        """Hand everything on to another registry."""
        for output in self.outputs.values():
            registry.register_output(output)
        for each in self.flows:
            registry.register_flow(each.flow)
        for cdc in self.cdc_flows:
            registry.register_auto_cdc_flow(cdc)
        for file in self.sql_files:
            registry.register_sql(file.text, file.path)


def collect(project: Project, spark: "SparkSession") -> Definitions:
    found = Definitions()
    graph_id = new_graph(project, spark)
    registry = _CollectingRegistry(spark, graph_id, found)
    with _reported(project, found), redirect_stdout(StringIO()):
        register_definitions(
            project.spec_path,
            registry,
            load_pipeline_spec(project.spec_path),
            spark,  # type: ignore[arg-type]
            graph_id,
        )
    default_format = spark.conf.get("spark.sql.sources.default") or ""
    found.findings += tables_of_several_flows(found, default_format, project.catalog)
    return found


def new_graph(project: Project, spark: "SparkSession") -> str:
    """A graph that knows nothing yet, on the server.

    Of the configuration it gets what can be set for a flow; the rest was for the start of Spark, and would be
    refused.
    """
    settings = {key: value for key, value in project.configuration.items() if spark.conf.isModifiable(key)}
    return create_dataflow_graph(
        spark,  # type: ignore[arg-type]
        default_catalog=project.catalog,
        default_database=project.database,
        sql_conf=settings,
    )


def place_of(definition: Flow | AutoCdcFlow | Output) -> Place:
    location = definition.source_code_location
    return Place(location.filename, location.line_number or 1)


class _CollectingRegistry(GraphElementRegistry):
    def __init__(self, spark: "SparkSession", graph_id: str, found: Definitions) -> None:
        self._spark = spark
        self._graph_id = graph_id
        self._found = found

    def register_output(self, output: Output) -> None:
        if output.name in self._found.outputs:
            first = place_of(self._found.outputs[output.name])
            remedy = f"rename one; the other is at {first.short}"
            self._found.findings.append(Finding(place_of(output), f"{output.name} is defined twice", remedy))
        self._found.outputs[output.name] = output

    def register_flow(self, flow: Flow) -> None:
        context = add_pipeline_analysis_context(
            spark=self._spark,  # type: ignore[arg-type]
            dataflow_graph_id=self._graph_id,
            flow_name=flow.name,
        )
        try:
            with context:
                frame: Any = flow.func()
        except Exception as error:  # noqa: BLE001 - it is the project's own code, which may raise anything
            self._found.findings.append(finding_of(error, place_of(flow), f"flow {flow.name}"))
            return
        if not hasattr(frame, "_plan"):
            what = f"the function of {flow.name} returns {type(frame).__name__} and not a DataFrame"
            self._found.findings.append(
                Finding(place_of(flow), what, "return the DataFrame that the flow writes")
            )
            return
        self._found.flows.append(PythonFlow(flow, frame))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        self._found.cdc_flows.append(flow)

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        self._found.sql_files.append(SqlFile(file_path, sql_text))


@contextmanager
def _reported(project: Project, found: Definitions) -> Iterator[None]:
    """A file that cannot be imported is a finding; what the files before it defined stays."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - it is the project's own code, which may raise anything
        found.findings.append(
            finding_of(error, Place(str(project.spec_path), 1), "", within=project.directory)
        )


def finding_of(error: BaseException, place: Place, doing: str, *, within: Path | None = None) -> Finding:
    """An exception as a finding, at the line of the project where it arose."""
    directory = within or Path(place.path).parent
    return Finding(
        _arose_at(error, directory) or place,
        f"{doing}: {_text(error)}" if doing else _text(error),
        remedy_of(error),
    )


def remedy_of(error: BaseException) -> str:
    """For the errors that Spark gives to a query, the nearest thing to an instruction."""
    name = str(error.getCondition() or "") if isinstance(error, PySparkException) else ""
    if name.startswith("UNRESOLVED_COLUMN"):
        return "use a column that is there, or select it further up"
    if name.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return "define the dataset in this project, or create the table; check the spelling"
    if name.startswith("DATA_SOURCE_NOT_FOUND"):
        return "check the format's name; `riverlog` needs `pip install 'riverlog[spark]'` on every worker"
    return ""


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"not Python: {error.msg}"
    text = one_line(error)
    return text if isinstance(error, PySparkException) else f"{type(error).__name__}: {text}"


def _arose_at(error: BaseException, directory: Path) -> Place | None:
    if isinstance(error, SyntaxError) and error.filename:
        return Place(error.filename, error.lineno or 1)
    if isinstance(error, PySparkException):
        for context in error.getQueryContext():
            if context.contextType().name == "DataFrame":
                path, _, line = context.callSite().rpartition(":")
                if path and line.isdecimal():
                    return Place(path, int(line))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(directory) and "site-packages" not in frame.filename:
            return Place(frame.filename, frame.lineno or 1)
    return None
