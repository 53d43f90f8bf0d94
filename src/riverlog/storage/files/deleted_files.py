"""Files and directories that are renamed and wait to be removed (`file.delete.delay.ms`).

A reader that found its place before the deletion still has the time to finish. Decided on the event loop;
removing a large file takes a while, so `remove` is for a thread.
"""

import heapq
from collections.abc import Iterable

from riverlog.model.disk import Disk


class DeletedFiles:
    """Paths by the time when they may go. Used on one thread, apart from `remove`."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, path: str, due_ms: int) -> None:
        heapq.heappush(self._waiting, (due_ms, path))

    def take_due(self, now_ms: int) -> list[str]:
        due: list[str] = []
        while self._waiting and self._waiting[0][0] <= now_ms:
            due.append(heapq.heappop(self._waiting)[1])
        return due

    def drop_below(self, directory: str) -> None:
        """Forget what lies in a directory that is itself being deleted."""
        self._waiting = [item for item in self._waiting if not item[1].startswith(directory + "/")]
        heapq.heapify(self._waiting)


def remove(disk: Disk, paths: Iterable[str]) -> None:
    """Remove files and directory trees. Blocks; any thread."""
    for path in paths:
        if path.endswith("-delete"):
            disk.remove_tree(path)
        else:
            disk.unlink(path)
