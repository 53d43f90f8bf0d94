"""Places in topics as options name them, and the form in which Spark keeps offsets: JSON by topic, partition.

Pure: a place says what is meant; `positions` asks the cluster where that is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from riverlog.model.ids import TopicPartition
from riverlog.spark.connection import OptionError

Offsets = dict[TopicPartition, int]
OffsetJson = dict[str, dict[str, int]]

EARLIEST_NUMBER: Final = -2
LATEST_NUMBER: Final = -1


@dataclass(frozen=True, slots=True)
class Earliest:
    pass


@dataclass(frozen=True, slots=True)
class Latest:
    pass


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """One for each partition; -2 stands for earliest, -1 for latest."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    timestamps_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtGroup:
    """Where a consumer group stands."""

    group: str


Place = Earliest | Latest | AtOffsets | AtTimestamp | AtTimestamps | AtGroup


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetJson:
    written: OffsetJson = {}
    for at in sorted(offsets):
        written.setdefault(at.topic, {})[str(at.partition)] = offsets[at]
    return written


def from_json(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in written.items()
        for partition, offset in partitions.items()
    }


def numbers_by_partition(option: str, text: str) -> dict[TopicPartition, int]:
    """JSON as in {"orders": {"0": 23, "1": -2}}."""
    remedy = 'write JSON as in {"orders": {"0": 23, "1": -2}}'
    parsed = _json(option, text, remedy)
    found: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if not isinstance(partitions, dict):
            raise OptionError(option, f"topic {topic} has no partitions", remedy)
        for partition, number in partitions.items():
            is_number = isinstance(number, int) and not isinstance(number, bool)
            if not partition.isdigit() or not is_number:
                raise OptionError(
                    option, f"{partition!r}: {number!r} of topic {topic} is no position", remedy
                )
            found[TopicPartition(topic, int(partition))] = number
    return found


def partitions_of(option: str, text: str) -> tuple[TopicPartition, ...]:
    """JSON as in {"orders": [0, 1]}."""
    remedy = 'write JSON as in {"orders": [0, 1]}'
    found: set[TopicPartition] = set()
    for topic, partitions in _json(option, text, remedy).items():
        if not isinstance(partitions, list) or not all(
            isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in partitions
        ):
            raise OptionError(option, f"topic {topic} has no list of partitions", remedy)
        found.update(TopicPartition(topic, each) for each in partitions)
    if not found:
        raise OptionError(option, "names no partition", remedy)
    return tuple(sorted(found))


def _json(option: str, text: str, remedy: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise OptionError(option, f"{text!r} is not a JSON object", remedy)
    return parsed
