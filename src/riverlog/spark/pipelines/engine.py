"""A triggered run of Spark's own engine: until everything is caught up, or a check that runs nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import start_run

from riverlog.spark.pipelines.definitions import Definitions, new_graph
from riverlog.spark.pipelines.failures import PipelineError, one_line
from riverlog.spark.pipelines.project import Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Heard = Callable[[str], None]
"""Takes what the engine says about the run."""

_FAILED: Final = "FAILED"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run: nothing named is everything. Full refresh forgets the checkpoint and begins anew."""

    refresh: Sequence[str] = ()
    full_refresh: Sequence[str] = ()
    full_refresh_all: bool = False


EVERYTHING: Final = Selection()


def run_triggered(
    project: Project,
    definitions: Definitions,
    spark: "SparkSession",
    heard: Heard,
    *,
    selection: Selection = EVERYTHING,
    dry: bool = False,
) -> None:
    """Return when all that was selected has caught up. Raises `PipelineError` when a flow has failed."""
    graph_id = new_graph(project, spark)
    complaints: list[str] = []
    try:
        definitions.register_all(SparkConnectGraphElementRegistry(spark, graph_id))  # type: ignore[arg-type]
        events = start_run(
            spark,  # type: ignore[arg-type]
            graph_id,
            full_refresh=list(selection.full_refresh),
            full_refresh_all=selection.full_refresh_all,
            refresh=list(selection.refresh),
            dry=dry,
            storage=project.storage,
        )
        for result in events:
            if "pipeline_event_result" in result:
                message = result["pipeline_event_result"].event.message
                head, _, rest = message.partition("\n")
                reason = one_line(rest.removeprefix("Error: ")) if rest else ""
                if reason and _FAILED in head:
                    complaints.append(reason)
                heard(f"{head} {reason}".strip())
    except PySparkException as error:
        # The exception says that flows have failed; the events before it say why.
        raise PipelineError(complaints[-1] if complaints else one_line(error)) from error
