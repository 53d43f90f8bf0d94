"""What a flow has done, from the progress that Spark reports after each batch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from riverlog.spark.pipelines.checkpoints import Positions, positions_in

OBSERVED: Final = "riverlog"
ROWS_OUT: Final = "rows_out"
"""An observation of every query counts what goes out, and its only figure."""
_SMOOTHING: Final = 0.5
DEAD_LETTERS: Final = "dead"


@dataclass(slots=True)
class FlowProgress:
    """Counts since the runner was started."""

    flow: str
    target: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    last_batch: int | None = None
    lag: int | None = None
    positions: list[Positions] = field(default_factory=list)

    @property
    def is_dead_letters(self) -> bool:
        """By its name: what a flow is for cannot be seen otherwise."""
        return DEAD_LETTERS in self.flow.lower() or DEAD_LETTERS in self.target.lower()

    def add(self, report: Mapping[str, Any]) -> bool:
        """Count a report of Spark's, once. False if it was counted before, or tells of no batch."""
        batch = int(report["batchId"])
        reached = [positions_in(_text(source.get("endOffset"))) for source in report["sources"]]
        if any(reached):  # A report about waiting may have none, and the flow is still where it was.
            self.positions = reached
        if "addBatch" not in report.get("durationMs", {}):
            return False  # The number is that of the batch to come.
        if self.last_batch is not None and batch <= self.last_batch:
            return False
        rows = sum(int(source.get("numInputRows") or 0) for source in report["sources"])
        self.last_batch = batch
        self.batches += 1
        self.rows_in += rows
        self.rows_out += _rows_out(report)
        self.batch_ms = int(report.get("batchDuration") or 0)
        rate = rows / max(self.batch_ms / 1000, 0.001)
        self.rows_per_second += _SMOOTHING * (rate - self.rows_per_second)
        return True


def _rows_out(report: Mapping[str, Any]) -> int:
    """From our observation, which Spark Connect sends as values beside a schema."""
    observed = (report.get("observedMetrics") or {}).get(OBSERVED)
    if observed is not None:
        return int(observed["values"][0] if "values" in observed else observed[ROWS_OUT])
    return max(0, int((report.get("sink") or {}).get("numOutputRows") or 0))


def _text(offset: object) -> str:
    return offset if isinstance(offset, str) else json.dumps(offset)
