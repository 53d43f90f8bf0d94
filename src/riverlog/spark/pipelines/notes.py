"""What the last run knew about a project's flows, written down so that `status` need not load Spark.

One small JSON file beside the lock, replaced as a whole: for each flow where it reads and writes.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from riverlog.spark.pipelines.lag import FORMAT

if TYPE_CHECKING:
    from riverlog.spark.pipelines.graph import Graph

_FILE: Final = "flows.json"


@dataclass(frozen=True, slots=True)
class FlowNote:
    flow: str
    target: str
    sources: tuple[Mapping[str, str], ...]
    """Options of the sources that are topics."""
    sink_format: str | None
    sink_options: Mapping[str, str]


def notes_of(graph: "Graph") -> list[FlowNote]:
    return [
        FlowNote(
            flow=each.name,
            target=each.target.name,
            sources=tuple(source.options for source in each.sources if source.format == FORMAT),
            sink_format=getattr(each.target, "format", None),
            sink_options=getattr(each.target, "options", {}),
        )
        for each in graph.streaming
    ]


def write(directory: Path, notes: Sequence[FlowNote]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f".{_FILE}"
    fresh.write_text(json.dumps([asdict(note) for note in notes], indent=1))
    os.replace(fresh, directory / _FILE)


def read(directory: Path) -> list[FlowNote]:
    try:
        found: list[dict[str, Any]] = json.loads((directory / _FILE).read_text())
        return [FlowNote(**{**each, "sources": tuple(each["sources"])}) for each in found]
    except (OSError, ValueError, TypeError, KeyError):
        return []
