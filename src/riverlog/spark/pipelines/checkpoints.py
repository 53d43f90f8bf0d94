"""The checkpoints of a project: where Spark's engine puts them, and how far each has come.

    <storage>/_checkpoints/<sink>/<flow>/<number>
    <storage>/_checkpoints/<catalog>/<database>/<table>/<flow>/<number>

The number counts full refreshes; the highest is in use. The runner keeps its queries on the same directories,
so that `run`, `run --once` and Spark's own command go on where the last one stopped. Read without Spark.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyarrow import ArrowInvalid  # type: ignore[import-untyped]
from pyarrow import fs as filesystems

from riverlog.spark.pipelines.failures import PipelineError
from riverlog.spark.pipelines.project import Project

_ROOT: Final = "_checkpoints"
_DEEPEST: Final = 6
_HEADER_LINES: Final = 2
"""Of an offsets file: its version, and what Spark notes about the batch. One line for each source follows."""

Positions = Mapping[str, Mapping[int, int]]
"""By topic and partition, the next offset to be read."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    target: str
    flow: str
    location: str
    committed_batch: int | None
    planned_batch: int | None
    positions: tuple[Positions, ...]
    """After the committed batch; of each source that counts in offsets of topics, an empty one of others."""
    committed_ms: int | None


class CheckpointStore:
    def __init__(self, project: Project) -> None:
        self._storage = project.storage.rstrip("/")
        local = project.local_storage
        try:
            if local is not None:
                self._files: Any = filesystems.LocalFileSystem()
                self._root = str(local)
            else:
                self._files, self._root = filesystems.FileSystem.from_uri(project.storage)
        except (ArrowInvalid, OSError) as error:
            raise PipelineError(f"the storage {project.storage} cannot be opened: {error}") from error

    def all(self) -> list[Checkpoint]:
        return [self._read(directory) for directory in self._flow_directories(f"{self._root}/{_ROOT}", 0)]

    def location(self, target: tuple[str, ...], flow: str) -> str:
        """The directory in use for a flow, as a URI for Spark. It need not exist yet."""
        below = "/".join((_ROOT, *target, flow))
        number = max(self._numbers(f"{self._root}/{below}"), default=0)
        return f"{self._storage}/{below}/{number}"

    def positions(self, target: tuple[str, ...], flow: str) -> list[Positions]:
        """Where a flow goes on; nothing if it has not had a batch yet."""
        directory = "/".join((self._root, _ROOT, *target, flow))
        return list(self._read(directory).positions) if self._numbers(directory) else []

    def _flow_directories(self, directory: str, depth: int) -> Iterator[str]:
        if self._numbers(directory):
            yield directory
        elif depth < _DEEPEST:
            for entry in self._entries(directory):
                if entry.type == filesystems.FileType.Directory:
                    yield from self._flow_directories(entry.path, depth + 1)

    def _numbers(self, directory: str) -> list[int]:
        return [
            int(entry.base_name)
            for entry in self._entries(directory)
            if entry.type == filesystems.FileType.Directory and entry.base_name.isdecimal()
        ]

    def _read(self, directory: str) -> Checkpoint:
        parts = directory.removeprefix(f"{self._root}/{_ROOT}/").split("/")
        number = max(self._numbers(directory))
        planned = self._last_file(f"{directory}/{number}/offsets")
        committed = self._last_file(f"{directory}/{number}/commits")
        batch = None if committed is None else int(committed.base_name)
        return Checkpoint(
            target=".".join(parts[:-1]),
            flow=parts[-1],
            location=f"{self._storage}/{_ROOT}/{'/'.join(parts)}/{number}",
            committed_batch=batch,
            planned_batch=None if planned is None else int(planned.base_name),
            positions=() if batch is None else self._positions(f"{directory}/{number}/offsets/{batch}"),
            committed_ms=None if committed is None else committed.mtime_ns // 1_000_000,
        )

    def _last_file(self, directory: str) -> Any:
        files = [entry for entry in self._entries(directory) if entry.base_name.isdecimal()]
        return max(files, key=lambda entry: int(entry.base_name), default=None)

    def _positions(self, path: str) -> tuple[Positions, ...]:
        try:
            with self._files.open_input_stream(path) as stream:
                lines = stream.read().decode().splitlines()
        except FileNotFoundError:  # A runner that is alive has removed it: newer ones are there.
            return ()
        return tuple(positions_in(line) for line in lines[_HEADER_LINES:])

    def _entries(self, directory: str) -> list[Any]:
        selector = filesystems.FileSelector(directory, allow_not_found=True)
        return [entry for entry in self._files.get_file_info(selector) if not entry.base_name.startswith(".")]


def positions_in(text: str) -> Positions:
    """The offset of a source, if it is `{topic: {partition: offset}}`; otherwise nothing."""
    try:
        found = json.loads(text)
        return {
            str(topic): {int(partition): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in found.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}
