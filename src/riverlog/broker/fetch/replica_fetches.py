"""Fetch 15-18 of a follower: its session, what changed since it was last told, and when it is answered.

A fetch waits without a task for records. A high watermark that moved alone is told as well, but not before
records have had a moment to go with it: under load every fetch brings records, and no other is needed. Not
here: strangers that claim to be replicas (`handler`), who is in sync (`replication`).
"""

import asyncio
from typing import Final, NamedTuple

from riverlog.broker.exchange.context import Parts, RequestContext
from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.replica_reads import CopyRead, read_copied, take_position
from riverlog.broker.fetch.replica_sessions import Copied, ReplicaSession, ReplicaSessions
from riverlog.broker.fetch.sessions import NO_SESSION, SessionEpoch
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.metadata.delta import ImageDelta
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, NodeId
from riverlog.model.metrics import Metrics
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.by_hand.replica_fetch_response import REPLICA_VERSION_MIN, encode_replica_fetch
from riverlog.wire.messages.fetch import FetchRequest, FetchResponse

_NEWS_DELAY_S: Final = 0.01
"""How long a high watermark waits for records to go with."""


class ReplicaFetches:
    def __init__(
        self,
        replicas: ReplicaSet,
        sessions: ReplicaSessions,
        turn: LoopTurn,
        cold_reader: ColdReader,
        clock: Clock,
        *,
        listener_name: str,
        bytes_max: int,
        metrics: Metrics,
    ) -> None:
        """`listener_name` is the one at which brokers ask each other."""
        self._replicas = replicas
        self._sessions = sessions
        self._turn = turn
        self._cold_reader = cold_reader
        self._clock = clock
        self._listener_name = listener_name
        self._bytes_max = bytes_max
        self._bytes_out = metrics.counter("riverlog_replicated_bytes_total")
        metrics.gauge("riverlog_replica_fetch_sessions", lambda: len(sessions))

    def admits(self, request: FetchRequest, context: RequestContext) -> bool:
        """Whether it comes from a broker of this cluster under its present registration."""
        state = request.replica_state
        return (
            context.version >= REPLICA_VERSION_MIN
            and context.listener_name == self._listener_name
            and self._replicas.standing.is_present(NodeId(state.replica_id), BrokerEpoch(state.replica_epoch))
        )

    def handle(
        self, request: FetchRequest, context: RequestContext
    ) -> "Parts | FetchResponse | DelayedReplicaFetch":
        """Of one that `admits` is true of."""
        session = self._session(request)
        if isinstance(session, ErrorCode):
            return FetchResponse(error_code=session, session_id=NO_SESSION)
        now_s = self._clock.monotonic_s()
        confirmations = self._replicas.standing.confirmations
        session.begin_request(now_s, confirmations.count())
        for topic in request.topics:
            for wanted in topic.partitions:
                take_position(session.copy(topic.topic_id, wanted), self._replicas, now_s)
        for forgotten in request.forgotten_topics_data:
            session.forget(forgotten.topic_id, forgotten.partitions)
        ask = _Asked(session, context.header.correlation_id, min(request.max_bytes, self._bytes_max))
        # A reply without a session, or the first of one, names every partition and is not waited for.
        is_full = request.session_epoch in tuple(SessionEpoch)
        confirmations.look()
        is_awaited = confirmations.is_awaited(session.node_id)
        is_over = is_full or is_awaited or request.max_wait_ms <= 0
        reply = self.look(ask, is_over=is_over, is_full=is_full)
        if session.id == NO_SESSION:
            session.close()
        if reply is not None:
            return reply
        return DelayedReplicaFetch(self, ask, request.max_wait_ms / 1000, self._turn)

    def _session(self, request: FetchRequest) -> ReplicaSession | ErrorCode:
        state = request.replica_state
        node_id, broker_epoch = NodeId(state.replica_id), BrokerEpoch(state.replica_epoch)
        if request.session_epoch == SessionEpoch.INITIAL:
            return self._sessions.open(node_id, broker_epoch)
        if request.session_epoch != SessionEpoch.FINAL:
            return self._sessions.resume(node_id, broker_epoch, request.session_id, request.session_epoch)
        if request.session_id != NO_SESSION:
            self._sessions.close(node_id)
        return ReplicaSession(NO_SESSION, node_id, broker_epoch)

    def look(self, asked: "_Asked", *, is_over: bool, is_full: bool = False) -> Parts | None:
        """The reply, if there is something to tell, or else when the time is over."""
        session, correlation_id, max_bytes = asked
        reads = self._read_due(session, max_bytes, is_full=is_full)
        if not is_over and not any(read.is_urgent for read in reads):
            session.due = [read.copied for read in reads] + session.due
            return None
        for copied, row, _, _, is_cut_short, _ in reads:
            copied.told_high_watermark = row.high_watermark
            copied.told_log_start = row.log_start_offset
            copied.is_due = is_cut_short
            if row.records is not None:
                self._bytes_out.add(row.records.length)
                session.sent.append(copied)
        return encode_replica_fetch(correlation_id, session.id, [read.row for read in reads])

    def _read_due(self, session: ReplicaSession, max_bytes: int, *, is_full: bool) -> list[CopyRead]:
        """What there is to tell of those that are due.

        Once `max_bytes` are used up the others stay on the list, which they head the next time.
        """
        now_s, left = self._clock.monotonic_s(), max_bytes
        reads: list[CopyRead] = []
        cut_short: list[Copied] = []
        for copied in session.take_due():
            if left <= 0 and not is_full:
                cut_short.append(copied)
                continue
            read = read_copied(copied, self._replicas, now_s, max_bytes=left, is_first=left == max_bytes)
            if read.is_cut_short:
                cut_short.append(copied)
            if read.is_news:
                reads.append(read)
            elif not read.is_cut_short:
                copied.is_due = False
            if read.row.records is not None:
                left -= read.row.records.length
            if read.cold is not None:
                self._warm(read)
        session.due = cut_short + session.due
        return reads

    def apply(self, delta: ImageDelta) -> None:
        """To be called after `ReplicaSet.apply`: what it has of brokers is used here."""
        if delta.old.brokers != delta.new.brokers:
            self._sessions.retain(self._replicas.standing.is_present)

    def _warm(self, read: CopyRead) -> None:
        """Have a thread bring in what cannot be checked, and so not be sent, before it is in memory."""
        assert read.cold is not None
        copied = read.copied

        def on_warmed(warmed: "asyncio.Future[None]") -> None:
            if not warmed.cancelled():
                warmed.exception()  # A disk that fails to read is offline now, which the next look tells.
            if copied.partition is not None:
                copied.be_due()

        self._cold_reader.warm(read.cold).add_done_callback(on_warmed)


