"""What one leader is asked: the incremental fetch session of a follower (KIP-227). Pure.

A request names only the partitions whose position has moved and those that are not asked for any more, so it
costs by what has changed and not by how many partitions there are. One request is on its way at a time. A
partition that failed is taken out of the session until its pause is over, as the leader would answer with the
same failure again and again. Not here: what an answer does to a log.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final
from uuid import UUID

from riverlog.model.config.replica_fetch_config import ReplicaFetchConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, NodeId, TopicId
from riverlog.replication.following.followed import Followed, FollowedKey, Position, Status
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

_BUSY_WAIT_MS: Final = 5
_NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
_NO_EPOCH: Final = -1
_SESSION_GONE: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class LeaderSession:
    def __init__(self, node_id: NodeId, config: ReplicaFetchConfig) -> None:
        self._node_id = node_id
        self._config = config
        self._followed: dict[FollowedKey, Followed] = {}
        self._changed: dict[FollowedKey, Followed] = {}
        """Ready partitions of which the leader does not know the position."""
        self._forgotten: dict[FollowedKey, None] = {}
        self._unplaced: dict[FollowedKey, Followed] = {}
        self._paused: list[tuple[float, int, Followed]] = []
        self._pause_count = 0
        self._ready_count = 0
        self._session_id = _NO_SESSION
        self._session_epoch = _INITIAL_EPOCH
        self._broker_epoch: BrokerEpoch | None = None

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[Followed]:
        return iter(self._followed.values())

    @property
    def has_unplaced(self) -> bool:
        return bool(self._unplaced)

    def find(self, key: FollowedKey) -> Followed | None:
        return self._followed.get(key)

    def follows(self, followed: Followed) -> bool:
        """Whether it is this very one still, and not one of another epoch in its place."""
        return self._followed.get(followed.key) is followed

    # Partitions.

    def follow(self, followed: Followed) -> None:
        """From now on, in place of one of another epoch."""
        before = self._followed.pop(followed.key, None)
        if before is not None:
            self._leave(before)
        self._followed[followed.key] = followed
        self._unplaced[followed.key] = followed

    def unfollow(self, key: FollowedKey) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._leave(followed)

    def take_unplaced(self, count_max: int) -> list[Followed]:
        """Some of those whose position has to be looked up; they are held until `place` or `pause`."""
        taken: list[Followed] = []
        while self._unplaced and len(taken) < count_max:
            key = next(iter(self._unplaced))
            followed = self._unplaced.pop(key)
            followed.status = Status.HELD
            taken.append(followed)
        if not self._unplaced:
            self._unplaced.clear()  # A table that was emptied one by one keeps its size.
        return taken

    def place(self, followed: Followed, position: Position) -> None:
        """It is asked for from here on."""
        if not self.follows(followed):
            return
        is_news = followed.position != position or not followed.is_in_session
        self._set_status(followed, Status.READY)
        followed.position = position
        if is_news:
            self._changed[followed.key] = followed

    def hold(self, followed: Followed) -> None:
        """It is not asked for until `place`, `pause` or `look_up`."""
        if self.follows(followed):
            self._set_status(followed, Status.HELD)

    def pause(self, followed: Followed, until_s: float) -> None:
        """Its position is looked up again then."""
        if self.follows(followed):
            self._set_status(followed, Status.PAUSED)
            followed.until_s = until_s
            self._pause_count += 1
            heappush(self._paused, (until_s, self._pause_count, followed))

    def look_up(self, followed: Followed) -> None:
        if self.follows(followed):
            self._set_status(followed, Status.UNPLACED)
            self._unplaced[followed.key] = followed

    def end_pauses(self, now_s: float) -> None:
        paused = self._paused
        while paused and paused[0][0] <= now_s:
            until_s, _, followed = heappop(paused)
            if self._is_paused(followed, until_s):
                self.look_up(followed)

    def next_pause_end_s(self) -> float | None:
        paused = self._paused
        while paused and not self._is_paused(paused[0][2], paused[0][0]):
            heappop(paused)
        return paused[0][0] if paused else None

    # Requests and answers.

    def request(
        self, now_s: float, broker_epoch: BrokerEpoch, *, is_busy: bool = False
    ) -> FetchRequest | None:
        """What to ask next; None while there is nothing to ask for. `is_busy`: others will be ready soon, and
        cannot be asked for before this has its answer."""
        if not self._ready_count:
            self.forget_session()
            return None
        if broker_epoch != self._broker_epoch:
            self.forget_session()  # The leader knows it by the registration of before.
            self._broker_epoch = broker_epoch
        config = self._config
        is_full = self._session_epoch == _INITIAL_EPOCH
        if is_full:
            asked: Iterable[Followed] = [each for each in self if each.status is Status.READY]
        else:
            asked = self._changed.values()
        request = FetchRequest(
            max_wait_ms=min(self._wait_ms(now_s), _BUSY_WAIT_MS) if is_busy else self._wait_ms(now_s),
            min_bytes=config.min_bytes,
            max_bytes=config.response_bytes_max,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=_by_topic(asked, config.partition_bytes_max),
            forgotten_topics_data=[] if is_full else _forgotten_by_topic(self._forgotten),
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch),
        )
        for each in asked:
            each.is_in_session = True
        self._changed.clear()
        self._forgotten.clear()
        return request

    def answers(self, response: FetchResponse) -> Iterator[tuple[Followed, PartitionData]] | ErrorCode:
        """What the leader says of partitions that were asked for and still are; or why it says nothing."""
        if response.error_code:
            self.forget_session()
            error = ErrorCode.of(response.error_code)
            return iter(()) if error in _SESSION_GONE else error
        if response.session_id == _NO_SESSION:
            self._session_id, self._session_epoch = _NO_SESSION, _INITIAL_EPOCH
        elif self._session_epoch == _INITIAL_EPOCH or response.session_id != self._session_id:
            self._session_id, self._session_epoch = response.session_id, 1
        else:
            self._session_epoch = 1 if self._session_epoch == _EPOCH_MAX else self._session_epoch + 1
        return self._asked_for(response)

    def forget_session(self) -> None:
        """The next request names everything, and ends at the leader what it may remember."""
        self._session_epoch = _INITIAL_EPOCH
        self._forgotten.clear()
        for each in self:
            each.is_in_session = False

    def _asked_for(self, response: FetchResponse) -> Iterator[tuple[Followed, PartitionData]]:
        for topic in response.responses:
            if topic.topic_id is None:
                continue
            topic_id = TopicId(topic.topic_id)
            for data in topic.partitions:
                followed = self._followed.get((topic_id, data.partition_index))
                if followed is not None and followed.is_in_session and followed.status is Status.READY:
                    yield followed, data

    def _wait_ms(self, now_s: float) -> int:
        """A pause that ends meanwhile is not waited past."""
        wait_ms, due_s = self._config.wait_max_ms, self.next_pause_end_s()
        if due_s is None:
            return wait_ms
        return min(wait_ms, max(round((due_s - now_s) * 1000), 1))

    def _is_paused(self, followed: Followed, until_s: float) -> bool:
        return followed.status is Status.PAUSED and followed.until_s == until_s and self.follows(followed)

    def _set_status(self, followed: Followed, status: Status) -> None:
        key = followed.key
        self._ready_count += (status is Status.READY) - (followed.status is Status.READY)
        followed.status = status
        self._unplaced.pop(key, None)
        if status is Status.READY:
            self._forgotten.pop(key, None)
        else:
            self._changed.pop(key, None)
            self._forget(followed)

    def _leave(self, followed: Followed) -> None:
        self._set_status(followed, Status.HELD)

    def _forget(self, followed: Followed) -> None:
        if followed.is_in_session:
            followed.is_in_session = False
            self._forgotten[followed.key] = None


def _by_topic(asked: Iterable[Followed], bytes_max: int) -> list[FetchTopic]:
    topics: dict[UUID, FetchTopic] = {}
    for each in asked:
        topic = topics.get(each.topic_id)
        if topic is None:
            topic = topics[each.topic_id] = FetchTopic(topic_id=each.topic_id)
        position = each.position
        assert position is not None
        topic.partitions.append(
            FetchPartition(
                partition=each.index,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=_NO_EPOCH if position.last_epoch is None else position.last_epoch,
                log_start_offset=position.log_start,
                partition_max_bytes=bytes_max,
            )
        )
    return list(topics.values())


def _forgotten_by_topic(keys: Iterable[FollowedKey]) -> list[ForgottenTopic]:
    topics: dict[UUID, ForgottenTopic] = {}
    for topic_id, index in keys:
        if topic_id not in topics:
            topics[topic_id] = ForgottenTopic(topic_id=topic_id)
        topics[topic_id].partitions.append(index)
    return list(topics.values())
