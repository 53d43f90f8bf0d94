"""The batches of a log as they stand in its files, read past the broker."""

from collections.abc import Iterator

from riverlog.records.batch import BatchHeader, CorruptBatch, walk
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulation.violations import Violation

_SUFFIX = ".log"
_BEGINNING_BYTES = 12
"""Of a batch: its offset and its length."""


def segment_bases(disk: SimulatedDisk, directory: str) -> list[int]:
    """Ascending."""
    names = disk.list(directory) if disk.exists(directory) else []
    return sorted(int(name[: -len(_SUFFIX)]) for name in names if name.endswith(_SUFFIX))


def segment_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}{_SUFFIX}"


def batches(disk: SimulatedDisk, directory: str) -> Iterator[tuple[BatchHeader, bytes]]:
    """All of them, in the order of the files. What a broker has recovered holds nothing else (I10), but for a
    batch that is cut off."""
    for base_offset in segment_bases(disk, directory):
        path = segment_path(directory, base_offset)
        content = disk.peek(path)
        try:
            for position, header in walk(content):
                yield header, bytes(content[position : position + header.size_bytes])
        except CorruptBatch as error:
            raise Violation("I10", f"{path} holds what is no batch: {error}") from error


def base_of(disk: SimulatedDisk, directory: str, offset: int) -> int:
    """Where the batch begins that holds the offset; the offset itself where none does."""
    for base in [each for each in segment_bases(disk, directory) if each <= offset][-1:]:
        for _, header in walk(disk.peek(segment_path(directory, base))):
            if header.base_offset <= offset < header.next_offset:
                return header.base_offset
    return offset


class LogCursor:
    """A place in the files of a log, from which the next committed batches are read."""

    __slots__ = ("_base", "_before", "_disk", "_position", "directory")

    def __init__(self, disk: SimulatedDisk, directory: str) -> None:
        self._disk, self.directory = disk, directory
        self._base: int | None = None
        self._position = 0
        self._before: tuple[int, bytes] | None = None
        """Where the last batch stood, with its offset and length: a cleaned file has others there."""

    def read(self, first_offset: int, end_offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """The batches from `first_offset` to before `end_offset`."""
        if self._base is None or not self._disk.exists(segment_path(self.directory, self._base)):
            self._base = None
            self._enter(first_offset)
        while first_offset < end_offset and self._base is not None:
            content = self._disk.peek(segment_path(self.directory, self._base))
            before = first_offset
            if self._before is not None and not _stands(content, *self._before):
                self._position, self._before = 0, None
            for position, header in walk(content, self._position):
                if header.next_offset > end_offset:
                    return
                self._position = position + header.size_bytes
                self._before = position, bytes(content[position : position + _BEGINNING_BYTES])
                if header.base_offset >= first_offset:
                    first_offset = header.next_offset
                    yield header, bytes(content[position : self._position])
            if first_offset < end_offset and not self._enter(first_offset) and before == first_offset:
                return

    def _enter(self, offset: int) -> bool:
        """Go to the segment that holds the offset; whether it is another one."""
        bases = [base for base in segment_bases(self._disk, self.directory) if base <= offset]
        base = bases[-1] if bases else None
        if base == self._base:
            return False
        self._base, self._position, self._before = base, 0, None
        return True


def _stands(content: bytearray, position: int, beginning: bytes) -> bool:
    return content[position : position + _BEGINNING_BYTES] == beginning
