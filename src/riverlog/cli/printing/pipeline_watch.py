"""What a person sees while a pipeline runs: a live table on a terminal, a line now and then elsewhere.

All of it on stderr. On a terminal the table is redrawn in place; remarks scroll by above it.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from riverlog.cli.printing.durations import human_duration
from riverlog.cli.printing.output import counted, remark

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from riverlog.spark.pipelines.progress import FlowProgress

_LINE_EVERY_S: Final = 10.0


class Watcher(Protocol):
    def say(self, text: str) -> None: ...

    def show(self, flows: "Sequence[FlowProgress]") -> None: ...


@contextmanager
def watching() -> Iterator[Watcher]:
    if not sys.stderr.isatty():
        lines = LogLines()
        try:
            yield lines
        finally:
            lines.tell()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=sys.stderr), refresh_per_second=4) as live:
        yield LiveTable(live)


class LogLines:
    """A line for each flow that has done something or whose lag is another, at most every ten seconds, and
    one at the end."""

    def __init__(self) -> None:
        self._due = 0.0
        self._told: dict[str, tuple[int, int | None]] = {}
        """Of each flow, its batches and its lag."""
        self._flows: Sequence[FlowProgress] = ()

    def say(self, text: str) -> None:
        _stamped(text)

    def show(self, flows: "Sequence[FlowProgress]") -> None:
        self._flows = flows
        if time.monotonic() >= self._due and self.tell():
            self._due = time.monotonic() + _LINE_EVERY_S

    def tell(self) -> bool:
        """Whether there was anything new."""
        news = [each for each in self._flows if _state(each) != self._told.get(each.flow, (0, None))]
        for each in news:
            self._told[each.flow] = _state(each)
            _stamped(line(each))
        return bool(news)


class LiveTable:
    def __init__(self, live: "Live") -> None:
        self._live = live

    def say(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)

    def show(self, flows: "Sequence[FlowProgress]") -> None:
        self._live.update(table(flows))


def _state(each: "FlowProgress") -> tuple[int, int | None]:
    return each.batches, each.lag


def line(each: "FlowProgress") -> str:
    lag = "" if each.lag is None else f", lag {each.lag}"
    dead = ", dead letters" if each.is_dead_letters else ""
    return (
        f"{each.flow} -> {each.target}: {counted(each.batches, 'batch').replace('batchs', 'batches')}, "
        f"{each.rows_in} rows in, {each.rows_out} out{dead}, {each.rows_per_second:.0f} rows/s, "
        f"batch {human_duration(each.batch_ms)}{lag}"
    )


def table(flows: "Sequence[FlowProgress]") -> "Table":
    from rich import box
    from rich.table import Table

    dead = sum(each.rows_out for each in flows if each.is_dead_letters)
    shown = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, caption=f"dead letters: {dead}", caption_justify="left"
    )
    shown.add_column("FLOW")
    shown.add_column("TARGET")
    for title in ("ROWS IN", "ROWS OUT", "ROWS/S", "LAG", "BATCH", "BATCH TIME"):
        shown.add_column(title, justify="right")
    for each in flows:
        shown.add_row(
            each.flow,
            each.target,
            f"{each.rows_in:,}",
            f"{each.rows_out:,}",
            f"{each.rows_per_second:,.0f}",
            "-" if each.lag is None else f"{each.lag:,}",
            "-" if each.last_batch is None else str(each.last_batch),
            human_duration(each.batch_ms),
        )
    return shown


def _stamped(text: str) -> None:
    remark(f"{time.strftime('%H:%M:%S')} {text}")
