"""What a benchmark yields, and how it is shown: a figure, the machine's own limit beside it, and the aim."""

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Aim:
    """A bound that the project set itself, on the value or on the ratio to the machine's limit."""

    at_most: float | None = None
    of: str = "value"
    at_least: float | None = None

    def is_met_by(self, measured: float) -> bool:
        if self.at_most is not None and measured > self.at_most:
            return False
        return self.at_least is None or measured >= self.at_least

    def text(self, unit: str) -> str:
        suffix = "x" if self.of == "ratio" else f" {unit}"
        bounds = (("<=", self.at_most), (">=", self.at_least))
        return ", ".join(f"{sign} {bound:g}{suffix}" for sign, bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    limit: float | None = None
    limit_name: str = ""
    aim: Aim | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.limit if self.limit else None

    @property
    def is_met(self) -> bool | None:
        if self.aim is None:
            return None
        measured = self.ratio if self.aim.of == "ratio" else self.value
        return measured is not None and self.aim.is_met_by(measured)


def show(figures: list[Figure], *, title: str = "Riverlog on this machine") -> None:
    table = Table(title=title, title_justify="left")
    for column in ("figure", "value", "unit", "machine's own limit", "ratio", "aim", "met"):
        table.add_column(column, justify="left" if column in {"figure", "unit", "aim"} else "right")
    for figure in figures:
        table.add_row(*_cells(figure))
    Console(width=150).print(table)


def _cells(figure: Figure) -> tuple[str, ...]:
    limit = f"{_short(figure.limit)} ({figure.limit_name})" if figure.limit else ""
    ratio = f"{figure.ratio:.2f}x" if figure.ratio is not None else ""
    aim = figure.aim.text(figure.unit) if figure.aim else ""
    met = {None: "", True: "yes", False: "no"}[figure.is_met]
    return figure.name, _short(figure.value), figure.unit, limit, ratio, aim, met


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def save(figures: list[Figure]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "bench.json"
    document = {
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": sys.version.split()[0]},
        "commit": _commit(),
        "figures": [asdict(figure) | {"ratio": figure.ratio, "met": figure.is_met} for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def _commit() -> str:
    answer = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"
