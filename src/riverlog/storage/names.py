"""Names of files and directories, as Kafka spells them.

A segment's files carry its base offset in twenty digits; a partition's directory is `<topic>-<partition>`.
A file that is on its way out ends in `.deleted`, a directory in `.<unique>-delete`; the copy of a log that is
on its way in from another data directory is in `<topic>-<partition>.<unique>-future`.
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
LOCK: Final = ".lock"

_DIGITS: Final = 20


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


def parse_future_directory(name: str) -> TopicPartition | None:
    """The partition whose copy a directory holds; None when it holds none."""
    partition, dot, _ = name.removesuffix(FUTURE_DIRECTORY).rpartition(".")
    return parse_partition_directory(partition) if dot and name.endswith(FUTURE_DIRECTORY) else None
