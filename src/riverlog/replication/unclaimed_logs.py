"""Logs that no partition of this node claims at a start: moved aside, where nobody serves or deletes them.

Only those of a topic that is known to have been deleted, while this node was away, are deleted as well: the
metadata names the ids. `metadata.strays` decides which logs are unclaimed; here they are looked for in the
data directories. How they are kept is `storage.directory.strays`.
"""

from collections.abc import Collection, Iterator, Sequence

from riverlog.metadata.image import ClusterImage
from riverlog.metadata.strays import are_too_many, stray_logs
from riverlog.model.errors import CorruptLogError, FormatError
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.storage.directory.log_directory import LogDirectory


def set_strays_aside(
    directories: Sequence[LogDirectory],
    image: ClusterImage,
    node_id: NodeId,
    *,
    accept_many: bool,
    deleted: Collection[TopicId] = (),
) -> None:
    """Raises `FormatError`, and moves nothing, when they are so many that the metadata must be wrong.
    `deleted` are topics whose logs are not strays."""
    unclaimed = [
        (directory, stray)
        for directory in directories
        for stray in stray_logs(image, node_id, _identified(directory, image))
    ]
    gone = [
        (directory, log) for directory, log in unclaimed if deleted and _topic_id(directory, log) in deleted
    ]
    found = [each for each in unclaimed if each not in gone]
    strays = [stray for _, stray in found]
    log_count = sum(map(len, directories))
    if are_too_many(strays, log_count) and not accept_many:
        raise FormatError(
            f"{len(strays)} of {log_count} logs, such as {strays[0]}, belong to no partition in the "
            "metadata, which may be out of date or of another cluster. Restore the right metadata "
            "(`riverlog metadata import` takes an export), or start with riverlog.strays.accept=true to "
            "have these logs moved aside."
        )
    for directory, stray in found:
        directory.set_aside(stray)
    for directory, log in gone:
        directory.delete(log)


def _identified(
    directory: LogDirectory, image: ClusterImage
) -> Iterator[tuple[TopicPartition, TopicId | None]]:
    """Every log with its topic id, or None where it need not be known.

    One log speaks for its topic, so that a start does not read as many files as there are partitions; where
    its id is not the right one, each is asked. What is left of a mixture is found when it is opened.
    """
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in sorted(directory.partitions()):
        by_topic.setdefault(partition.topic, []).append(partition)
    for name, partitions in by_topic.items():
        topic = image.topics.get(name)
        is_right = topic is None or _topic_id(directory, partitions[0]) == topic.topic_id
        for partition in partitions:
            yield partition, None if is_right else _topic_id(directory, partition)


def _topic_id(directory: LogDirectory, partition: TopicPartition) -> TopicId | None:
    try:
        return directory.logs.topic_id_of(partition)
    except CorruptLogError:
        return None  # Whoever opens the log is told.
