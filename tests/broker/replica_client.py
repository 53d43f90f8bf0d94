"""A follower as its leader sees it: fetches in a session, answered by a real handler on virtual time."""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any
from uuid import UUID

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.delayed import DelayedReply
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.handler import FetchHandler
from riverlog.broker.fetch.nearest_replica import NearestReplica
from riverlog.broker.fetch.reads import FetchReader
from riverlog.broker.fetch.replica_fetches import ReplicaFetches
from riverlog.broker.fetch.replica_sessions import ReplicaSessions
from riverlog.broker.fetch.sessions import FetchSessions
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.model.ids import NodeId
from riverlog.model.network import Address
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.testing.in_process import decode_reply
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, encode_response_in_parts
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import BROKER_EPOCH, ME, SECOND, TOPIC_ID
from tests.virtual_time import LoopClock

LISTENER = "REPLICATION"


class Leader:
    """The fetch handler of a node whose replicas follow images."""

    def __init__(self, cluster: Cluster) -> None:
        turn, clock = LoopTurn(), LoopClock()
        metrics = self.metrics = InMemoryMetrics()
        cold_reader = ColdReader(ThreadPoolExecutor(1))
        ids: Iterator[int] = count(1)
        self.sessions = ReplicaSessions(lambda: next(ids))
        self.fetches = ReplicaFetches(
            cluster.replicas,
            self.sessions,
            turn,
            cold_reader,
            clock,
            listener_name=LISTENER,
            bytes_max=2**30,
            metrics=metrics,
        )
        cluster.follow(self.fetches.apply)
        self.handler = FetchHandler(
            FetchReader(cluster.replicas, NearestReplica(ME, cluster.replicas.standing, clock)),
            FetchSessions(10, now_ms=lambda: 0, random_id=lambda: next(ids)),
            turn,
            cold_reader,
            fetch_bytes_max=2**30,
            metrics=metrics,
            replica_fetches=self.fetches,
        )

    def ask(self, request: FetchRequest, version: int, listener: str = LISTENER) -> "asyncio.Future[Any]":
        header = RequestHeader(ApiKey.FETCH, version, 7, "broker-2")
        origin = Origin(Address("127.0.0.1", 0), listener)
        answer = self.handler.handle(request, RequestContext(header, origin))
        return asyncio.ensure_future(_answered(answer, version))


async def _answered(answer: Any, version: int) -> FetchResponse:
    if isinstance(answer, DelayedReply):
        answer = await answer.answer()
    if isinstance(answer, FetchResponse):
        answer = encode_response_in_parts(ApiKey.FETCH, version, 7, answer)
    return decode_reply(FetchResponse, ApiKey.FETCH, version, answer)


class FetchingFollower:
    def __init__(
        self,
        leader: Leader,
        node_id: NodeId = SECOND,
        broker_epoch: int = BROKER_EPOCH,
        *,
        version: int = 18,
        listener: str = LISTENER,
    ) -> None:
        self._leader = leader
        self._state = ReplicaState(replica_id=node_id, replica_epoch=broker_epoch)
        self._version = version
        self._listener = listener
        self.session_id = 0
        self.session_epoch = 0

    def begin(
        self,
        *wanted: FetchPartition,
        forgotten: Iterable[int] = (),
        max_wait_ms: int = 500,
        max_bytes: int = 2**20,
        topic_id: UUID = TOPIC_ID,
    ) -> "asyncio.Future[FetchResponse]":
        """Ask; the answer comes when it comes."""
        given_up = list(forgotten)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=list(wanted))] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=given_up)]
            if given_up
            else [],
            replica_state=self._state,
        )
        return self._leader.ask(request, self._version, self._listener)

    async def fetch(self, *wanted: FetchPartition, **options: Any) -> list[PartitionData]:
        response = await self.begin(*wanted, **options)
        assert response.error_code == 0
        return self.take(response)

    def take(self, response: FetchResponse) -> list[PartitionData]:
        """What a reply says of partitions; the session goes on."""
        self.session_id = response.session_id
        self.session_epoch += 1
        return [data for topic in response.responses for data in topic.partitions]


def at(
    offset: int, *, index: int = 0, epoch: int = 5, last_epoch: int = -1, log_start: int = 0
) -> FetchPartition:
    """Where a follower stands."""
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
        log_start_offset=log_start,
        partition_max_bytes=2**20,
    )
