"""Names of files and directories, as Kafka spells them.

A segment's files carry its base offset in twenty digits; a partition's directory is `<topic>-<partition>`.
A file that is on its way out ends in `.deleted`, a directory in `.<unique>-delete`; the copy of a log that is
on its way in from another data directory is in `<topic>-<partition>.<unique>-future`, and a log that no
partition claims in `<topic>-<partition>.<unique>-stray`.
"""

from typing import Final

from riverlog.model.ids import TopicPartition

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

DELETED_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"
SEGMENT_FILES: Final = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
MOVED_FROM: Final = "riverlog-moved-from"

META_PROPERTIES: Final = "meta.properties"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
UNRECOVERED: Final = "riverlog-unrecovered"
OPENED: Final = "riverlog-opened"
LOCK: Final = ".lock"
SHARED_METADATA: Final = "metadata"
"""The directory of the store that the brokers of one host share, in their first data directory."""

_DIGITS: Final = 20
_NAME_MAX: Final = 255


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix of a file in a partition's directory, or None for any other file."""
    digits, suffix = name[:_DIGITS], name[_DIGITS:]
    if len(digits) == _DIGITS and digits.isascii() and digits.isdigit() and suffix.startswith("."):
        return int(digits), suffix
    return None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """The partition that a directory belongs to; None when it is not a partition's directory."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()):
        return None
    return TopicPartition(topic, int(partition))


def future_directory(partition: TopicPartition, unique: str) -> str:
    return f"{partition}.{unique}{FUTURE_DIRECTORY}"


def deleted_directory(name: str, unique: str) -> str:
    """Of a directory that is on its way out."""
    suffix = f".{unique}{DELETED_DIRECTORY}"
    return f"{name[: _NAME_MAX - len(suffix)]}{suffix}"


def stray_directory(partition: TopicPartition, unique: str) -> str:
    """As Kafka does, the name of the topic is cut where it has to be, never the number of the partition."""
    suffix = f"-{partition.partition}.{unique}{STRAY_DIRECTORY}"
    return f"{partition.topic[: _NAME_MAX - len(suffix)]}{suffix}"


def parse_future_directory(name: str) -> TopicPartition | None:
    """The partition whose copy a directory holds; None when it holds none."""
    return _parse_suffixed(name, FUTURE_DIRECTORY)


def parse_stray_directory(name: str) -> TopicPartition | None:
    """The partition that a log was of before it was moved aside; None for any other directory."""
    return _parse_suffixed(name, STRAY_DIRECTORY)


def _parse_suffixed(name: str, suffix: str) -> TopicPartition | None:
    partition, dot, _ = name.removesuffix(suffix).rpartition(".")
    return parse_partition_directory(partition) if dot and name.endswith(suffix) else None
