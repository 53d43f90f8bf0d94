"""What clients ask of committed offsets and what they are told, as values; the wire is for the handlers."""

from typing import NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, TopicId, TopicPartition


class NewOffset(NamedTuple):
    """An offset to commit."""

    at: TopicPartition
    offset: int
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""
    topic_id: TopicId | None = None
    retention_ms: int | None = None


Verdicts = tuple[ErrorCode, ...]
"""One for each partition of a request, in the same order."""


class FoundOffset(NamedTuple):
    """What is committed for a partition; `offset` None: nothing, or nothing that may be told."""

    partition: int
    offset: int | None = None
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


FoundOffsets = list[tuple[str, list[FoundOffset]]]
"""By topic."""
