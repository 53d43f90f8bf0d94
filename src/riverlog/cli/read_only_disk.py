"""The local disk for someone who only looks: works on files and mounts that may not be written."""

import os

from riverlog.model.disk import DiskFile
from riverlog.storage.disk.local import LocalDisk, LocalFile


class ReadOnlyDisk(LocalDisk):
    def open(self, path: str, *, create: bool = False) -> DiskFile:
        assert not create, "nothing is created on a read-only disk"
        return LocalFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
