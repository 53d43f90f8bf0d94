"""What is known of the logs of a data directory that are not open: how each was closed, or at least its size.

It holds until the log is opened: nothing changes a closed log. What is not known is found out on demand, by
opening the log for a moment (`DirectoryLogs.facts_of`) or by looking how long its files are (`measure`).
"""

from collections.abc import Iterable

from riverlog.storage.disk.guarded import GuardedDisk
from riverlog.storage.files import names
from riverlog.storage.log.closed_log import LogFacts


class ClosedLogs:
    __slots__ = ("_disk", "_facts", "_path", "_sizes", "compacted")

    def __init__(self, path: str, disk: GuardedDisk) -> None:
        self._path = path
        self._disk = disk
        self._facts: dict[str, LogFacts] = {}
        self._sizes: dict[str, int] = {}
        self.compacted: set[str] = set()
        """Those of them that were compacted ones when they were closed."""

    def note(self, name: str, facts: LogFacts, *, is_compacted: bool) -> None:
        """The log says this of itself and is closed."""
        self._facts[name] = facts
        self._sizes.pop(name, None)
        if is_compacted:
            self.compacted.add(name)

    def note_size(self, name: str, size_bytes: int) -> None:
        if name not in self._facts:
            self._sizes[name] = size_bytes

    def forget(self, name: str) -> None:
        """The log is about to be opened, or is gone."""
        self._facts.pop(name, None)
        self._sizes.pop(name, None)
        self.compacted.discard(name)

    def facts_of(self, name: str) -> LogFacts | None:
        return self._facts.get(name)

    def size_of(self, name: str) -> int | None:
        facts = self._facts.get(name)
        return self._sizes.get(name) if facts is None else facts.size_bytes

    def measure(self, logs: Iterable[str]) -> dict[str, int]:
        """Bytes in the segments of these, without those that are gone. Blocks; any thread."""
        measured: dict[str, int] = {}
        for name in logs:
            directory = f"{self._path}/{name}"
            files = self._disk.list_if_there(directory)
            if files is None:
                continue
            segments = [each for each in files if each.endswith(names.LOG)]
            measured[name] = sum(self._disk.size_if_there(f"{directory}/{each}") or 0 for each in segments)
        return measured
