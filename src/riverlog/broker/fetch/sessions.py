"""Incremental fetch sessions (KIP-227): what a client follows, and what it was last told.

A session lets a client name its partitions once; later requests name only changes, and replies hold only
partitions with something new. The cache has a fixed number of slots. When it is full, a session unused for
two minutes gives way to any new one, and one older than two minutes to a new one that is larger; otherwise
the new client gets no session and goes on with full requests. Pure: time and randomness are passed in.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from uuid import UUID

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.by_hand.fetch_request import SingleFetch
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION = 0
_EPOCH_MAX = 2**31 - 1
_EVICTION_MS = 120_000


class SessionEpoch(IntEnum):
    FINAL = -1
    INITIAL = 0


class Wanted:
    """A partition that a client fetches, and in a session what it was last told of it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "told_high_watermark",
        "told_log_start",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: UUID | None, partition: FetchPartition) -> None:
        """Known by its topic's name or, with no name, by its topic's id."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = partition.partition
        self.told_high_watermark = -1
        self.told_log_start = -1
        self.fetch_offset = partition.fetch_offset
        self.max_bytes = partition.partition_max_bytes
        # Any negative epoch of a fetch stands for one that is not known; elsewhere only -1 does.
        epoch, fetched_epoch = partition.current_leader_epoch, partition.last_fetched_epoch
        self.current_leader_epoch = None if epoch < 0 else epoch
        self.last_fetched_epoch = None if fetched_epoch < 0 else LeaderEpoch(fetched_epoch)

    @property
    def key(self) -> tuple[str | UUID | None, int]:
        return self.topic_id if self.topic is None else self.topic, self.index

    def take_over(self, newer: "Wanted") -> None:
        """What the client asks for changes; what it has been told does not."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch

    def note(self, data: PartitionData) -> bool:
        """Remember what a reply says; whether it says anything that the client does not know."""
        if data.error_code:
            self.told_high_watermark = -1  # So that the partition is told again once the error has passed.
            return True
        is_news = (
            bool(data.records)
            or data.diverging_epoch.end_offset >= 0
            or data.preferred_read_replica >= 0
            or self.told_high_watermark != data.high_watermark
            or self.told_log_start != data.log_start_offset
        )
        self.told_high_watermark = data.high_watermark
        self.told_log_start = data.log_start_offset
        return is_news


def wanted_by(request: FetchRequest, *, by_id: bool) -> list[Wanted]:
    """The partitions that a request names."""
    return [
        Wanted(None if by_id else topic.topic, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]


class FetchSession:
    __slots__ = ("created_ms", "epoch", "id", "used_ms", "uses_topic_ids", "wanted")

    def __init__(
        self, session_id: int, wanted: Iterable[Wanted], *, uses_topic_ids: bool, now_ms: int
    ) -> None:
        assert session_id != NO_SESSION
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.wanted = {each.key: each for each in wanted}

    def update(self, request: FetchRequest) -> None:
        for wanted in wanted_by(request, by_id=self.uses_topic_ids):
            known = self.wanted.setdefault(wanted.key, wanted)
            if known is not wanted:
                known.take_over(wanted)
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self.wanted.pop((topic, index), None)

    def note_reply(self, wanted: Wanted, data: PartitionData) -> bool:
        """Whether the reply must carry this partition; one that gets records goes to the end of the line."""
        is_news = wanted.note(data)
        if data.records and wanted.key in self.wanted:
            self.wanted[wanted.key] = self.wanted.pop(wanted.key)
        return is_news


class FetchSessions:
    def __init__(self, slots: int, *, now_ms: Callable[[], int], random_id: Callable[[], int]) -> None:
        self._slots = slots
        self._now_ms = now_ms
        self._random_id = random_id
        self._sessions: dict[int, FetchSession] = {}
        """In the order of their last use."""

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(
        self, request: FetchRequest, version: int, *, with_changes: bool = True
    ) -> FetchSession | ErrorCode:
        """The session of an incremental request, with the request's changes applied, or to be applied."""
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != (version >= TOPIC_ID_VERSION_MIN):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if with_changes:
            session.update(request)
        self._use(session)
        return session

    def with_only(self, request: SingleFetch, *, by_id: bool) -> FetchSession | None:
        """The session of an incremental request, if all that it follows is the one partition asked for."""
        session = self._sessions.get(request.session_id)
        if (
            session is None
            or session.epoch != request.session_epoch
            or session.uses_topic_ids != by_id
            or len(session.wanted) != 1
            or (request.topic_id if by_id else request.topic, request.partition) not in session.wanted
        ):
            return None
        return session

    def advance_only(
        self, session: FetchSession, request: SingleFetch, high_watermark: int, log_start_offset: int
    ) -> None:
        """Apply such a request, which is answered with records and these offsets."""
        (wanted,) = session.wanted.values()
        wanted.fetch_offset = request.fetch_offset
        wanted.max_bytes = request.partition_max_bytes
        epoch, fetched_epoch = request.leader_epoch, request.last_fetched_epoch
        wanted.current_leader_epoch = None if epoch < 0 else epoch
        wanted.last_fetched_epoch = None if fetched_epoch < 0 else LeaderEpoch(fetched_epoch)
        wanted.told_high_watermark = high_watermark
        wanted.told_log_start = log_start_offset
        self._use(session)

    def _use(self, session: FetchSession) -> None:
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        session.used_ms = self._now_ms()
        del self._sessions[session.id]
        if session.wanted:
            self._sessions[session.id] = session

    def end_if_empty(self, session: FetchSession) -> None:
        """After changes that were put off by `resume`."""
        if not session.wanted and self._sessions.get(session.id) is session:
            self.close(session.id)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def open(self, wanted: Iterable[Wanted], *, uses_topic_ids: bool, more: int = 0) -> FetchSession | None:
        """A new session, or None when there is no slot for it. So many `more` partitions are put in later."""
        wanted = tuple(wanted)
        now_ms = self._now_ms()
        if len(self._sessions) >= self._slots and not self._evict(len(wanted) + more, now_ms):
            return None
        session_id = self._random_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random_id()
        session = FetchSession(session_id, wanted, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def _evict(self, new_size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        stalest = next(iter(self._sessions.values()))
        if now_ms - stalest.used_ms > _EVICTION_MS:
            self.close(stalest.id)
            return True
        old = [each for each in self._sessions.values() if now_ms - each.created_ms > _EVICTION_MS]
        smallest = min(old, key=lambda each: len(each.wanted), default=None)
        if smallest is None or len(smallest.wanted) > new_size:
            return False
        self.close(smallest.id)
        return True
