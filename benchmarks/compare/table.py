"""A result as tables for the terminal, and the same rows for the documentation."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from benchmarks.compare import limits
from benchmarks.compare.aims import OURS, THEIRS, Verdict, verdicts
from benchmarks.compare.metrics import METRICS
from benchmarks.compare.results import Result, Spread

# Shown beside the figure itself in no table: they are in the JSON.
_LEFT_OUT = frozenset({"messages_s", "client_cpu_s_per_gb", "broker_cpu_s_per_million"})
_LIMIT_OF = {"produce": "loopback_mb_s", "consume": "sendfile_mb_s", "requests": "echo_requests_s"}
_LIMITED = frozenset({"mb_s", "requests_s"})


def figure_rows(result: Result) -> Iterator[tuple[str, ...]]:
    """Case, metric, a cell for each target, the ratio, the share of the machine's limit."""
    for case, words in result.cases.items():
        for name in result.metrics_of(case):
            if name in _LEFT_OUT:
                continue
            metric = METRICS[name]
            cells = [cell(result.spread(case, target, name)) for target in result.targets]
            ratio = result.ratio(case, name, OURS, THEIRS)
            yield (words, f"{metric.words}, {metric.unit}", *cells, times(ratio), share(result, case, name))


def figure_columns(result: Result) -> tuple[str, ...]:
    return ("case", "figure", *result.targets, f"{OURS} to {THEIRS}", "of the machine")


def aim_rows(result: Result) -> Iterator[tuple[str, ...]]:
    for verdict in verdicts(result):
        aim = verdict.aim
        yield (
            aim.words,
            aim.text,
            cell(result.spread(aim.case, aim.target, aim.metric), METRICS[aim.metric].unit),
            cell(result.spread(aim.case, THEIRS, aim.metric), METRICS[aim.metric].unit),
            times(verdict.ratio) or ("not measured" if verdict.measured is None else ""),
            times(verdict.ratio_tuned),
            met(verdict),
            f"--case {aim.case}",
        )


AIM_COLUMNS = (
    "figure",
    "aim",
    OURS,
    THEIRS,
    "ratio",
    "to the tuned heap",
    "met",
    "python -m benchmarks.compare …",
)


def limit_rows(result: Result) -> Iterator[tuple[str, ...]]:
    for name, values in result.limits.items():
        yield limits.WORDS[name], cell(Spread.of(values), limits.UNITS[name])


def show(result: Result, console: Console) -> None:
    console.print(_table("The machine itself", ("limit", "median"), limit_rows(result)))
    console.print(
        _table("All figures: median ± half the spread", figure_columns(result), figure_rows(result))
    )
    console.print(_table("The aims", AIM_COLUMNS, aim_rows(result)))
    for failure in result.failures:
        console.print(f"[red]not measured:[/] {failure.case} on {failure.target}: {failure.why}")


def _table(title: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 2 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def cell(spread: Spread | None, unit: str = "") -> str:
    if spread is None:
        return ""
    around = f" ± {spread.share:.0%}" if spread.count > 1 else ""
    return f"{short(spread.median)}{f' {unit}' if unit else ''}{around}"


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def met(verdict: Verdict) -> str:
    return {None: "", True: "yes", False: "no"}[verdict.is_met]


def share(result: Result, case: str, metric: str) -> str:
    """Of the limit that the kind of case runs into first."""
    limit = result.limit(_LIMIT_OF.get(case.partition("-")[0]))
    ours = result.spread(case, OURS, metric)
    if metric not in _LIMITED or limit is None or ours is None:
        return ""
    return f"{ours.median / limit:.0%}"
