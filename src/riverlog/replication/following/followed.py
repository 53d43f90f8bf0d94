"""One partition that is copied from a leader, as its fetcher knows it. Small: there may be many, and idle."""

from enum import Enum
from typing import Final, NamedTuple

from riverlog.model.ids import LeaderEpoch, TopicId

FollowedKey = tuple[TopicId, int]
"""Topic id and number: a topic that was made anew under its name is another one."""


class Position(NamedTuple):
    """What the own log holds."""

    offset: int
    """Everything below is stored, and on disk where that is what an acknowledgement means."""
    last_epoch: LeaderEpoch | None
    """Of the last batch; None for a log that never had one."""
    log_start: int


AT_BEGINNING: Final = Position(0, None, 0)
"""Of a log that was never written to."""


class Status(Enum):
    UNPLACED = "its position has to be looked up"
    READY = "it is asked for"
    HELD = "something must be finished first, whose end is told"
    PAUSED = "it is tried again at a certain time"


class Followed:
    __slots__ = (
        "agreed_epoch",
        "failures",
        "is_in_session",
        "key",
        "leader_epoch",
        "leader_watermark",
        "position",
        "status",
        "topic",
        "unclean_epoch",
        "until_s",
    )

    def __init__(
        self,
        topic: str,
        topic_id: TopicId,
        index: int,
        leader_epoch: LeaderEpoch,
        unclean_epoch: LeaderEpoch | None = None,
    ) -> None:
        self.topic = topic
        self.key: FollowedKey = (topic_id, index)
        """Kept, as whoever looks it up keeps it as well: one for all."""
        self.leader_epoch = leader_epoch
        """All that is asked is asked under this epoch; another epoch makes another object."""
        self.unclean_epoch = unclean_epoch
        """Of the last leader that may not have had all that was committed."""
        self.agreed_epoch: LeaderEpoch | None = None
        """Of the last leader whose log this one was found to be a part of, since the start."""
        self.status = Status.UNPLACED
        self.position: Position | None = None
        self.is_in_session = False
        """Whether the leader knows `position`, or an earlier one."""
        self.until_s = 0.0
        self.failures = 0
        self.leader_watermark = 0

    @property
    def topic_id(self) -> TopicId:
        return self.key[0]

    @property
    def index(self) -> int:
        return self.key[1]

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"
