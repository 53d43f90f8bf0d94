"""Running a project: once, until it is caught up, or on and on.

Both hold the project's lock, write down where its flows read and write, and go on from the same checkpoints.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from riverlog.spark.pipelines import notes
from riverlog.spark.pipelines.checks.findings import Finding
from riverlog.spark.pipelines.definitions import Definitions, collect
from riverlog.spark.pipelines.engine import Selection, run_triggered
from riverlog.spark.pipelines.failures import PipelineError, one_line
from riverlog.spark.pipelines.graph import Graph, Resolution, StreamingFlow
from riverlog.spark.pipelines.listened import listened
from riverlog.spark.pipelines.long_lived import LongLivedQueries
from riverlog.spark.pipelines.progress import FlowProgress
from riverlog.spark.pipelines.project import Project
from riverlog.spark.pipelines.runner_lock import held
from riverlog.spark.pipelines.session import opened, release
from riverlog.spark.pipelines.supervision import RunningFlow, Supervision, Watcher
from riverlog.spark.pipelines.views import publish_as_view

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

STOP_DEADLINE_S: Final = 60.0
FIRST_BATCH_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    master: str = "local[*]"
    spark_log: Path | None = None
    interval_s: float = 0.1
    refresh_every_s: float = 60.0


class FindingsError(PipelineError):
    """The definitions are wrong; nothing was run."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("the project has mistakes", remedy="riverlog pipeline validate")
        self.findings = sorted(set(findings))


def run_once(project: Project, options: RunOptions, selection: Selection, watcher: Watcher) -> None:
    """Return when everything has been read that was there. Raises `PipelineError` when a flow failed."""
    with (
        held(project.state_directory, "run --once", options.master),
        opened(project.name, project.configuration, options.master, log=options.spark_log) as spark,
    ):
        definitions = collected(project, spark)
        _note_flows(project, definitions, spark)
        run_triggered(project, definitions, spark, watcher.say, selection=selection)


def run_on(project: Project, options: RunOptions, stop: threading.Event, watcher: Watcher) -> bool:
    """Keep the project running until `stop` is set. False if the stop had to cut off a batch."""
    try:
        return _kept_running(project, options, stop, watcher)
    except (PipelineError, PySparkException, grpc.RpcError) as error:
        if stop.is_set():
            return False  # Spark had the signal too, and was quicker.
        if isinstance(error, PipelineError):
            raise
        raise PipelineError(one_line(error)) from error


def _kept_running(project: Project, options: RunOptions, stop: threading.Event, watcher: Watcher) -> bool:
    with (
        held(project.state_directory, "run", options.master),
        opened(project.name, project.configuration, options.master, log=options.spark_log) as spark,
    ):
        definitions = collected(project, spark)
        queries = LongLivedQueries(project, spark, trigger_s=options.interval_s)
        refresher = _Refresher(project, definitions, spark, options.refresh_every_s, watcher)
        graph = _resolved(definitions, queries, spark, refresher)
        notes.write(project.state_directory, notes.notes_of(graph))
        _say_what_is_triggered(graph, options, watcher)
        if not graph.streaming and not refresher.names:
            raise PipelineError("the project has no flow to run", remedy="riverlog pipeline run --once")
        with listened(project, spark, graph.streaming):
            running = _started(graph, queries)
            watcher.say(f"running {len(running)} flows on {options.master}")
            supervision = Supervision(running, watcher)
            try:
                supervision.watch(stop, refresher.refresh_if_due)
            finally:
                refresher.close()
                is_clean = supervision.stop(STOP_DEADLINE_S)
        return is_clean


def collected(project: Project, spark: "SparkSession") -> Definitions:
    definitions = collect(project, spark)
    if definitions.findings:
        raise FindingsError(definitions.findings)
    return definitions


