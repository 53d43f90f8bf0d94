"""What the followers of this leader copy, and what of it there is to tell them.

A follower has one session. Each of its partitions watches its log for as long as the session lives: a change
puts it on the session's list of those that are due, and a fetch looks at that list alone. So a fetch costs by
what has changed, however many partitions the follower copies. Sessions of followers take no slot of the cache
for consumers, which cannot push them out. Not here: what is read, and when a fetch is answered.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol
from uuid import UUID

from riverlog.broker.fetch.sessions import NO_SESSION
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.replication.leading.tenure import Asker
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.replication.watchers import Watched
from riverlog.wire.messages.fetch import FetchPartition

_EPOCH_MAX: Final = 2**31 - 1
_UNTOLD: Final = -1
_HIGH_WATERMARK_UNKNOWN: Final = 2**63 - 1
"""The wire's own value for a follower that does not say how far it knows the high watermark."""


Refusal = ErrorCode | tuple[int, int]
"""An error; or, where the records have parted, the epoch up to which they may agree, and its end here."""


class Copied:
    """One partition that a follower copies: where it stands, and what it knows."""

    __slots__ = (
        "_is_caught_up",
        "fetch_offset",
        "index",
        "is_accepted",
        "is_due",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "session",
        "told_high_watermark",
        "told_log_start",
        "told_refusal",
        "topic_id",
    )

    def __init__(self, session: "ReplicaSession", topic_id: UUID | None, index: int) -> None:
        self.session = session
        self.topic_id = topic_id
        self.index = index
        self.partition: Watched = None
        """None while it is not known here."""
        self.told_high_watermark = _UNTOLD
        self.told_log_start = _UNTOLD
        self.told_refusal: Refusal | None = None
        """Not told again while the follower stands where it stands."""
        self.fetch_offset = 0
        self.log_start_offset = 0
        self.last_fetched_epoch: LeaderEpoch | None = None
        self.leader_epoch: LeaderEpoch | None = None
        self.max_bytes = 0
        self.is_due = False
        self.is_accepted = False
        """Whether the leader counts with where the follower stands; otherwise it is asked again."""
        self._is_caught_up = False

    def stand(self, wanted: FetchPartition) -> None:
        """The follower says where it stands."""
        self.fetch_offset = wanted.fetch_offset
        self.log_start_offset = wanted.log_start_offset
        self.max_bytes = wanted.partition_max_bytes
        epoch, fetched_epoch = wanted.current_leader_epoch, wanted.last_fetched_epoch
        self.leader_epoch = None if epoch < 0 else LeaderEpoch(epoch)
        self.last_fetched_epoch = None if fetched_epoch < 0 else LeaderEpoch(fetched_epoch)
        if wanted.high_watermark != _HIGH_WATERMARK_UNKNOWN:
            self.told_high_watermark = wanted.high_watermark
        self.told_refusal = None
        self.is_accepted = self._is_caught_up = False

    def accept(self, log_end_offset: int) -> None:
        self.is_accepted = True
        self._is_caught_up = self.fetch_offset >= log_end_offset

    def watch(self, partition: Watched) -> None:
        if self.partition is not None:
            self.partition.remove_watcher(self)
        self.partition = partition
        if partition is not None:
            partition.add_watcher(self)

    @property
    def has_only_news(self) -> bool:
        """Whether there can be nothing to tell but another high watermark."""
        partition = self.partition
        if not isinstance(partition, Partition) or not self.is_accepted:
            return False
        if partition.leader_epoch != self.leader_epoch:
            return False
        state = partition.log.state
        return (
            state.log_end_offset == self.fetch_offset
            and state.log_start_offset == self.told_log_start
            and isinstance(partition.role, Leader)
        )

    def on_partition_changed(self, partition: Partition) -> None:
        if self._is_caught_up and partition.log.state.log_end_offset > self.fetch_offset:
            # Up to now it had everything, for as long as it kept asking.
            self._is_caught_up = False
            partition.note_caught_up(self.session.node_id, self.session.asked_s)
        self.be_due()

    def may_rest(self, partition: Partition) -> bool:
        return (
            self.is_accepted
            and not self.is_due
            and self.leader_epoch == partition.leader_epoch
            and self.fetch_offset == partition.log.log_end_offset
            and self.session.node_id in partition.in_sync.isr
        )

    def move_to(self, watched: Watched) -> None:
        self.watch(watched)
        if watched is None:
            self.is_accepted = False
            self.be_due()

    def asked(self, partition: Partition) -> Asker | None:
        is_of_now = self.is_accepted and self.leader_epoch == partition.leader_epoch
        session = self.session
        return Asker(session.node_id, session.asked_s, session.question_before) if is_of_now else None

    def hurry(self) -> None:
        if self.session.waiting is not None:
            self.session.waiting.on_hurried()

    def be_due(self) -> None:
        """There may be something to tell."""
        session = self.session
        if not self.is_due:
            self.is_due = True
            session.due.append(self)
        if session.waiting is not None:
            session.waiting.on_due(self)