class _Asked(NamedTuple):
    session: ReplicaSession
    correlation_id: int
    max_bytes: int


class DelayedReplicaFetch(DelayedReply):
    """A follower that has all there is: woken by its session, ended by one timer."""

    __slots__ = ("_asked", "_fetches", "_is_over", "_news_timer", "_timer")

    def __init__(self, fetches: ReplicaFetches, asked: _Asked, timeout_s: float, turn: LoopTurn) -> None:
        super().__init__(turn)
        self._fetches = fetches
        self._asked = asked
        self._is_over = False
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._on_over)
        self._news_timer: asyncio.TimerHandle | None = None
        session = asked.session
        session.waiting = self
        if session.due:
            self._tell_news_soon()

    def on_due(self, copied: Copied) -> None:
        if copied.has_only_news:
            self._tell_news_soon()
        else:
            self.poll_soon()

    def on_hurried(self) -> None:
        self._on_over()

    def on_session_closed(self) -> None:
        self.poll_soon()

    def _tell_news_soon(self) -> None:
        if self._news_timer is None:
            self._news_timer = asyncio.get_running_loop().call_later(_NEWS_DELAY_S, self._on_over)

    def _on_over(self) -> None:
        self._is_over = True
        self.poll_soon()

    def make(self) -> object:
        if self._asked.session.waiting is not self:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=NO_SESSION)
        reply = self._fetches.look(self._asked, is_over=self._is_over)
        return NOT_YET if reply is None else reply

    def drop(self) -> None:
        self._timer.cancel()
        if self._news_timer is not None:
            self._news_timer.cancel()
        session = self._asked.session
        if session.waiting is self:
            session.waiting = None
