"""Which logs were opened to be written since the start, in a file: after a kill the others need no recovery.

A name is in the file before its log is touched; a later line takes it back when the log was closed with all
of it on disk. The file is not synced: it outlives the process, not the
machine. So the first line has the boot id of the machine, and under another one nothing of it counts; then
every log is recovered, as where there is no file. A clean shutdown takes it away. When there is no room for
another name it goes as well, which costs time after the next crash and nothing else.
"""

from collections.abc import Collection

from riverlog.model.disk import Disk
from riverlog.model.errors import DiskFullError
from riverlog.storage.files import names

_CLOSED = "!"
"""In front of a name; no topic's name has it."""
_LINES_MIN = 10_000


def read_opened(disk: Disk, path: str, boot_id: str) -> set[str] | None:
    """Names of the logs that were opened before a crash; None where nobody knows."""
    file = f"{path}/{names.OPENED}"
    if not boot_id or not disk.exists(file):
        return None
    whole = disk.read(file).decode(errors="replace").split("\n")[:-1]  # What stands behind them may be torn.
    if not whole:
        return None
    noted_under, *lines = whole
    if noted_under != boot_id:
        return None
    opened = set[str]()
    for line in lines:
        if line.startswith(_CLOSED):
            opened.discard(line.removeprefix(_CLOSED))
        else:
            opened.add(line)
    return opened


class OpenedLogs:
    __slots__ = ("_boot_id", "_disk", "_end", "_leaving", "_lines", "_names", "_path")

    def __init__(self, path: str, disk: Disk, boot_id: str, unrecovered: Collection[str]) -> None:
        """Begins a new file, in which those that are still to be recovered stand already."""
        self._path = f"{path}/{names.OPENED}"
        self._disk = disk
        self._boot_id = boot_id
        self._names = set(unrecovered)
        self._leaving = set[str]()
        self._lines = 0
        self._end: int | None = None
        """Where the next name belongs; None when there is no file."""
        if boot_id:
            self._begin_if_there_is_room()

    def _begin_if_there_is_room(self) -> None:
        try:
            self._begin()
        except DiskFullError:
            self.remove()

    def _begin(self) -> None:
        content = "".join(f"{line}\n" for line in (self._boot_id, *sorted(self._names))).encode()
        temporary = f"{self._path}.tmp"
        file = self._disk.open(temporary, create=True)
        try:
            file.truncate(0)
            file.pwrite(content, 0)
        finally:
            file.close()
        self._disk.rename(temporary, self._path)
        self._end = len(content)
        self._lines = len(self._names)

    def note(self, name: str) -> None:
        """Call before anything of the log is changed."""
        self._leaving.discard(name)
        if name not in self._names:
            self._names.add(name)
            self._add([name])

    def begin_leaving(self, closed: Collection[str]) -> None:
        """These logs were closed, with all of them on disk, and a checkpoint is about to say so. Those that
        are opened again before `finish_leaving` stay."""
        self._leaving = self._names.intersection(closed)

    def finish_leaving(self) -> None:
        """The checkpoint is written: the others need no recovery any more."""
        leaving, self._leaving = self._leaving, set()
        self._names -= leaving
        if leaving and self._end is not None:
            self._add([f"{_CLOSED}{name}" for name in sorted(leaving)])
            if self._lines > max(2 * len(self._names), _LINES_MIN):
                self._begin_if_there_is_room()

    def _add(self, lines: Collection[str]) -> None:
        if self._end is None:
            return
        content = "".join(f"{line}\n" for line in lines).encode()
        file = self._disk.open(self._path)
        try:
            file.pwrite(content, self._end)
        except DiskFullError:
            self.remove()
            return
        finally:
            file.close()
        self._end += len(content)
        self._lines += len(lines)

    def remove(self) -> None:
        self._end = None
        self._disk.unlink(self._path)
