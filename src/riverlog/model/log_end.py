"""How far the log of a replica goes."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from riverlog.model.ids import LeaderEpoch, TopicId

NEVER_LED: Final = LeaderEpoch(-1)


class LogEnd(NamedTuple):
    """Of two of one partition the greater has all that is committed and is in the other: a leader has all
    that was committed before, and its followers have a part of what it has."""

    epoch: LeaderEpoch
    """Of its last records; `NEVER_LED` where there are none."""
    offset: int


LogEnds = Mapping[tuple[TopicId, int], LogEnd]
"""By topic id and number."""

NO_LOG_ENDS: Final[LogEnds] = {}
