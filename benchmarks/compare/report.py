"""The generated part of docs/performance.md: tables and plots of one result. What was found is written by
hand.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.compare import plots, table
from benchmarks.compare.aims import AIMS, TUNED, verdicts
from benchmarks.compare.failing import CompareError
from benchmarks.compare.results import Result

BEGIN, END = "<!-- compare:begin -->", "<!-- compare:end -->"
DOCS = Path(__file__).parents[2] / "docs"
_PLOTS = {
    "aims.png": "Every aim beside Apache Kafka",
    "growth-partitions.png": "From 1 to 1,000 partitions",
    "growth-connections.png": "From 1 to 1,000 connections",
    "growth-log.png": "From 1 GB to 20 GB of log",
}


class NoPlaceError(CompareError):
    """The page has no marks between which to write."""


def write(result: Result, docs: Path = DOCS) -> Path:
    page = docs / "performance.md"
    drawn = plots.draw(result, docs / "performance")
    page.write_text(placed(page.read_text(), section(result, [path.name for path in drawn])))
    return page


def placed(page: str, text: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoPlaceError(f"the page needs {BEGIN} and {END}: the report goes between them")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def section(result: Result, drawn: list[str]) -> str:
    return "".join(f"{line}\n" for line in _lines(result, drawn))


def _lines(result: Result, drawn: list[str]) -> Iterator[str]:
    yield "<!-- Written by `python -m benchmarks.compare report RESULT.json`; do not edit here. -->"
    yield from _about(result)
    known = [verdict for verdict in verdicts(result) if verdict.measured is not None]
    reached = sum(1 for verdict in known if verdict.is_met)
    yield ""
    yield "### The aims"
    yield f"{reached} of {len(AIMS)} are met; {len(AIMS) - len(known)} could not be measured in this run."
    yield ""
    yield from _table(table.AIM_COLUMNS, table.aim_rows(result))
    for name in drawn:
        yield ""
        yield f"![{_PLOTS[name]}](performance/{name})"
    yield ""
    yield "### What the machine can do"
    yield from _table(("limit", "median"), table.limit_rows(result))
    yield ""
    yield "### All figures"
    yield "Medians, with half the way from the lowest sample to the highest. The last column is Riverlog's"
    yield "share of what the machine can do: loopback TCP for produce, sendfile for consume, an echo for"
    yield "small requests."
    yield ""
    yield from _table(table.figure_columns(result), table.figure_rows(result))
    for failure in result.failures:
        yield ""
        yield f"Not measured: {failure.case} on {failure.target} ({failure.why})."


def _about(result: Result) -> Iterator[str]:
    machine, versions = result.machine, result.versions
    yield f"One run of `{result.command}` on {result.started}, commit `{result.commit[:12]}`, "
    yield f"{result.repeats} repeats, {result.seconds / 60:.0f} minutes."
    yield ""
    yield f"- Machine: {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB, "
    yield f"  {machine['filesystem']}, {machine['system']}; load {machine['load_at_start']:.1f} at the start."
    yield f"- Versions: {', '.join(f'{name} {text}' for name, text in versions.items())}."
    for name, about in result.targets.items():
        why = " It is the same broker in half the memory." if name == TUNED else ""
        yield f"- `{name}`: {about}.{why}"
    settings = ", ".join(f"`{key}={value}`" for key, value in result.settings.items())
    yield f"- Settings of every target: {settings}; the rest is each broker's default."


def _table(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    names = list(columns)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
