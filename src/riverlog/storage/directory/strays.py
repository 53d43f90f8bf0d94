"""Logs that were moved aside because no partition claimed them, in `<topic>-<partition>.<unique>-stray`.

A broker never looks into them again, nor removes them: what the metadata does not know may be what it has
lost. `riverlog log strays` lists and removes them. Not here: what makes a log a stray (`metadata.strays`).
"""

from typing import NamedTuple

from riverlog.model.disk import Disk
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.files import names
from riverlog.storage.files.partition_metadata import read_topic_id


class Stray(NamedTuple):
    path: str
    topic_partition: TopicPartition
    """The topic's name is cut where the directory's would have been too long."""
    topic_id: TopicId | None
    size_bytes: int


def strays_in(disk: Disk, data_directory: str) -> list[Stray]:
    found = ((names.parse_stray_directory(name), name) for name in sorted(disk.list(data_directory)))
    return [
        _stray(disk, f"{data_directory}/{name}", partition)
        for partition, name in found
        if partition is not None
    ]


def remove_stray(disk: Disk, stray: Stray) -> None:
    """For good. Cut short by a crash, it is a stray with fewer files."""
    disk.remove_tree(stray.path)
    disk.sync_directory(stray.path.rpartition("/")[0])


def _stray(disk: Disk, path: str, partition: TopicPartition) -> Stray:
    return Stray(path, partition, read_topic_id(disk, path, clean=False), log_bytes(disk, path))


def log_bytes(disk: Disk, directory: str) -> int:
    """Bytes in the segments of a log that is not open."""
    files = [name for name in disk.list(directory) if name.endswith(names.LOG)]
    return sum(disk.size(f"{directory}/{name}") for name in files)
