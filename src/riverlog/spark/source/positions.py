"""Places that options name, found in the cluster: which partitions there are, and which offsets are meant."""

from collections.abc import Collection, Mapping
from typing import assert_never
from uuid import UUID

from riverlog.client.cluster import Cluster
from riverlog.client.core.metadata import KnownTopic
from riverlog.client.offsets import EARLIEST, LATEST, committed_offsets, list_offsets
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.spark.connection import OptionError
from riverlog.spark.source.java_pattern import topic_matcher
from riverlog.spark.source.options import Assign, Selection, SourceOptions, Subscribe, SubscribePattern
from riverlog.spark.source.places import (
    EARLIEST_NUMBER,
    LATEST_NUMBER,
    AtGroup,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    Offsets,
    Place,
)


class UnknownTopicError(RiverlogError):
    """A topic or partition that was asked for by name does not exist."""


class Selected:
    """The partitions that the selection stands for now."""

    def __init__(self, partitions: Collection[TopicPartition], topic_ids: Mapping[str, UUID | None]) -> None:
        self.partitions = sorted(partitions)
        self.topic_ids = topic_ids


def select(cluster: Cluster, selection: Selection) -> Selected:
    """Those that exist, which may be none."""
    match selection:
        case Subscribe(topics):
            views = cluster.topics(topics)
        case SubscribePattern(pattern):
            matches = topic_matcher(pattern)
            views = {
                name: view
                for name, view in cluster.topics().items()
                if matches(name) and not view.is_internal
            }
        case Assign(assigned):
            views = cluster.topics({at.topic for at in assigned})
    there = {name: view for name, view in views.items() if _exists(view)}
    partitions = {TopicPartition(name, index) for name, view in there.items() for index in view.partitions}
    if isinstance(selection, Assign):
        partitions &= set(selection.partitions)
    return Selected(partitions, {name: view.topic_id for name, view in there.items()})


def require_all(selected: Selected, selection: Selection) -> None:
    """What is asked for by name has to exist before anything has been read from it."""
    match selection:
        case Subscribe(topics):
            missing = sorted(set(topics) - set(selected.topic_ids))
            if missing:
                raise UnknownTopicError(
                    f"topic {missing[0]} does not exist; create it, or correct option subscribe"
                )
        case Assign(assigned):
            lacking = sorted(set(assigned) - set(selected.partitions))
            if lacking:
                raise UnknownTopicError(
                    f"partition {lacking[0].partition} of topic {lacking[0].topic} does not exist; "
                    "correct option assign"
                )
        case SubscribePattern():
            pass


def option_without(selection: Selection, at: TopicPartition) -> str | None:
    """The option that has chosen something else, when the partition is none of what it asks for."""
    match selection:
        case Subscribe(topics):
            return None if at.topic in topics else "subscribe"
        case SubscribePattern(pattern):
            return None if topic_matcher(pattern)(at.topic) else "subscribePattern"
        case Assign(assigned):
            return None if at in assigned else "assign"


def earliest(cluster: Cluster, partitions: Collection[TopicPartition]) -> Offsets:
    return _listed(cluster, dict.fromkeys(partitions, EARLIEST), read_committed=False)


def latest(cluster: Cluster, partitions: Collection[TopicPartition], *, read_committed: bool) -> Offsets:
    return _listed(cluster, dict.fromkeys(partitions, LATEST), read_committed=read_committed)


def find(
    cluster: Cluster,
    options: SourceOptions,
    place: Place,
    partitions: Collection[TopicPartition],
    selected: Collection[TopicPartition],
    side: str,
) -> Offsets:
    """The offset of each partition at the place; `side` is starting or ending.

    `partitions` may be some of the selected ones. What the place says is checked against all of them.
    """
    committed = options.reading.read_committed
    match place:
        case Earliest():
            return earliest(cluster, partitions)
        case Latest():
            return latest(cluster, partitions, read_committed=committed)
        case AtOffsets(offsets):
            _check_names(f"{side}Offsets", offsets, selected)
            return _specific(cluster, {at: offsets[at] for at in partitions}, committed)
        case AtTimestamp(timestamp_ms):
            option = f"{side}Timestamp"
            return _timed(cluster, options, dict.fromkeys(partitions, timestamp_ms), option)
        case AtTimestamps(timestamps):
            option = f"{side}OffsetsByTimestamp"
            _check_names(option, timestamps, selected)
            return _timed(cluster, options, {at: timestamps[at] for at in partitions}, option)
        case AtGroup(group):
            return _of_group(cluster, group, partitions, selected, f"{side}Offsets", committed)
        case _:
            assert_never(place)


def _specific(cluster: Cluster, offsets: Offsets, read_committed: bool) -> Offsets:
    first = earliest(cluster, [at for at, offset in offsets.items() if offset == EARLIEST_NUMBER])
    last = latest(
        cluster,
        [at for at, offset in offsets.items() if offset == LATEST_NUMBER],
        read_committed=read_committed,
    )
    return {**offsets, **first, **last}


def _timed(
    cluster: Cluster, options: SourceOptions, timestamps: dict[TopicPartition, int], option: str
) -> Offsets:
    committed = options.reading.read_committed
    found = list_offsets(cluster, timestamps, read_committed=committed)
    without = [at for at, offset in found.items() if offset is None]
    if without and option.startswith("starting") and not options.latest_when_no_later_record:
        at = min(without)
        raise OptionError(
            option,
            f"partition {at.partition} of topic {at.topic} has no record at or after {timestamps[at]}",
            "set startingOffsetsByTimestampStrategy to latest to begin at its end",
        )
    ends = latest(cluster, without, read_committed=committed)
    return {at: ends[at] if offset is None else offset for at, offset in found.items()}


def _of_group(
    cluster: Cluster,
    group: str,
    partitions: Collection[TopicPartition],
    selected: Collection[TopicPartition],
    option: str,
    read_committed: bool,
) -> Offsets:
    """A partition that the group has not committed is read from its earliest, or to its latest."""
    found = committed_offsets(cluster, group, selected)
    if not found and selected:
        raise OptionError(
            option, f"consumer group {group} has committed nothing for these topics", "check the group's name"
        )
    mine = {at: found[at] for at in partitions if at in found}
    without = [at for at in partitions if at not in found]
    if option.startswith("starting"):
        return {**mine, **earliest(cluster, without)}
    return {**mine, **latest(cluster, without, read_committed=read_committed)}


def _check_names(
    option: str, given: Mapping[TopicPartition, int], partitions: Collection[TopicPartition]
) -> None:
    strange, missing = sorted(set(given) - set(partitions)), sorted(set(partitions) - set(given))
    if strange:
        raise OptionError(option, f"{strange[0]} does not exist", "name the partitions that there are")
    if missing:
        raise OptionError(
            option,
            f"{missing[0]} is not named",
            "name every partition; -2 stands for earliest, -1 for latest",
        )


def _listed(cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, read_committed: bool) -> Offsets:
    found = list_offsets(cluster, timestamps, read_committed=read_committed)
    return {at: 0 if offset is None else offset for at, offset in found.items()}


def _exists(view: KnownTopic) -> bool:
    if view.error in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        return True
    if view.error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
        return False
    raise RiverlogError(f"topic {view.name}: {view.error.name}")
