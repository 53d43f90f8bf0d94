"""What `riverlog pipeline` prints as data: findings and the state of flows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from riverlog.cli.options import OutputFormat
from riverlog.cli.printing.durations import human_duration
from riverlog.cli.printing.output import counted, remark, show_json

if TYPE_CHECKING:
    from riverlog.spark.pipelines.checks.findings import Finding
    from riverlog.spark.pipelines.status import FlowStatus


def print_findings(findings: "list[Finding]", directory: Path, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        show_json(
            [
                {
                    "file": each.place.path,
                    "line": each.place.line,
                    "message": each.message,
                    "remedy": each.remedy or None,
                }
                for each in findings
            ]
        )
        return
    for each in findings:
        typer.echo(finding_line(each, directory))
    remark(counted(len(findings), "finding") if findings else "nothing found wrong")


def finding_line(finding: "Finding", directory: Path) -> str:
    remedy = f" (try: {finding.remedy})" if finding.remedy else ""
    return f"{finding.place.within(directory)}: {finding.message}{remedy}"


def status_row(each: "FlowStatus", output: OutputFormat) -> dict[str, object]:
    point = each.checkpoint
    row: dict[str, object] = {"flow": point.flow, "target": point.target, "batch": point.committed_batch}
    if output is OutputFormat.JSON:
        return row | {
            "planned_batch": point.planned_batch,
            "lag": each.lag,
            "positions": each.positions,
            "committed_ms": point.committed_ms,
            "checkpoint": point.location,
        }
    now_ms = int(datetime.now(tz=UTC).timestamp() * 1000)
    age = None if point.committed_ms is None else f"{human_duration(max(0, now_ms - point.committed_ms))} ago"
    places = [
        f"{topic}[{','.join(f'{number}:{offset}' for number, offset in sorted(partitions.items()))}]"
        for topic, partitions in sorted(each.positions.items())
    ]
    return row | {"committed": age, "lag": each.lag, "positions": " ".join(places) or None}
