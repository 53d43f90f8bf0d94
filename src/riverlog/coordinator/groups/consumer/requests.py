"""What clients ask of groups of the consumer protocol and what they are told, as values."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicId

JOIN: Final = 0
LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2
"""Only for static members: the same instance will come back."""


class Heartbeat(NamedTuple):
    """A field of None has not changed since the member's last heartbeat."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Mapping[TopicId, frozenset[int]] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Says everything, as a member does that joins or that does not know what has arrived."""
        has_subscription = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms is not None and has_subscription and self.owned is not None


class Beaten(NamedTuple):
    """The reply to a heartbeat."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Mapping[TopicId, tuple[int, ...]] | None = None
    """None: as the member was told before."""


class HeartbeatRefusal(NamedTuple):
    error: ErrorCode
    message: str


HeartbeatReply = Beaten | HeartbeatRefusal
