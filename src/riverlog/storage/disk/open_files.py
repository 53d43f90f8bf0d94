"""Files that are opened on first use, under one bound on how many are open at a time; and pages of them.

Eviction drops the reference that this module holds; whoever is still using the file (a slice being sent, an
fsync in a thread) keeps it open until done. Which file goes is decided by the clock algorithm, so that a
hot file costs one attribute write per use and no list is reordered.
"""

import threading
from collections import OrderedDict, deque
from typing import Final, NamedTuple

from riverlog.model.disk import Disk, DiskFile, ReadableBuffer
from riverlog.storage.disk.damage import DamageReports

_PAGES_MAX: Final = 256
PageKey = tuple[object, int, int]
"""Whose page, and the range in it."""


class Pages:
    """The index pages that were read last, of all logs of a node: with pages of 4 to 6 KB, 1.5 MB at most.

    Whoever puts a page in takes it out before what it holds changes. Every step is one call into the
    interpreter's C code, so that threads need no lock.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: OrderedDict[PageKey, ReadableBuffer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pages)

    def get(self, key: PageKey) -> ReadableBuffer | None:
        return self._pages.get(key)

    def add(self, key: PageKey, page: ReadableBuffer) -> None:
        self._pages[key] = page
        if len(self._pages) > _PAGES_MAX:
            self._pages.popitem(last=False)

    def forget(self, owner: object) -> None:
        for key in list(self._pages):
            if key[0] is owner:
                self._pages.pop(key, None)


class OpenFiles:
    """The bound, shared by all logs of a node. Safe to use from several threads."""

    __slots__ = ("_files", "_limit", "_lock", "pages")

    def __init__(self, limit: int = 1024) -> None:
        self._limit = max(limit, 2)
        self._files: deque[LazyFile] = deque()
        self._lock = threading.Lock()
        self.pages = Pages()

    @property
    def count(self) -> int:
        return len(self._files)

    def admit(self, lazy: "LazyFile", *, create: bool) -> DiskFile:
        with self._lock:
            if lazy.file is not None:
                return lazy.file
            file = lazy.files.disk.open(lazy.path, create=create)
            lazy.file = file
            while len(self._files) >= self._limit:
                oldest = self._files.popleft()
                if oldest.used:
                    oldest.used = False
                    self._files.append(oldest)
                else:
                    oldest.file = None
            self._files.append(lazy)
            lazy.used = False  # Only a second use shows that it is worth keeping.
            return file

    def forget(self, lazy: "LazyFile") -> None:
        """Let go of a file that is being closed or deleted."""
        with self._lock:
            if lazy.file is not None:
                lazy.file = None
                self._files.remove(lazy)


class Files(NamedTuple):
    """Where a data directory's files are opened, what bounds their number, and who hears of damage."""

    disk: Disk
    open_files: OpenFiles
    damage: DamageReports


class LazyFile:
    """A path that is opened when it is needed and may be closed again behind the owner's back."""

    __slots__ = ("file", "files", "path", "used")

    def __init__(self, path: str, files: Files) -> None:
        self.path = path
        self.files = files
        self.file: DiskFile | None = None
        self.used = False

    def get(self, *, create: bool = False) -> DiskFile:
        self.used = True
        return self.file or self.files.open_files.admit(self, create=create)

    def size_on_disk(self) -> int:
        """Size by path, without opening; 0 when there is no such file."""
        disk = self.files.disk
        return disk.size(self.path) if disk.exists(self.path) else 0

    def forget(self) -> None:
        self.files.open_files.forget(self)
