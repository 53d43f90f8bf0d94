"""Taking a data directory: it is made if it is not there, locked, and told whose it is from then on."""

from collections.abc import Callable
from uuid import UUID

from riverlog.model.disk import DirectoryLock, Disk
from riverlog.model.errors import DirectoryInUseError, StorageError
from riverlog.model.ids import NodeId
from riverlog.storage.files import names
from riverlog.storage.files.meta_properties import (
    MetaProperties,
    check_owner,
    read_meta_properties,
    write_meta_properties,
)
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


def own(
    disk: Disk, path: str, node_id: NodeId, cluster_id: str | None, new_uuid: Callable[[], UUID]
) -> MetaProperties:
    """Whose it is: this node's, or it is refused; of a cluster that is found there, unless one is named."""
    meta = read_meta_properties(disk, path)
    if meta is not None:
        check_owner(meta, path, node_id, cluster_id)
    if meta is None or not disk.read(f"{path}/{names.META_PROPERTIES}").count(b"riverlog."):
        meta = meta or MetaProperties(node_id, cluster_id or encode_uuid(new_uuid()), new_uuid())
        write_meta_properties(disk, path, meta)
    return meta
