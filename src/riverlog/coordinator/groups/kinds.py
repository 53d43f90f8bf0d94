"""What the shard and the offsets ask of a group, whichever protocol it follows.

The classic and the consumer protocol each keep their groups in a `GroupKind` and answer these questions; a
group that only ever committed offsets (no members, no records of its own) is a `SimpleGroup`.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from riverlog.coordinator.formats.formats import GroupRecord
from riverlog.coordinator.runtime.effects import NOTHING, CoordinatorRecord, Effects, FollowUp, TimerKey
from riverlog.metadata.delta import ImageDelta
from riverlog.model.errors import ErrorCode
from riverlog.wire.schema import Message


class Claim(NamedTuple):
    """In whose name a client commits. Generation or member epoch -1 claims no membership."""

    member_id: str = ""
    instance_id: str | None = None
    generation_or_epoch: int = -1
    is_transactional: bool = False
    version: int = 0
    """Of the request: older clients know fewer errors."""


class Listed(NamedTuple):
    """A group as a list of all groups shows it."""

    type_name: str
    state: str
    protocol_type: str


class Group(Protocol):
    """One group of a kind, as it stands now."""

    @property
    def is_empty(self) -> bool:
        """No member in any state."""
        ...

    @property
    def listed(self) -> Listed: ...

    def refuse_commit(self, claim: Claim) -> ErrorCode | None:
        """Why this client may not commit offsets."""
        ...

    def refuse_commit_of(self, claim: Claim, topic: str, partition: int) -> ErrorCode | None:
        """Why it may not commit that of one partition, though it may commit."""
        ...

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode | None:
        """Why a client that claims this membership may not read the offsets."""
        ...

    def refuse_offset_delete(self) -> ErrorCode | None:
        """Why none of the offsets may be deleted."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads the topic, which protects its offsets."""
        ...

    def offset_ages_from(self, topic: str, committed_ms: int) -> int | None:
        """From when on the retention of an offset counts; None while it must be kept."""
        ...

    def decide_after_commit(self, claim: Claim, now_ms: int) -> Effects:
        """A commit is a sign of life."""
        ...

    def tombstones(self) -> tuple[CoordinatorRecord, ...]:
        """Records that remove the group, for one that is empty."""
        ...


class GroupKind(Protocol):
    """All groups of one protocol in a shard. Constructed with the shard, which it may ask and read."""

    records: frozenset[GroupRecord]
    """Which records are replayed here."""

    def get(self, group_id: str) -> Group | None: ...

    def group_ids(self) -> Iterable[str]: ...

    def replay(
        self, kind: GroupRecord, key: Message, value: Message | None, *, offset: int, timestamp_ms: int
    ) -> None: ...

    def on_loaded(self, now_ms: int) -> Effects: ...

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects | None:
        """None when the follow-up is none of this kind."""
        ...

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects | None:
        """None when it is not a timer of this kind."""
        ...

    def on_image(self, delta: ImageDelta, now_ms: int) -> Effects: ...


class SimpleGroup:
    """Offsets without members: what a consumer with assigned partitions, or an administrator, commits to."""

    is_empty = True
    listed = Listed("classic", "Empty", "")

    def refuse_commit(self, claim: Claim) -> ErrorCode | None:
        return None if claim.generation_or_epoch < 0 else ErrorCode.UNKNOWN_MEMBER_ID

    def refuse_commit_of(self, claim: Claim, topic: str, partition: int) -> ErrorCode | None:
        return None

    def refuse_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode | None:
        return None

    def refuse_offset_delete(self) -> ErrorCode | None:
        return None

    def is_subscribed(self, topic: str) -> bool:
        return False

    def offset_ages_from(self, topic: str, committed_ms: int) -> int | None:
        return committed_ms

    def decide_after_commit(self, claim: Claim, now_ms: int) -> Effects:
        return NOTHING

    def tombstones(self) -> tuple[CoordinatorRecord, ...]:
        return ()


SIMPLE_GROUP = SimpleGroup()
