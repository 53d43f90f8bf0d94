"""What the logs in data directories of a stopped broker say about their topics. Reads only."""

import os
from collections.abc import Iterable, Iterator

from riverlog.metadata.adoption import FoundLog
from riverlog.model.ids import LeaderEpoch
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import decode_epochs
from riverlog.storage.files.partition_metadata import read_topic_id


def found_logs(directories: Iterable[str]) -> Iterator[FoundLog]:
    disk = LocalDisk()
    for directory in directories:
        for name in sorted(os.listdir(directory)):
            partition = names.parse_partition_directory(name)
            path = os.path.join(directory, name)
            if partition is not None and os.path.isdir(path):
                yield FoundLog(partition, read_topic_id(disk, path, clean=False), _latest_epoch(path))


def _latest_epoch(path: str) -> LeaderEpoch | None:
    file = os.path.join(path, names.LEADER_EPOCHS)
    if not os.path.exists(file):
        return None
    epochs = decode_epochs(LocalDisk().read(file), file)
    return epochs[-1][0] if epochs else None
