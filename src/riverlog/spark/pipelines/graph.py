"""Which flows can be kept running, made from the definitions of a project.

Datasets may be defined in any order and read each other. A dataset becomes readable when the definition that
makes it has been analysed: a temporary view as a view of this session, a streaming table as a table of the
catalog. So definitions are tried again and again until none can be added. Views and streaming tables that one
query in SQL fills are tried like those in Python, or when Spark's engine has made the table, if more is said.
A materialized view, an Auto CDC flow and other datasets in SQL can only be triggered. So can what reads a
materialized view: a query that goes on reads the files that were there when it was planned, and each refresh
makes others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation

from riverlog.spark.pipelines.checks.findings import Finding
from riverlog.spark.pipelines.definitions import Definitions, PythonFlow, finding_of
from riverlog.spark.pipelines.plans import Reads, SourceRead, reads_of
from riverlog.spark.pipelines.sql_text import SqlDataset, datasets_in

_MADE_ANEW: Final = "a materialized view is made anew"
_IN_SQL = SourceCodeLocation(filename="SQL", line_number=1)
Publish = Callable[[Output, PythonFlow], None]
"""Make the dataset of a flow readable for others."""
RunSql = Callable[[str], Any]
"""A DataFrame of a query in SQL; Spark analyses it at once."""


@dataclass(frozen=True, slots=True)
class StreamingFlow:
    """A flow that can be kept running, and what it goes from and to."""

    name: str
    target: Sink | StreamingTable
    frame: Any
    sources: tuple[SourceRead, ...]
    spark_conf: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TriggeredOnly:
    """A dataset that has no long-lived query, and why."""

    name: str
    reason: str
    can_refresh: bool = True
    """Whether Spark's engine can be asked for this one alone; it cannot for a sink."""


@dataclass(slots=True)
class Graph:
    streaming: list[StreamingFlow] = field(default_factory=list)
    triggered: list[TriggeredOnly] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    pending: list[PythonFlow] = field(default_factory=list)