class WaitingFollower(Protocol):
    def on_due(self, copied: Copied) -> None: ...

    def on_hurried(self) -> None:
        """It is to be answered now, whatever there is to tell."""
        ...

    def on_session_closed(self) -> None:
        """The wait is to end now."""
        ...


class ReplicaSession:
    __slots__ = (
        "asked_s",
        "broker_epoch",
        "copied",
        "due",
        "epoch",
        "id",
        "node_id",
        "question",
        "question_before",
        "sent",
        "waiting",
    )

    def __init__(self, session_id: int, node_id: NodeId, broker_epoch: BrokerEpoch) -> None:
        """Under `NO_SESSION`, it is for one fetch."""
        self.id = session_id
        self.epoch = 1
        self.node_id = node_id
        self.broker_epoch = broker_epoch
        """Of the follower's registration."""
        self.asked_s = float("-inf")
        """When it asked last."""
        self.question = self.question_before = 0
        """The numbers of its last fetch, and of the one before, which had been answered then."""
        self.copied: dict[tuple[UUID | None, int], Copied] = {}
        self.due: list[Copied] = []
        """Those of which there may be something to tell, the ones that have waited longest first."""
        self.sent: list[Copied] = []
        """Those that got records with the last reply. What of it was stored, the next fetch tells."""
        self.waiting: WaitingFollower | None = None

    def copy(self, topic_id: UUID | None, wanted: FetchPartition) -> Copied:
        """The partition, where the follower says it stands."""
        key = topic_id, wanted.partition
        copied = self.copied.get(key)
        if copied is None:
            copied = self.copied[key] = Copied(self, *key)
        copied.stand(wanted)
        copied.be_due()
        return copied

    def forget(self, topic_id: UUID | None, indexes: Iterable[int]) -> None:
        for index in indexes:
            copied = self.copied.pop((topic_id, index), None)
            if copied is not None:
                copied.watch(None)
                copied.is_due = False  # It is passed over on the list.

    def take_due(self) -> list[Copied]:
        """Take over the list; each that is left there by its taker stays due."""
        due, self.due = self.due, []
        return [copied for copied in due if copied.is_due]

    def begin_request(self, now_s: float, question: int) -> None:
        """What was sent with the last reply is looked at again: it may have been of no use."""
        self.asked_s = now_s
        self.question_before, self.question = self.question, question
        sent, self.sent = self.sent, []
        for copied in sent:
            copied.be_due()

    def close(self) -> None:
        for copied in self.copied.values():
            copied.watch(None)
        self.copied.clear()
        self.due.clear()
        self.sent.clear()
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.on_session_closed()


class ReplicaSessions:
    def __init__(self, random_id: Callable[[], int]) -> None:
        self._random_id = random_id
        self._by_follower: dict[NodeId, ReplicaSession] = {}

    def __len__(self) -> int:
        return len(self._by_follower)

    def open(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> ReplicaSession:
        """A new session, in the place of the one that the follower had."""
        self.close(node_id)
        session_id = self._random_id()
        while session_id == NO_SESSION:
            session_id = self._random_id()
        session = self._by_follower[node_id] = ReplicaSession(session_id, node_id, broker_epoch)
        return session

    def resume(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, session_id: int, epoch: int
    ) -> ReplicaSession | ErrorCode:
        session = self._by_follower.get(node_id)
        if session is None or session.id != session_id or session.broker_epoch != broker_epoch:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch or session.waiting is not None:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        return session

    def close(self, node_id: NodeId) -> None:
        session = self._by_follower.pop(node_id, None)
        if session is not None:
            session.close()

    def retain(self, is_present: Callable[[NodeId, BrokerEpoch], bool]) -> None:
        """Close the sessions of brokers that are gone, or registered anew."""
        for session in list(self._by_follower.values()):
            if not is_present(session.node_id, session.broker_epoch):
                self.close(session.node_id)
