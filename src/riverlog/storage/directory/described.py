"""What a data directory holds, as DescribeLogDirs tells it. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from riverlog.model.ids import TopicPartition


class FutureReplica(NamedTuple):
    size_bytes: int
    offset_lag: int


@dataclass(frozen=True, slots=True)
class DescribedDirectory:
    path: str
    sizes_bytes: Mapping[str, Mapping[int, int]]
    """Of the partitions that were asked for and are here, by topic."""
    total_bytes: int
    usable_bytes: int
    is_offline: bool = False
    futures: Mapping[TopicPartition, FutureReplica] = field(default_factory=dict)
    """Of the partitions that were asked for, those that are on their way in."""
