"""Taking a data directory: it is made if it is not there, and locked against every other process."""

from collections.abc import Callable
from uuid import UUID

from riverlog.model.disk import DirectoryLock, Disk
from riverlog.model.errors import DirectoryInUseError, StorageError
from riverlog.storage.files import names
from riverlog.storage.files.partition_metadata import encode_uuid


def take(disk: Disk, path: str) -> DirectoryLock:
    """Make the directory if it is not there, and lock it."""
    try:
        _make_directories(disk, path)
        return disk.lock(f"{path}/{names.LOCK}")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"Another process uses {path}. Stop it, or give this one a directory of its own."
        ) from error
    except OSError as error:
        raise StorageError(
            f"The data directory {path} cannot be used: {error.strerror or error}. Name one that can be "
            "written to (--data-dir, log.dirs)."
        ) from error


def _make_directories(disk: Disk, path: str) -> None:
    """Make the data directory so that it is still there after a power cut."""
    missing: list[str] = []
    ancestor = path
    while ancestor and not disk.exists(ancestor):
        missing.append(ancestor)
        ancestor = ancestor.rpartition("/")[0]
    disk.make_directories(path)
    for made in reversed(missing):
        disk.sync_directory(made.rpartition("/")[0] or ("/" if path.startswith("/") else "."))


def new_cluster_id(new_uuid: Callable[[], UUID]) -> str:
    return encode_uuid(new_uuid())
