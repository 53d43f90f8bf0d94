"""The driver of one leader: a connection of its own, one fetch on its way at a time, no task for any.

The callbacks of the connection drive the session: an answer is worked off where it comes in, and the next
request goes out at once. When the connection ends, or cannot be made, the next one is made after a pause that
grows and has some chance in it. Not here: which partitions this leader has (`following`).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from riverlog.client.core.events import Unanswered
from riverlog.client.core.retrying import Backoff
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.earliest_timer import EarliestTimer
from riverlog.client.peer_connection import PeerConnection
from riverlog.model.config.replica_fetch_config import ReplicaFetchConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.model.metrics import Counter
from riverlog.replication.following.copies import Copies, Outcome
from riverlog.replication.following.followed import Followed, FollowedKey, Position
from riverlog.replication.following.ranges import EARLIEST, LATEST, RangeQuestion
from riverlog.replication.following.session import LeaderSession
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.messages.fetch import FetchResponse, PartitionData
from riverlog.wire.messages.list_offsets import ListOffsetsResponse

_logger = logging.getLogger(__name__)
_FETCH_VERSION: Final = 18
_LOOKED_UP_PER_TURN: Final = 64
_RETRY_FIRST_S: Final = 0.02
_MISSING_TOPIC: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_EXPECTED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        *_MISSING_TOPIC,
    }
)
"""What a change of leaders or topics brings with it, until the images of both brokers have it."""


class Connect(Protocol):
    def __call__(self, leader: NodeId, on_closed: Callable[[str], None]) -> PeerConnection | None:
        """One that is to be opened; None while nobody knows where the broker is."""
        ...


class LeaderFetcher:
    def __init__(
        self,
        leader: NodeId,
        node_id: NodeId,
        copies: Copies,
        config: ReplicaFetchConfig,
        *,
        connect: Connect,
        broker_epoch: Callable[[], BrokerEpoch | None],
        write_checkpoints: Callable[[Callable[[bool], None]], None],
        chance: Callable[[], float],
        errors: Counter,
    ) -> None:
        """`write_checkpoints` tells when it is done, and whether it succeeded."""
        self.leader = leader
        self._node_id = node_id
        self._session = LeaderSession(node_id, config)
        self._copies = copies
        self._config = config
        self._connect_to = connect
        self._broker_epoch = broker_epoch
        self._write_checkpoints = write_checkpoints
        self._chance = chance
        self._errors = errors
        self._backoff = Backoff(_RETRY_FIRST_S, max(config.backoff_ms / 1000, _RETRY_FIRST_S))
        self._loop = asyncio.get_running_loop()
        self._connection: PeerConnection | None = None
        self._is_open = False
        self._is_asking = False
        self._is_closed = False
        self._failures = 0
        self._not_before_s = 0.0
        self._timer = EarliestTimer(self._loop)
        self._turn: asyncio.Handle | None = None
        self._ranges: dict[FollowedKey, Followed] = {}
        """Those whose leader's first and last offset must be asked for."""
        self._busy = 0
        """How many are held only until something is on disk."""

    @property
    def lag_records(self) -> int:
        """How many committed records its partitions lack, as far as the leader has told."""
        return sum(
            max(each.leader_watermark - each.position.offset, 0)
            for each in self._session
            if each.position is not None
        )

    @property
    def is_idle(self) -> bool:
        return not len(self._session)

    def find(self, key: FollowedKey) -> Followed | None:
        return self._session.find(key)

    def follow(self, followed: Followed) -> None:
        self._session.follow(followed)
        self.wake()

    def unfollow(self, key: FollowedKey) -> None:
        self._session.unfollow(key)
        self._ranges.pop(key, None)
        self.wake()

    def wake(self) -> None:
        """Something has changed that may let it go on: do so in the next turn of the loop."""
        if self._turn is None and not self._is_closed:
            self._turn = self._loop.call_soon(self._go_on)

    def retry_now(self) -> None:
        """The leader is known at another address, or again."""
        self._not_before_s = 0.0
        self.wake()

    def close(self) -> None:
        """What comes late is dropped. Closing twice is no error."""
        self._is_closed = True
        self._timer.cancel()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._leave()

    def _go_on(self) -> None:
        self._turn = None
        if self._is_closed:
            return
        now_s = self._loop.time()
        self._session.end_pauses(now_s)
        self._look_up_some(now_s)
        if not len(self._session):
            self._leave()
            return
        if self._connection is None:
            if now_s >= self._not_before_s:
                self._connect()
            else:
                self._timer.ring_by(self._not_before_s, self.wake)
        elif self._is_open and not self._is_asking:
            self._ask(now_s)

    # Positions.

    def _look_up_some(self, now_s: float) -> None:
        """Opening a log takes time, and others have their turn between some and the next."""
        for followed in self._session.take_unplaced(_LOOKED_UP_PER_TURN):
            self._place(followed, now_s)
        if self._session.has_unplaced:
            self.wake()

    def _place(self, followed: Followed, now_s: float) -> None:
        position = self._copies.position_of(followed)
        if isinstance(position, Position):
            self._session.place(followed, position)
        elif isinstance(position, Outcome):
            self._follow_up(followed, position, now_s)
        else:
            self._session.hold(followed)
            self._busy += 1
            position.add_done_callback(partial(self._on_synced, followed))

    def _on_synced(self, followed: Followed, synced: "asyncio.Future[None]") -> None:
        self._busy -= 1
        error = None if synced.cancelled() else synced.exception()
        if self._is_closed or not self._session.follows(followed):
            return
        if error is not None:
            self._pause(followed, self._loop.time())
        else:
            self._session.look_up(followed)
        self.wake()

    def _follow_up(self, followed: Followed, outcome: Outcome, now_s: float) -> None:
        match outcome:
            case Outcome.DONE:
                followed.failures = 0
                self._place(followed, now_s)
            case Outcome.TRUNCATED:
                self._session.hold(followed)
                self._busy += 1
                self._write_checkpoints(partial(self._on_checkpoint, followed))
            case Outcome.FAILED:
                self._pause(followed, now_s)
            case Outcome.OUT:
                self._session.hold(followed)

    def _on_checkpoint(self, followed: Followed, is_written: bool) -> None:
        self._busy -= 1
        if self._is_closed or not self._session.follows(followed):
            return
        if is_written:
            self._session.look_up(followed)
        else:
            self._pause(followed, self._loop.time())
        self.wake()

    def _pause(self, followed: Followed, now_s: float, pause_s: float | None = None) -> None:
        if pause_s is None:
            pause_s = self._backoff.pause_s(followed.failures, self._chance())
        followed.failures += 1
        self._session.pause(followed, now_s + pause_s)

    # The connection.

    def _connect(self) -> None:
        connection = self._connect_to(self.leader, lambda reason: self._on_closed(connection, reason))
        if connection is None:
            self._fail("it is not registered")
            return
        self._connection, self._is_open, self._is_asking = connection, False, False
        connection.open().add_done_callback(partial(self._on_opened, connection))

    def _on_opened(self, connection: PeerConnection, opened: "asyncio.Future[Any]") -> None:
        error = None if opened.cancelled() else opened.exception()
        if self._connection is not connection:
            return
        if error is not None or connection.is_closed:
            self._leave()
            self._fail(f"it cannot be reached at {connection.address}: {error or 'hung up'}")
            return
        self._is_open = True
        self.wake()

    def _on_closed(self, connection: PeerConnection | None, reason: str) -> None:
        if connection is not None and self._connection is connection:
            self._leave()
            self._fail(reason)

    def _fail(self, reason: str) -> None:
        """The leader as a whole could not be asked."""
        if self._is_closed:
            return
        self._errors.add()
        level = logging.WARNING if self._failures == 0 else logging.DEBUG
        _logger.log(level, "Broker %d, a leader of partitions here: %s", self.leader, reason)
        self._not_before_s = self._loop.time() + self._backoff.pause_s(self._failures, self._chance())
        self._failures += 1
        self._timer.ring_by(self._not_before_s, self.wake)

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        self._is_open = self._is_asking = False
        self._session.forget_session()
        if connection is not None:
            connection.close()

    # Requests.

    def _ask(self, now_s: float) -> None:
        connection, epoch = self._connection, self._broker_epoch()
        assert connection is not None
        if epoch is None:
            return  # Not registered; the image that shows it again wakes us.
        try:
            if self._ranges:
                self._ask_ranges(connection)
            request = self._session.request(now_s, epoch, is_busy=self._busy > 0)
            if request is None:
                due_s = self._session.next_pause_end_s()
                if due_s is not None:
                    self._timer.ring_by(due_s, self.wake)
                return
            self._is_asking = True
            connection.request(
                ApiKey.FETCH, request, partial(self._on_fetched, connection), version_max=_FETCH_VERSION
            )
        except UnsupportedApiError as error:
            self._leave()
            self._fail(str(error))

    def _on_fetched(self, connection: PeerConnection, outcome: Any) -> None:
        if self._connection is not connection:
            return
        self._is_asking = False
        if isinstance(outcome, Unanswered):
            return  # The connection ends, and says why.
        response: FetchResponse | None = _message_of(outcome)
        if response is None:
            self._leave()
            self._fail("it sent what cannot be read")
            return
        answers = self._session.answers(response)
        if isinstance(answers, ErrorCode):
            self._leave()
            self._fail(f"it answered {answers.name}")
            return
        self._failures = 0
        now_s = self._loop.time()
        for followed, data in answers:
            self._follow_up_on(followed, data, now_s)
        if self._turn is None:
            self._go_on()

    def _follow_up_on(self, followed: Followed, data: PartitionData, now_s: float) -> None:
        if data.error_code:
            self._on_error(followed, ErrorCode.of(data.error_code), now_s)
        elif data.diverging_epoch.end_offset >= 0:
            diverging = data.diverging_epoch
            outcome = self._copies.truncate(followed, LeaderEpoch(diverging.epoch), diverging.end_offset)
            self._follow_up(followed, outcome, now_s)
        else:
            outcome = self._copies.store(followed, data, str(self.leader))
            self._follow_up(followed, outcome, now_s)

    def _on_error(self, followed: Followed, error: ErrorCode, now_s: float) -> None:
        """A newer image, which may be on its way, makes another `Followed`; otherwise it is tried again."""
        self._errors.add()
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._session.hold(followed)
            self._ranges[followed.key] = followed
            return
        if error not in _EXPECTED:
            _logger.warning("%s: broker %d answers %s", followed, self.leader, error.name)
        self._pause(followed, now_s, 1.0 if error in _MISSING_TOPIC else None)

    # The range of a leader's log.

    def _ask_ranges(self, connection: PeerConnection) -> None:
        asked, self._ranges = list(self._ranges.values()), {}
        question = RangeQuestion(asked, self._node_id)
        for timestamp in (EARLIEST, LATEST):
            connection.request(
                ApiKey.LIST_OFFSETS,
                question.request(timestamp),
                partial(self._on_range, question, timestamp),
            )

    def _on_range(self, question: RangeQuestion, timestamp: int, outcome: Any) -> None:
        if self._is_closed:
            return
        response = None if isinstance(outcome, Unanswered) else _message_of(outcome)
        question.take(timestamp, response or ListOffsetsResponse())
        if not question.is_answered:
            return
        now_s = self._loop.time()
        for followed, found in question.ranges():
            if not self._session.follows(followed):
                continue
            if found is None:
                self._pause(followed, now_s)
            else:
                self._follow_up(followed, self._copies.settle_in(followed, *found), now_s)
        self.wake()


def _message_of(outcome: Any) -> Any | None:
    """None where it cannot be read."""
    try:
        return outcome.message()
    except MalformedMessage:
        return None
