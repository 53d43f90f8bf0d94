"""Plots of a result as PNG: the aims at a glance, and one for each way in which work grows."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.compare.aims import THEIRS, Verdict, verdicts
from benchmarks.compare.metrics import METRICS
from benchmarks.compare.results import Result

matplotlib.use("Agg")
_DPI = 110
_COLOURS = ("#1f6f8b", "#d1603d", "#e0a458", "#6b7a8f", "#7a9e7e")
_GROWTHS = {
    "partitions": ("partitions", "produce-1KB-none-acks1-p", ("mb_s", "broker_cpu_s_per_gb")),
    "connections": ("connections", "requests-c", ("requests_s", "broker_cpu_us")),
    "log": ("GB in one partition", "log-", ("broker_cpu_s_per_gb", "p50_ms", "start_s")),
}


def draw(result: Result, directory: Path) -> list[Path]:
    """Only what the result has samples for."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    measured = [verdict for verdict in verdicts(result) if verdict.aim.unit is None and verdict.ratio]
    if measured:
        drawn.append(_save(_overview(measured), directory / "aims.png"))
    for name, (words, prefix, metrics) in _GROWTHS.items():
        points = growth_points(result, prefix)
        if len(points) > 1:
            drawn.append(_save(_growth(result, points, words, metrics), directory / f"growth-{name}.png"))
    return drawn


def growth_points(result: Result, prefix: str) -> dict[int, str]:
    """The cases that differ in one number only, by that number."""
    found = {}
    for case in result.cases:
        number = case.removeprefix(prefix).removesuffix("GB")
        if case.startswith(prefix) and number.isdigit() and result.metrics_of(case):
            found[int(number)] = case
    return dict(sorted(found.items()))


def _overview(measured: list[Verdict]) -> Figure:
    """To the right of the line is better than Apache Kafka; the mark is the aim."""
    figure = Figure(figsize=(9, 0.32 * len(measured) + 1.2), layout="constrained")
    axes = figure.subplots()
    rows = list(reversed(measured))
    gains = [_gain(verdict, verdict.ratio) for verdict in rows]
    colours = [_COLOURS[0] if verdict.is_met else _COLOURS[1] for verdict in rows]
    axes.barh(range(len(rows)), [gain - 1 for gain in gains], left=1, color=colours)
    aims = [_gain(verdict, verdict.aim.at_least or verdict.aim.at_most) for verdict in rows]
    axes.scatter(aims, range(len(rows)), marker="|", s=160, color="black", zorder=3, label="aim")
    axes.set_yticks(range(len(rows)), [verdict.aim.words for verdict in rows], fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel(f"times better than {THEIRS}, same run (logarithmic)")
    axes.legend(loc="lower right")
    return figure


def _gain(verdict: Verdict, ratio: float | None) -> float:
    assert ratio
    return ratio if verdict.aim.at_least is not None else 1 / ratio


def _growth(result: Result, points: dict[int, str], words: str, metrics: tuple[str, ...]) -> Figure:
    figure = Figure(figsize=(4.5 * len(metrics), 3.6), layout="constrained")
    every = figure.subplots(1, len(metrics))
    for axes, metric in zip(every, metrics, strict=True):
        _lines(axes, result, points, metric)
        axes.set_xlabel(words)
        axes.set_ylabel(f"{METRICS[metric].words}, {METRICS[metric].unit}")
    every[0].legend(fontsize=8)
    return figure


def _lines(axes: Axes, result: Result, points: dict[int, str], metric: str) -> None:
    for colour, target in zip(_COLOURS, result.targets, strict=False):
        spreads = {at: result.spread(case, target, metric) for at, case in points.items()}
        known = {at: spread for at, spread in spreads.items() if spread is not None}
        if not known:
            continue
        at = list(known)
        axes.plot(at, [spread.median for spread in known.values()], "o-", color=colour, label=target)
        lows, highs = [each.low for each in known.values()], [each.high for each in known.values()]
        axes.fill_between(at, lows, highs, color=colour, alpha=0.15)
    axes.set_xscale("log")
    axes.set_xticks(list(points), [f"{at:,}" for at in points])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=_DPI)
    return path
