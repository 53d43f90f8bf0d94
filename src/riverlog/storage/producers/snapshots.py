"""The producer snapshot files of one log.

A snapshot is named for the first offset that it does not cover. One is taken at every roll and at a clean
close; it lives as long as the segment that begins at its offset, and the newest of the others is kept too.
A snapshot that is torn or corrupt is removed: an older one and a longer replay give the same state.
"""

from riverlog.model.disk import Disk
from riverlog.model.errors import CorruptLogError, DiskFullError
from riverlog.storage.files import names
from riverlog.storage.producers.snapshot import decode_snapshot, encode_snapshot
from riverlog.storage.producers.state import ProducerEntry, ProducerStates


class ProducerSnapshots:
    __slots__ = ("_directory", "_disk", "_offsets")

    def __init__(self, directory: str, disk: Disk, offsets: set[int]) -> None:
        self._directory = directory
        self._disk = disk
        self._offsets = offsets

    @property
    def latest(self) -> int | None:
        return max(self._offsets, default=None)

    @property
    def offsets(self) -> frozenset[int]:
        return frozenset(self._offsets)

    def path(self, offset: int) -> str:
        return names.segment_path(self._directory, offset, names.SNAPSHOT)

    def write(self, offset: int, producers: ProducerStates) -> None:
        """Write the state at `offset`, without syncing it. When the disk is full nothing is left behind."""
        path = self.path(offset)
        content = encode_snapshot(producers)
        file = self._disk.open(path, create=True)
        try:
            file.truncate(0)
            file.pwrite(content, 0)
        except DiskFullError:
            self._disk.unlink(path)
            self._offsets.discard(offset)
            raise
        finally:
            file.close()
        self._offsets.add(offset)

    def load_latest(self, end: int) -> tuple[int, list[tuple[int, ProducerEntry]]]:
        """Offset and entries of the newest whole snapshot up to `end`; 0 and nothing when there is none."""
        for offset in sorted((offset for offset in self._offsets if offset <= end), reverse=True):
            try:
                return offset, decode_snapshot(self._disk.read(self.path(offset)))
            except CorruptLogError:
                self.remove(offset)
        return 0, []

    def remove(self, offset: int) -> None:
        if offset in self._offsets:
            self._offsets.discard(offset)
            self._disk.unlink(self.path(offset))

    def remove_after(self, offset: int) -> None:
        for later in [taken for taken in self._offsets if taken > offset]:
            self.remove(later)

    def remove_strays(self, base_offsets: set[int], end_offset: int) -> None:
        """Keep the snapshots of segments, and of the others the newest that is not past the log's end."""
        strays = sorted(offset for offset in self._offsets if offset not in base_offsets)
        keep = max((offset for offset in strays if offset <= end_offset), default=None)
        for offset in strays:
            if offset != keep:
                self.remove(offset)