class Resolution:
    """Resolves what can be resolved; may be asked again when more tables have come to be."""

    def __init__(self, definitions: Definitions, publish: Publish, run_sql: RunSql | None = None) -> None:
        """Without `run_sql` nothing that is defined in SQL is looked at."""
        self._definitions = definitions
        self._publish = publish
        self._run_sql = run_sql
        self._has_engine_run = run_sql is None
        self._sql = datasets_in([file.text for file in definitions.sql_files])
        targets = {_last(each.target) for each in definitions.flows}
        self._sql_left = [
            each
            for each in self._sql
            if run_sql and each.query is not None and _last(each.name) not in targets
        ]
        """What may be kept running and is not, or not yet."""
        self._sql_pending = [each for each in self._sql_left if not each.is_made_by_engine]
        self._pending = list(definitions.flows)
        self._sources: dict[str, tuple[SourceRead, ...]] = {}
        self._over_materialized = _materialized(definitions, self._sql)
        """Materialized views, and temporary views that read them; in small letters."""
        self._errors: dict[str, PySparkException] = {}
        self._graph = Graph(triggered=[*_from_sql(self._sql), *_from_cdc(definitions)])

    def resolve(self, *, has_engine_run: bool = False) -> Graph:
        """`has_engine_run`: what was only triggered so far is there."""
        if has_engine_run:
            self._has_engine_run = True
            self._sql_pending = list(self._sql_left)
        while self._resolved_some() or self._leave_sql_to_the_engine():
            pass
        self._graph.pending = list(self._pending)
        return self._graph

    def _resolved_some(self) -> bool:
        progress = False
        for each in list(self._pending):
            if self._resolved(each):
                self._pending.remove(each)
                progress = True
        for dataset in list(self._sql_pending):
            if self._resolved_sql(dataset):
                self._sql_pending.remove(dataset)
                progress = True
        return progress

    def _leave_sql_to_the_engine(self) -> bool:
        """What could not be kept stays triggered, and what reads it need not wait for it any more."""
        had_some = bool(self._sql_pending)
        self._sql_pending.clear()
        return had_some

    def give_up(self) -> Graph:
        """What could not be resolved hangs on SQL, or is wrong, or hangs on what is."""
        consequences: list[Finding] = []
        for each in self._pending:
            if self._sql and not isinstance(self._definitions.outputs.get(each.target), TemporaryView):
                reason = "it reads what is defined in SQL"
                self._graph.triggered.append(
                    TriggeredOnly(each.target, reason, self._can_refresh(each.target))
                )
            elif not self._sql:
                error = self._errors.get(each.name)
                if error is not None:
                    finding = finding_of(error, each.place, f"flow {each.name}")
                    is_consequence = self._is_consequence(each, error)
                    (consequences if is_consequence else self._graph.findings).append(finding)
        if self._run_sql is not None and not self._graph.findings:
            self._graph.findings += consequences
        kept = {each.target.name for each in self._graph.streaming}
        self._graph.triggered = [
            # The engine would run all flows into it, those that are kept running as well.
            replace(each, can_refresh=False) if each.name in kept else each
            for each in self._graph.triggered
        ]
        self._graph.pending = []
        return self._graph

    def _is_consequence(self, each: PythonFlow, error: PySparkException) -> bool:
        """Whether it only misses a dataset of this project, whose own definition has failed."""
        is_missing = str(error.getCondition() or "").startswith("TABLE_OR_VIEW_NOT_FOUND")
        return is_missing and any(
            read.name in self._definitions.outputs for read in reads_of(each.frame).tables
        )

    def _resolved(self, each: PythonFlow) -> bool:
        output = self._definitions.outputs.get(each.target)
        if output is None:
            if self._is_in_sql(each.target):
                self._graph.triggered.append(TriggeredOnly(each.target, "its table is defined in SQL"))
            else:
                what = f"flow {each.name} writes to {each.target}, which nobody defines"
                remedy = "dp.create_sink or dp.create_streaming_table, before the flow"
                self._graph.findings.append(Finding(each.place, what, remedy))
            return True
        reads = reads_of(each.frame)
        if view := self._materialized_in(reads):
            self._leave_to_engine(each, output, view)
            return True
        waited_for = {other.target for other in self._pending if other is not each}
        waited_for |= {other.name for other in self._sql_pending}
        if any(read.name in waited_for for read in reads.tables) or self._waits_for_engine(reads):
            return False
        try:
            is_streaming = bool(each.frame.isStreaming)
            each.frame.schema  # noqa: B018 - this is what makes the server analyse it
        except AnalysisException as error:
            self._errors[each.name] = error
            return False
        self._keep(each, output, reads, is_streaming)
        return True

    def _materialized_in(self, reads: Reads) -> str | None:
        if self._run_sql is None:
            return None
        return next((read.name for read in reads.tables if _last(read.name) in self._over_materialized), None)

    def _leave_to_engine(self, each: PythonFlow, output: Output, view: str) -> None:
        if isinstance(output, TemporaryView):
            self._over_materialized.add(_last(output.name))
            return
        reason = f"it reads {view}, which is made anew by each refresh of a materialized view"
        if isinstance(output, MaterializedView):
            reason = _MADE_ANEW
        self._graph.triggered.append(TriggeredOnly(each.target, reason, self._can_refresh(each.target)))

    def _waits_for_engine(self, reads: Reads) -> bool:
        """A plan that Spark has once failed to analyse fails again when the table is there."""
        if self._has_engine_run:
            return False
        made = {_last(each.name) for each in self._graph.triggered}
        kept = {_last(each.target.name) for each in self._graph.streaming}
        return any(_last(read.name) in made - kept for read in reads.tables)

    def _resolved_sql(self, dataset: SqlDataset) -> bool:
        waited_for = [other.target for other in self._pending]
        waited_for += [other.name for other in self._sql_pending if other is not dataset]
        if any(dataset.reads(name) for name in waited_for):
            return False
        assert self._run_sql is not None
        assert dataset.query is not None
        if any(dataset.reads(name) for name in self._over_materialized):
            self._over_materialized |= {_last(dataset.name)} if dataset.is_view else set()
            return True
        try:
            frame = self._run_sql(dataset.query)
            is_streaming = bool(frame.isStreaming)
        except PySparkException:
            return False  # Spark's engine will say what is wrong with it.
        if dataset.is_view or is_streaming:
            self._keep_sql(dataset, frame)
            self._sql_left.remove(dataset)
        return True

    def _keep_sql(self, dataset: SqlDataset, frame: Any) -> None:
        name = dataset.name
        flow = PythonFlow(Flow(name, name, {}, _IN_SQL, lambda: frame), frame)
        inherited = [each for view, found in self._sources.items() if dataset.reads(view) for each in found]
        sources = tuple(dict.fromkeys(inherited))
        if dataset.is_view:
            self._sources[name] = sources
            self._publish(TemporaryView(name, None, _IN_SQL), flow)
            return
        table = StreamingTable(name, None, _IN_SQL, {}, None, None, None, dataset.format)
        self._publish(table, flow)
        self._graph.streaming.append(StreamingFlow(dataset.flow or name, table, frame, sources, {}))
        self._graph.triggered = [each for each in self._graph.triggered if each.name != name]

    def _keep(self, each: PythonFlow, output: Output, reads: Reads, is_streaming: bool) -> None:
        sources = self._all_sources(reads)
        match output:
            case TemporaryView():
                self._sources[each.target] = sources
                self._publish(output, each)
            case MaterializedView():
                self._graph.triggered.append(TriggeredOnly(output.name, _MADE_ANEW))
                self._publish(output, each)
            case Sink() | StreamingTable() if is_streaming:
                if isinstance(output, StreamingTable):
                    self._publish(output, each)
                flow = StreamingFlow(each.name, output, each.frame, sources, each.flow.spark_conf)
                self._graph.streaming.append(flow)
            case _:
                what = f"flow {each.name} reads a batch, and {output.name} takes a stream"
                self._graph.findings.append(
                    Finding(each.place, what, "use spark.readStream instead of spark.read")
                )

    def _all_sources(self, reads: Reads) -> tuple[SourceRead, ...]:
        """Its own and those of the views it reads, which Spark puts into the same query."""
        inherited = [source for read in reads.tables for source in self._sources.get(read.name, ())]
        found: list[SourceRead] = []
        for source in (*inherited, *reads.sources):
            if source not in found:
                found.append(source)
        return tuple(found)

    def _is_in_sql(self, name: str) -> bool:
        return any(_last(each.name) == _last(name) for each in self._sql)

    def _can_refresh(self, name: str) -> bool:
        return not isinstance(self._definitions.outputs.get(name), Sink)


def _materialized(definitions: Definitions, in_sql: list[SqlDataset]) -> set[str]:
    outputs = definitions.outputs.values()
    in_python = {_last(each.name) for each in outputs if isinstance(each, MaterializedView)}
    return in_python | {_last(each.name) for each in in_sql if each.is_materialized}


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _from_sql(datasets: list[SqlDataset]) -> list[TriggeredOnly]:
    return [TriggeredOnly(each.name, "it is defined in SQL") for each in datasets if not each.is_view]


def _from_cdc(definitions: Definitions) -> list[TriggeredOnly]:
    return [TriggeredOnly(each.target, "it is an Auto CDC flow") for each in definitions.cdc_flows]
