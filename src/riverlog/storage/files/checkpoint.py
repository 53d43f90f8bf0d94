"""Small files that are replaced atomically, and the two text formats that Kafka uses for checkpoints.

Replacing writes a temporary file, syncs it, renames it and syncs the directory, so that after a crash the
old or the new content is there, whole.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

from riverlog.model.disk import Disk
from riverlog.model.errors import CorruptLogError, DiskFullError
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.storage.files.names import parse_partition_directory

_VERSION: Final = 0
_TEMPORARY: Final = ".tmp"


def temporary_of(path: str) -> str:
    """What is left of a file that was never replaced, because the disk failed or the process ended."""
    return path + _TEMPORARY


def replace_file(disk: Disk, path: str, content: bytes) -> None:
    """Put `content` in place of whatever is at `path`. Blocks for the disk."""
    temporary = temporary_of(path)
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite(content, 0)
        file.datasync()
    except DiskFullError:
        with contextlib.suppress(DiskFullError):
            disk.unlink(temporary)
        raise
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_directory(path.rpartition("/")[0])


def encode_offsets(offsets: Mapping[str, int]) -> bytes:
    """By name of the partition's directory."""
    lines = [str(_VERSION), str(len(offsets))]
    for name, offset in offsets.items():
        topic, _, partition = name.rpartition("-")
        lines.append(f"{topic} {partition} {offset}")
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(content: bytes, path: str) -> dict[str, int]:
    """Offsets other than 0 by name of the partition's directory."""
    offsets: dict[str, int] = {}
    for fields in _rows(content, path, columns=3):
        topic, partition, offset = fields
        if (value := _number(offset, path)) != 0:
            offsets[f"{topic}-{partition}"] = value
    return offsets


def encode_epochs(epochs: Iterable[tuple[LeaderEpoch, int]]) -> bytes:
    rows = [f"{epoch} {start_offset}" for epoch, start_offset in epochs]
    return "\n".join([str(_VERSION), str(len(rows)), *rows, ""]).encode()


def decode_epochs(content: bytes, path: str) -> list[tuple[LeaderEpoch, int]]:
    return [
        (LeaderEpoch(_number(epoch, path)), _number(start, path))
        for epoch, start in _rows(content, path, columns=2)
    ]


def _rows(content: bytes, path: str, *, columns: int) -> list[list[str]]:
    lines = content.decode(errors="replace").splitlines()
    if len(lines) < 2 or lines[0].strip() != str(_VERSION):
        raise _corrupt(path, "it does not begin with version 0")
    rows = [line.split(" ") for line in lines[2:] if line]
    if len(rows) != _number(lines[1], path) or any(len(row) != columns for row in rows):
        raise _corrupt(path, "its rows are not what its count says")
    return rows


def _number(text: str, path: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise _corrupt(path, f"{text!r} is not a number") from error


def _corrupt(path: str, reason: str) -> CorruptLogError:
    return CorruptLogError(
        f"The checkpoint {path} is unreadable: {reason}. Remove it; the logs are then checked whole."
    )


def partition_of(name: str) -> TopicPartition:
    """The partition of a directory name that is known to be one."""
    partition = parse_partition_directory(name)
    assert partition is not None
    return partition
