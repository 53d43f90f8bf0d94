"""Fetch 4-18: records by offset, with long polling and incremental sessions.

Topics are named up to version 12 and identified by topic id from 13 on. Records leave as slices of files.
Fetches of followers are answered by `replica_fetches`; one that claims to be a follower and is none is
refused as by Apache Kafka, and moves no watermark. Since 11 consumers may read from a follower, and a leader
names the one that is nearest (KIP-392).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from riverlog.broker.exchange.context import Parts, RequestContext
from riverlog.broker.exchange.delayed import DelayedReply
from riverlog.broker.exchange.long_work import InPieces
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.delayed_fetch import DelayedFetch
from riverlog.broker.fetch.long_fetch import (
    LARGE_MIN,
    LONG_MIN,
    LongWait,
    count_named,
    drop,
    parts_of,
    respond,
)
from riverlog.broker.fetch.reads import FetchLimits, FetchReader, FetchReads, PartitionRead, unreadable
from riverlog.broker.fetch.replica_fetches import ReplicaFetches
from riverlog.broker.fetch.sessions import (
    NO_SESSION,
    FetchSession,
    FetchSessions,
    SessionEpoch,
    Wanted,
    wanted_by,
)
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.shared.leader_hints import FETCH_SINCE as FETCH_HINTS_SINCE
from riverlog.broker.shared.leader_hints import LeaderHints
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics
from riverlog.model.pieces import Outside, Pieces
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.by_hand.fetch_request import SingleFetch
from riverlog.wire.by_hand.fetch_response import FetchRow, encode_single_fetch
from riverlog.wire.dissolving import dissolve
from riverlog.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse

_READ_COMMITTED = 1
_FOLLOWER_READS_SINCE = 11


class FetchHandler:
    def __init__(
        self,
        reader: FetchReader,
        sessions: FetchSessions,
        turn: LoopTurn,
        cold_reader: ColdReader,
        *,
        fetch_bytes_max: int,
        metrics: Metrics,
        hints: LeaderHints | None = None,
        replica_fetches: ReplicaFetches | None = None,
    ) -> None:
        """`hints` where there are other brokers that may lead, `replica_fetches` where they may follow."""
        self._replica_fetches = replica_fetches
        self._hints = hints
        self._reader = reader
        self._turn = turn
        self._cold_reader = cold_reader
        self._warming: dict[tuple[str, int], asyncio.Future[None]] = {}
        self._sessions = sessions
        self._fetch_bytes_max = fetch_bytes_max
        self._bytes_out = metrics.counter("riverlog_fetched_bytes_total")
        self._follower_bytes_out = metrics.counter("riverlog_follower_read_bytes_total")
        self._waiting_count = 0
        metrics.gauge("riverlog_fetch_sessions", lambda: len(sessions))
        metrics.gauge("riverlog_fetches_waiting", lambda: self._waiting_count)

    def handle(
        self, request: FetchRequest | SingleFetch, context: RequestContext
    ) -> Parts | FetchResponse | DelayedReply | InPieces[FetchResponse]:
        if isinstance(request, SingleFetch):
            answer = self._answer_single(request, context)
            if answer is not None:
                return answer
            request = request.as_request()
        elif request.replica_state.replica_id >= 0:
            replica_fetches = self._replica_fetches
            if replica_fetches is not None and replica_fetches.admits(request, context):
                return replica_fetches.handle(request, context)
        return self._answer(request, context)

    def _answer_single(self, request: SingleFetch, context: RequestContext) -> Parts | DelayedFetch | None:
        """The short way for what most fetches are: enough records of one partition, and nothing else to tell.

        None, and nothing has happened, wherever that is not so.
        """
        version = context.header.api_version
        session: FetchSession | None = None
        if request.session_id != NO_SESSION:
            session = self._sessions.with_only(request, by_id=version >= TOPIC_ID_VERSION_MIN)
            if session is None:
                return None
        elif request.session_epoch != SessionEpoch.FINAL:
            return None
        read = self._reader.read_single(request, self._fetch_bytes_max, by_id=version >= TOPIC_ID_VERSION_MIN)
        if read is None:
            return None
        if isinstance(read, Partition):
            if session is None and request.min_bytes == 1 and request.max_wait_ms > 0:
                return self._answer_single_later(request, context, read)
            return None
        if session is not None:
            row, _ = read
            self._sessions.advance_only(session, request, row[1], row[3])
        return self._with_records(read, request, context)

    def _answer_single_later(
        self, request: SingleFetch, context: RequestContext, partition: Partition
    ) -> DelayedFetch:
        """With the first records that come; anything else is left to the general way."""
        by_id = context.header.api_version >= TOPIC_ID_VERSION_MIN

        def look(is_over: bool) -> Parts | FetchResponse | int:
            read = self._reader.read_single(request, self._fetch_bytes_max, by_id=by_id)
            if isinstance(read, tuple):
                return self._with_records(read, request, context)
            if not is_over and read is not None:
                return 0
            response = self._answer(request._replace(max_wait_ms=0).as_request(), context)
            assert isinstance(response, FetchResponse)  # A wait of no time is answered at once.
            return response

        return self._wait([partition], look, have_bytes=0, enough_bytes=1, max_wait_ms=request.max_wait_ms)

    def _wait(
        self,
        partitions: Sequence[Partition | IdlePartition],
        look: Callable[[bool], Parts | FetchResponse | int],
        *,
        have_bytes: int,
        enough_bytes: int,
        max_wait_ms: int,
    ) -> DelayedFetch:
        self._waiting_count += 1
        return DelayedFetch(
            partitions,
            look,
            have_bytes=have_bytes,
            enough_bytes=enough_bytes,
            timeout_s=max_wait_ms / 1000,
            on_end=self._on_wait_ended,
            turn=self._turn,
        )

    def _on_wait_ended(self) -> None:
        self._waiting_count -= 1

    def _with_records(
        self, read: tuple[FetchRow, FileSlice], request: SingleFetch, context: RequestContext
    ) -> Parts:
        row, records = read
        _, version, correlation_id, _ = context.header
        self._bytes_out.add(records.length)
        return encode_single_fetch(version, correlation_id, request, row, records, request.session_id)

    def _answer(
        self, request: FetchRequest, context: RequestContext
    ) -> FetchResponse | DelayedFetch | InPieces[FetchResponse]:
        if request.isolation_level not in (0, _READ_COMMITTED):
            return _unknown_isolation(request)
        is_full = request.session_epoch in (SessionEpoch.INITIAL, SessionEpoch.FINAL)
        session: FetchSession | None = None
        version = context.header.api_version
        is_long = count_named(request) >= LONG_MIN
        if is_full:
            self._sessions.close(request.session_id)
            wanted = [] if is_long else wanted_by(request, by_id=version >= TOPIC_ID_VERSION_MIN)
        else:
            resumed = self._sessions.resume(request, version, with_changes=not is_long)
            if isinstance(resumed, ErrorCode):
                return FetchResponse(error_code=resumed, session_id=NO_SESSION)
            session = resumed
            wanted = list(session.wanted.values())
        limits = self._limits(request, context)
        if is_long or len(wanted) >= LONG_MIN:
            is_large = max(count_named(request), len(wanted)) >= LARGE_MIN
            return InPieces(self._answer_in_pieces(request, limits, session, context), is_large)
        reads = self._reader.read(wanted, limits)
        enough_bytes = min(request.min_bytes, limits.max_bytes)
        if request.max_wait_ms <= 0:
            reads.give_up()
        if reads.size_bytes >= enough_bytes or reads.must_answer or request.max_wait_ms <= 0 or not wanted:
            self._warm(reads.cold)  # For the next fetch.
            return self._respond(reads, request, session, context)
        return self._respond_later(wanted, limits, reads, request, session, context)

    def _limits(self, request: FetchRequest, context: RequestContext) -> FetchLimits:
        version = context.header.api_version
        claims_to_be_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
        return FetchLimits(
            max_bytes=min(request.max_bytes, self._fetch_bytes_max),
            is_read_committed=request.isolation_level == _READ_COMMITTED,
            claims_to_be_replica=claims_to_be_replica,
            tells_leader=version >= 16,
            may_read_follower=version >= _FOLLOWER_READS_SINCE and not claims_to_be_replica,
            rack=request.rack_id,
            listener_name=context.listener_name,
        )

    def _answer_in_pieces(
        self,
        request: FetchRequest,
        limits: FetchLimits,
        session: FetchSession | None,
        context: RequestContext,
    ) -> Pieces[FetchResponse]:
        by_id = context.version >= TOPIC_ID_VERSION_MIN
        wanted: list[Wanted] = []
        is_long = count_named(request) >= LONG_MIN
        for some in parts_of(request) if session is None or is_long else ():
            if session is None:
                wanted += wanted_by(some, by_id=by_id)
            else:
                session.update(some)
            yield None
        if session is not None:
            self._sessions.end_if_empty(session)
            wanted = list(session.wanted.values())
        yield from dissolve(request)
        self._waiting_count += 1
        wait = LongWait(
            min(request.min_bytes, limits.max_bytes),
            max_wait_ms=request.max_wait_ms,
            on_end=self._on_wait_ended,
        )
        try:
            while True:
                reads = yield from wait.read(self._reader, wanted, limits)
                self._warm(reads.cold, wait)
                if wait.is_enough(reads) or not wanted:
                    break
                yield from drop(reads.reads)
                yield Outside(wait.until_woken())
        finally:
            wait.end()
        yield from drop(wanted)
        return (yield from self._respond_in_pieces(reads, request, session, context))

    def _respond_in_pieces(
        self, reads: FetchReads, request: FetchRequest, session: FetchSession | None, context: RequestContext
    ) -> Pieces[FetchResponse]:
        """As `_respond`."""
        self._bytes_out.add(reads.size_bytes)
        self._follower_bytes_out.add(reads.follower_bytes)
        told = reads.reads
        response = FetchResponse(session_id=NO_SESSION)
        if session is not None:
            told = []
            for read in reads.reads:
                if session.note_reply(read.wanted, read.data):
                    told.append(read)
                yield None
            response.session_id = session.id if session.wanted else NO_SESSION
            yield from drop(reads.reads)
        elif request.session_epoch == SessionEpoch.INITIAL:
            opened = self._sessions.open(
                (), uses_topic_ids=context.version >= TOPIC_ID_VERSION_MIN, more=len(told)
            )
            response.session_id = NO_SESSION if opened is None else opened.id
            for read in told:
                read.wanted.note(read.data)
                if opened is not None:
                    opened.wanted[read.wanted.key] = read.wanted
                yield None
        yield from respond(told, response)
        if self._hints is not None and reads.must_answer and context.version >= FETCH_HINTS_SINCE:
            yield from self._hints.on_fetch_in_pieces(
                response, context.listener_name, with_addresses=request.replica_state.replica_id < 0
            )
        return response

    def _respond_later(
        self,
        wanted: list[Wanted],
        limits: FetchLimits,
        first: FetchReads,
        request: FetchRequest,
        session: FetchSession | None,
        context: RequestContext,
    ) -> DelayedFetch:
        enough_bytes = min(request.min_bytes, limits.max_bytes)

        def look(is_over: bool) -> FetchResponse | int:
            reads = self._reader.read(wanted, limits)
            if is_over:
                reads.give_up()
            if is_over or reads.size_bytes >= enough_bytes or reads.must_answer:
                return self._respond(reads, request, session, context)
            self._warm(reads.cold, wait)
            return reads.size_bytes

        partitions = [read.partition for read in first.reads if read.partition is not None]
        wait = self._wait(
            partitions,
            look,
            have_bytes=first.size_bytes,
            enough_bytes=enough_bytes,
            max_wait_ms=request.max_wait_ms,
        )
        self._warm(first.cold, wait)
        return wait

    def _warm(self, cold: list[FileSlice], wait: DelayedFetch | LongWait | None = None) -> None:
        """Have a thread bring in what cannot be checked, and so not be sent, before it is in memory."""
        for piece in cold:
            place = piece.file.path, piece.position
            warming = self._warming.get(place)
            if warming is None:
                warming = self._warming[place] = self._cold_reader.warm(piece)
                warming.add_done_callback(partial(self._on_warmed, place))
            if wait is not None:
                warming.add_done_callback(lambda _: wait.on_warmed())

    def _on_warmed(self, place: tuple[str, int], warmed: "asyncio.Future[None]") -> None:
        del self._warming[place]
        if not warmed.cancelled():
            warmed.exception()  # A disk that fails to read is offline now, which the next look tells.

    def _respond(
        self, reads: FetchReads, request: FetchRequest, session: FetchSession | None, context: RequestContext
    ) -> FetchResponse:
        response = self._made(reads, request, session, context.version)
        if self._hints is not None and reads.must_answer and context.version >= FETCH_HINTS_SINCE:
            is_for_client = request.replica_state.replica_id < 0
            self._hints.on_fetch(response, context.listener_name, with_addresses=is_for_client)
        return response

    def _made(
        self, reads: FetchReads, request: FetchRequest, session: FetchSession | None, version: int
    ) -> FetchResponse:
        self._bytes_out.add(reads.size_bytes)
        self._follower_bytes_out.add(reads.follower_bytes)
        if session is not None:
            news = [read for read in reads.reads if session.note_reply(read.wanted, read.data)]
            return _response(news, session.id if session.wanted else NO_SESSION)
        if request.session_epoch != SessionEpoch.INITIAL:
            return _response(reads.reads, NO_SESSION)
        for read in reads.reads:
            read.wanted.note(read.data)
        opened = self._sessions.open(
            (read.wanted for read in reads.reads), uses_topic_ids=version >= TOPIC_ID_VERSION_MIN
        )
        return _response(reads.reads, NO_SESSION if opened is None else opened.id)


def _response(reads: list[PartitionRead], session_id: int) -> FetchResponse:
    response = FetchResponse(session_id=session_id)
    topic: FetchableTopicResponse | None = None
    for wanted, data, _ in reads:
        if topic is None or topic.topic != (wanted.topic or "") or topic.topic_id != wanted.topic_id:
            topic = FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id)
            response.responses.append(topic)
        topic.partitions.append(data)
    return response


def _unknown_isolation(request: FetchRequest) -> FetchResponse:
    """What Kafka answers when it cannot make sense of the isolation level."""
    wanted = wanted_by(request, by_id=False)
    reads = [PartitionRead(each, unreadable(each, ErrorCode.UNKNOWN_SERVER_ERROR), None) for each in wanted]
    response = _response(reads, NO_SESSION)
    response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return response
