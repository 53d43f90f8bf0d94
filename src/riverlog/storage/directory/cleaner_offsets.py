"""How far each log of a data directory has been cleaned (`cleaner-offset-checkpoint`), in Kafka's format.

An offset that is too low costs a longer pass and nothing else, so the file is written after a pass and not
synced with anything. One that cannot be read is begun anew.
"""

import threading
from collections.abc import Callable, Iterable

from riverlog.model.disk import Disk
from riverlog.model.errors import CorruptLogError
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import decode_offsets, encode_offsets, replace_file
from riverlog.storage.log.log import Log


class CleanerOffsets:
    """By name of the partition's directory. Used on the event loop, apart from what `begin` returns."""

    __slots__ = ("_disk", "_lock", "_offsets", "_path", "_taken", "_written")

    def __init__(self, directory: str, disk: Disk) -> None:
        self._disk = disk
        self._path = f"{directory}/{names.CLEANER_OFFSETS}"
        self._lock = threading.Lock()
        self._taken = self._written = 0
        self._offsets = self._read()

    def _read(self) -> dict[str, int]:
        if not self._disk.exists(self._path):
            return {}
        try:
            return decode_offsets(self._disk.read(self._path), self._path)
        except CorruptLogError:
            return {}

    def get(self, name: str) -> int:
        return self._offsets.get(name, 0)

    def forget(self, name: str) -> None:
        self._offsets.pop(name, None)

    def note(self, name: str, log: Log) -> None:
        if log.state.cleaned_offset:
            self._offsets[name] = log.state.cleaned_offset
        else:
            self.forget(name)

    def begin(self, logs: Iterable[tuple[str, Log]]) -> Callable[[], None]:
        """Take the present offsets; the result writes them and blocks. A later one is never overwritten."""
        for name, log in logs:
            self.note(name, log)
        self._taken += 1
        number, content = self._taken, encode_offsets(self._offsets)

        def write() -> None:
            with self._lock:
                if number > self._written:
                    replace_file(self._disk, self._path, content)
                    self._written = number

        return write
