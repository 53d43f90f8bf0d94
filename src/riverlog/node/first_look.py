"""What a data directory is, before anything is written into it: new, ours, or somebody else's.

A directory with files of another program, or of Apache Kafka, is refused as it is. Whose of our own nodes and
clusters one is, is checked where it is opened.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.metadata.stores.embedded_store import FILE_NAME
from riverlog.metadata.stores.node_table import NodeTable
from riverlog.model.disk import Disk
from riverlog.model.errors import FormatError
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import temporary_of
from riverlog.storage.files.meta_properties import MetaProperties, read_meta_properties

_SHOWN: Final = 3
_BROKER: Final = re.compile(r"broker-(\d+)")
_UNFINISHED: Final = temporary_of(names.META_PROPERTIES)
_NOBODYS: Final = frozenset(
    {names.LOCK, _UNFINISHED, FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "lost+found"}
)
"""What may be in a directory that is new: left by a start that was cut short, by an import of metadata, or
by the file system."""


def check_is_ours(disk: Disk, path: str, *, holds_metadata: bool) -> None:
    """Raises `FormatError` for a directory that another program uses. `holds_metadata`: the first of several
    holds the metadata of the node, the others do not."""
    if not disk.exists(path):
        return
    try:
        entries = set(disk.list(path))
    except NotADirectoryError:
        return  # Whoever opens it says so.
    if names.META_PROPERTIES not in entries:
        _check_is_new(path, entries)
    elif holds_metadata and FILE_NAME not in entries and not os.path.exists(f"{path}/{FILE_NAME}"):
        _check_is_not_of_kafka(disk, path)
        _check_is_not_of_a_cluster(disk, path)


def imported_cluster_id(path: str) -> str | None:
    """The cluster whose metadata was put into a directory that is new otherwise."""
    file = f"{path}/{FILE_NAME}"
    if os.path.exists(f"{path}/{names.META_PROPERTIES}") or not os.path.exists(file):
        return None
    table = NodeTable(file)
    try:
        node = table.get(layout.CLUSTER_ID)
    finally:
        table.close()
    return None if node is None else payloads.decode_cluster_id(layout.CLUSTER_ID, node.data)


def cluster_id_beside(disk: Disk, paths: Sequence[str]) -> str | None:
    """The cluster that the other directories say this node is in, where the first is new: a disk that was
    replaced does not make the node one of another cluster."""
    first, *others = paths
    if disk.exists(f"{first}/{names.META_PROPERTIES}"):
        return None
    for path in others:
        with suppress(OSError, FormatError):  # Whoever opens it says so.
            found = read_meta_properties(disk, path)
            if found is not None:
                return found.cluster_id
    return None


def _check_is_new(path: str, entries: set[str]) -> None:
    foreign = sorted(entries - _NOBODYS)
    if not foreign:
        return
    if names.SHARED_METADATA in foreign and any(each.startswith("broker-") for each in foreign):
        brokers = sum(each.startswith("broker-") for each in foreign)
        raise FormatError(
            f"{path} is the directory of {brokers} brokers. Nothing was changed. Start all of them: "
            f"`riverlog serve --brokers {brokers} --data-dir {path}`."
        )
    shown = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
    raise FormatError(
        f"{path} is not a data directory of Riverlog: it has no {names.META_PROPERTIES}, but {shown}. "
        "Nothing was changed. Name an empty directory or a new one (--data-dir, log.dirs); if it was one of "
        f"Riverlog, restore {names.META_PROPERTIES} from a backup."
    )


def _check_is_not_of_kafka(disk: Disk, path: str) -> None:
    if b"riverlog." in disk.read(f"{path}/{names.META_PROPERTIES}"):
        return
    raise FormatError(
        f"{path} is a data directory of Apache Kafka, whose topics are not known here. Nothing was changed. "
        "Name another directory (--data-dir, log.dirs) and copy the topics while Kafka runs: `riverlog "
        "consume TOPIC -b KAFKA --from start -e -o json | riverlog produce TOPIC -i json`; or stop Kafka and "
        "make the metadata from the logs themselves: `riverlog metadata adopt`."
    )


def _check_is_not_of_a_cluster(disk: Disk, path: str) -> None:
    """One of the brokers that were started together is none by itself: its metadata is beside it."""
    name = os.path.basename(os.path.abspath(path))
    if not _BROKER.fullmatch(name):
        return
    parent = os.path.normpath(f"{path}/..")
    brokers = _brokers_beside(disk, parent, read_meta_properties(disk, path))
    shares = disk.exists(f"{parent}/{names.SHARED_METADATA}")
    if not shares and len(brokers) < 2:
        return
    count = max(brokers) - min(brokers) + 1
    command = f"riverlog serve --brokers {count} --data-dir {parent}"
    if min(brokers) != 1:
        command += f" --set node.id={min(brokers)}"
    if not shares:
        command += " --set zookeeper.connect=…"
    raise FormatError(
        f"{path} is the directory of one of {count} brokers, whose metadata is "
        f"{'shared' if shares else 'in ZooKeeper'}. Nothing was changed. Start all of them: `{command}`."
    )


def _brokers_beside(disk: Disk, parent: str, own: MetaProperties | None) -> list[int]:
    """The numbers of those of the same cluster, this one included."""
    found: list[int] = []
    for entry in disk.list(parent):
        if match := _BROKER.fullmatch(entry):
            with suppress(OSError, FormatError):  # Whoever opens it says so.
                meta = read_meta_properties(disk, f"{parent}/{entry}")
                if meta is not None and own is not None and meta.cluster_id == own.cluster_id:
                    found.append(int(match[1]))
    return found
