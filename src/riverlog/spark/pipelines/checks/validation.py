"""Everything that can be found wrong with a project without running it.

First the files alone, then the definitions on a local Spark that only analyses them, then their sources and
sinks against the brokers. When all that is silent, Spark's own dry run has the last word about the graph.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.pipelines.output import Sink

from riverlog.spark.pipelines.checks.file_checks import files_wrong_with
from riverlog.spark.pipelines.checks.findings import Finding, Place
from riverlog.spark.pipelines.checks.topic_checks import TopicChecks
from riverlog.spark.pipelines.definitions import Definitions, collect, place_of
from riverlog.spark.pipelines.engine import run_triggered
from riverlog.spark.pipelines.failures import PipelineError
from riverlog.spark.pipelines.graph import Graph, Resolution
from riverlog.spark.pipelines.lag import FORMAT
from riverlog.spark.pipelines.plans import reads_of
from riverlog.spark.pipelines.project import Project
from riverlog.spark.pipelines.session import opened
from riverlog.spark.pipelines.views import publish_as_view

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


def validate(project: Project, master: str, spark_log: Path | None) -> list[Finding]:
    """What is wrong, in the order of the files. Nothing found is an empty list."""
    findings = files_wrong_with(project)
    if findings:
        return sorted(findings)
    with opened(project.name, project.configuration, master, log=spark_log) as spark:
        definitions = collect(project, spark)
        checks = TopicChecks()
        resolution = Resolution(definitions, publish_as_view)
        resolution.resolve()
        graph = resolution.give_up()
        about_sources = _of_sources(definitions, checks)
        told = tuple(f"flow {name}: option " for name, found in about_sources.items() if found)
        findings = [
            *definitions.findings,
            # Spark stumbles over a bad option too, but knows neither its line nor how it was spelt.
            *(each for each in graph.findings if not each.message.startswith(told)),
            *(each for found in about_sources.values() for each in found),
            *_of_sinks(definitions, graph, checks),
        ]
        if not findings:
            findings += _dry_run(project, definitions, spark)
    return sorted(set(findings))


def _of_sources(definitions: Definitions, checks: TopicChecks) -> dict[str, list[Finding]]:
    """By the name of the flow."""
    return {
        each.name: [
            finding
            for source in reads_of(each.frame).sources
            for finding in checks.of_source(source, each.place)
        ]
        for each in definitions.flows
    }


def _of_sinks(definitions: Definitions, graph: Graph, checks: TopicChecks) -> list[Finding]:
    findings: list[Finding] = []
    for output in definitions.outputs.values():
        if isinstance(output, Sink) and output.format == FORMAT:
            findings += checks.of_sink(output.options, place_of(output))
    for flow in graph.streaming:
        if isinstance(flow.target, Sink) and flow.target.format == FORMAT:
            place = next(each.place for each in definitions.flows if each.name == flow.name)
            findings += checks.of_columns(flow.name, flow.frame.schema, flow.target.options, place)
    return findings


def _dry_run(project: Project, definitions: Definitions, spark: "SparkSession") -> list[Finding]:
    for name in definitions.outputs:
        spark.catalog.dropTempView(name.rpartition(".")[2])
    try:
        run_triggered(project, definitions, spark, lambda _: None, dry=True)
    except PipelineError as error:
        return [Finding(Place(str(project.spec_path), 1), str(error), error.remedy)]
    return []
