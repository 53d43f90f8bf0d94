"""Which logs were opened to be written since the start, in a file: after a kill the others need no recovery.

A name is in the file before its log is touched. The file is not synced: it outlives the process, not the
machine. So the first line has the boot id of the machine, and under another one nothing of it counts; then
every log is recovered, as where there is no file. A clean shutdown takes it away. When there is no room for
another name it goes as well, which costs time after the next crash and nothing else.
"""

from collections.abc import Collection

from riverlog.model.disk import Disk
from riverlog.model.errors import DiskFullError
from riverlog.storage.files import names


def read_opened(disk: Disk, path: str, boot_id: str) -> set[str] | None:
    """Names of the logs that were opened before a crash; None where nobody knows."""
    file = f"{path}/{names.OPENED}"
    if not boot_id or not disk.exists(file):
        return None
    noted_under, *opened = disk.read(file).decode(errors="replace").split("\n")
    return set(opened) if noted_under == boot_id else None


class OpenedLogs:
    __slots__ = ("_boot_id", "_disk", "_end", "_names", "_path")

    def __init__(self, path: str, disk: Disk, boot_id: str, unrecovered: Collection[str]) -> None:
        """Begins a new file, in which those that are still to be recovered stand already."""
        self._path = f"{path}/{names.OPENED}"
        self._disk = disk
        self._boot_id = boot_id
        self._names = set(unrecovered)
        self._end: int | None = None
        """Where the next name belongs; None when there is no file."""
        if boot_id:
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

    def note(self, name: str) -> None:
        """Call before anything of the log is changed."""
        if self._end is None or name in self._names:
            return
        line = f"{name}\n".encode()
        file = self._disk.open(self._path)
        try:
            file.pwrite(line, self._end)
        except DiskFullError:
            self.remove()
            return
        finally:
            file.close()
        self._end += len(line)
        self._names.add(name)

    def remove(self) -> None:
        self._end = None
        self._disk.unlink(self._path)
