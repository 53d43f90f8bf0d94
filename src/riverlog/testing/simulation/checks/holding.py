"""Up to where the files of a replica hold what was committed, whether its node is up or not.

Each replica is read once: what was found to agree with the ledger is not looked at again until it is cut.
"""

from typing import Final
from uuid import UUID

from riverlog.records.batch import walk
from riverlog.testing.simulation.checks.ledger import Ledger, PartitionLedger
from riverlog.testing.simulation.checks.log_files import LogCursor, segment_bases, segment_path
from riverlog.testing.simulation.nodes import SimulatedNode

_NOTHING: Final = 0


class Holding:
    """One replica."""

    __slots__ = ("_cursor", "_node", "end", "ledger")

    def __init__(self, node: SimulatedNode, ledger: PartitionLedger) -> None:
        self._node, self.ledger = node, ledger
        self.end = _NOTHING
        self._cursor: LogCursor | None = None

    def directory(self) -> str | None:
        name = f"{self.ledger.topic}-{self.ledger.index}"
        paths = [f"{root}/{name}" for root in self._node.log_directories]
        return next((path for path in paths if self._node.disk.exists(path)), None)

    def forget(self, end: int = _NOTHING) -> None:
        """What is behind `end` may be another now."""
        self.end = min(self.end, end)
        self._cursor = None

    def look(self, until: int | None = None) -> int:
        """The first offset that is not held, or is another; at most `until`, or the ledger's end."""
        ledger = self.ledger
        until = ledger.end if until is None else min(until, ledger.end)
        if self.end >= until:
            return self.end
        if self._cursor is None:
            directory = self.directory()
            if directory is None:
                return max(self.end, min(ledger.start, until))
            self._cursor = LogCursor(self._node.disk, directory)
        if ledger.is_compacted:
            self._read_compacted(self._cursor, until)
        else:
            self._read(self._cursor, until)
        return self.end

    def _read(self, cursor: LogCursor, until: int) -> None:
        ledger = self.ledger
        self.end = max(self.end, min(ledger.start, until))
        position = ledger.index_at(self.end)
        if position >= len(ledger.batches):
            return
        first = min(ledger.batches[position].base_offset, self.end)
        for header, data in cursor.read(first, until):
            committed = ledger.batches[position] if position < len(ledger.batches) else None
            if committed is None or committed.data != data:
                self._cursor = None
                return
            self.end, position = header.next_offset, position + 1

    def _read_compacted(self, cursor: LogCursor, until: int) -> None:
        """Offsets may be missing; `compaction` knows which."""
        ledger = self.ledger
        for header, data in cursor.read(self.end, until):
            if not ledger.is_present(header, memoryview(data)):
                self._cursor = None
                return
            self.end = header.next_offset
        if self.end < until:
            self.end = max(self.end, min(self.files_end(), until))

    def files_end(self) -> int:
        """Where the log ends by its files."""
        directory, disk = self.directory(), self._node.disk
        if directory is None:
            return _NOTHING
        bases = segment_bases(disk, directory)
        for base in reversed(bases):
            last = _NOTHING
            for _, header in walk(disk.peek(segment_path(directory, base))):
                last = header.next_offset
            if last:
                return max(last, bases[-1])
        return bases[-1] if bases else _NOTHING


class Holdings:
    """Of all replicas."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._holdings: dict[tuple[str, UUID, int], Holding] = {}
        ledger.on_cut.append(self._on_cut)

    def of(self, node: SimulatedNode, ledger: PartitionLedger) -> Holding:
        key = (node.name, ledger.topic_id, ledger.index)
        found = self._holdings.get(key)
        if found is None:
            found = self._holdings[key] = Holding(node, ledger)
        return found

    def forget_all_of(self, node: SimulatedNode) -> None:
        """Its disk may have other contents now."""
        for (name, _, _), holding in self._holdings.items():
            if name == node.name:
                holding.forget()

    def _on_cut(self, ledger: PartitionLedger) -> None:
        for holding in self._holdings.values():
            if holding.ledger is ledger:
                holding.forget(ledger.end)