def _resolved(
    definitions: Definitions, queries: LongLivedQueries, spark: "SparkSession", refresher: "_Refresher"
) -> Graph:
    """Twice: what only the engine can make is made in between, and may be what others read."""
    resolution = Resolution(definitions, queries.publish, spark.sql)
    graph = resolution.resolve()
    refresher.names = [each.name for each in graph.triggered if each.can_refresh]
    if refresher.names and not graph.findings:
        refresher.refresh()
        resolution.resolve(has_engine_run=True)
    graph = resolution.give_up()
    refresher.names = [each.name for each in graph.triggered if each.can_refresh]
    if graph.findings:
        raise FindingsError(graph.findings)
    return graph


def _started(graph: Graph, queries: LongLivedQueries) -> list[RunningFlow]:
    """One after the other: two queries that begin their first jobs at the same moment can spoil something in
    Spark, and from then on no task of that driver can be serialised."""
    running: list[RunningFlow] = []
    for flow in graph.streaming:
        if running:
            _wait_for_first_batch(running[-1].query)
        start = partial(_start, queries, flow)
        progress = FlowProgress(flow.name, flow.target.name, positions=queries.positions(flow))
        running.append(RunningFlow(flow, start(), progress, start))
    return running


def _wait_for_first_batch(query: Any) -> None:
    """Until it has one behind it or nothing to do; one that takes long has its jobs under way meanwhile."""
    deadline = time.monotonic() + FIRST_BATCH_S
    while time.monotonic() < deadline and query.isActive and query.lastProgress is None:
        if query.status["message"].startswith("Waiting"):
            return
        time.sleep(0.05)


def _start(queries: LongLivedQueries, flow: StreamingFlow) -> Any:
    try:
        return queries.start(flow)
    except PySparkException as error:
        raise PipelineError(f"flow {flow.name} did not start: {one_line(error)}") from error


def _note_flows(project: Project, definitions: Definitions, spark: "SparkSession") -> None:
    """For `status`. The views that this needs are taken away again, as they are not for the engine."""
    graph = Resolution(definitions, publish_as_view).resolve()
    notes.write(project.state_directory, notes.notes_of(graph))
    for output in definitions.outputs:
        spark.catalog.dropTempView(output.rpartition(".")[2])


def _say_what_is_triggered(graph: Graph, options: RunOptions, watcher: Watcher) -> None:
    for each in graph.triggered:
        if each.can_refresh:
            watcher.say(f"{each.name} is only triggered, every {options.refresh_every_s:g} s: {each.reason}")
        else:
            watcher.say(f"{each.name} is not kept running, use `run --once` for it: {each.reason}")


class _Refresher:
    """Runs Spark's engine now and then for what can only be triggered, on a thread, in its own session."""

    def __init__(
        self,
        project: Project,
        definitions: Definitions,
        spark: "SparkSession",
        every_s: float,
        watcher: Watcher,
    ) -> None:
        self.names: list[str] = []
        self._project = project
        self._definitions = definitions
        self._main = spark
        self._session: SparkSession | None = None
        self._every_s = every_s
        self._watcher = watcher
        self._due = time.monotonic() + every_s
        self._thread: threading.Thread | None = None
        self._failure: PipelineError | None = None

    def refresh(self) -> None:
        self._run(self._watcher.say)

    def refresh_if_due(self) -> None:
        if self._failure is not None:
            raise self._failure
        is_busy = self._thread is not None and self._thread.is_alive()
        if not self.names or is_busy or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every_s
        self._thread = threading.Thread(target=self._run_noting_failure, name="refresh", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._session is None:
            return
        if self._thread is not None and self._thread.is_alive():
            with suppress(PySparkException, grpc.RpcError):
                self._session.interruptAll()
            self._thread.join(STOP_DEADLINE_S)
        release(self._session)

    def _run_noting_failure(self) -> None:
        try:
            self._run(lambda _: None)
        except PipelineError as error:
            self._failure = error

    def _run(self, heard: Callable[[str], None]) -> None:
        if self._session is None:
            self._session = self._main.newSession()
        selection = Selection(refresh=self.names)
        run_triggered(self._project, self._definitions, self._session, heard, selection=selection)
