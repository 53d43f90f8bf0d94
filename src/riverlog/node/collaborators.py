"""What the routes of a node are made with, put together from its parts."""

from typing import Final

from riverlog.broker.dispatch.routes import Collaborators
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.replica_fetches import ReplicaFetches
from riverlog.broker.fetch.replica_sessions import ReplicaSessions
from riverlog.broker.fetch.sessions import FetchSessions
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.shared.forwarding import Forwarding
from riverlog.client.peers import Peers
from riverlog.controller.controller import Controller
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.node.coordinators import Coordinators
from riverlog.node.surroundings import Surroundings
from riverlog.replication.log_moves import LogMoves
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories

_FETCH_SESSION_ID_MAX: Final = 2**31 - 1


def collaborators_of(
    given: Surroundings,
    follower: MetadataFollower,
    replicas: ReplicaSet,
    directories: DataDirectories,
    coordinators: Coordinators,
    controller: Controller,
    producer_ids: ProducerIds,
    moves: LogMoves,
    peers: Peers,
    *,
    turn: LoopTurn,
    cold_reader: ColdReader,
) -> Collaborators:
    return Collaborators(
        config=given.config,
        replicas=replicas,
        follower=follower,
        controller=controller,
        producer_ids=producer_ids,
        groups=coordinators.groups,
        transactions=coordinators.transactions.coordinator,
        transaction_admission=coordinators.transactions.writes,
        markers=coordinators.transactions.markers,
        automatic_topics=coordinators.automatic_topics,
        directories=directories,
        moves=moves,
        layers=lambda: given.live_config.layers(follower.image),
        forwarding=_forwarding(given, controller, follower, peers),
        fetch_sessions=FetchSessions(
            given.config.fetch_session_slots,
            now_ms=lambda: int(given.clock.monotonic_s() * 1000),
            random_id=lambda: _session_id(given),
        ),
        replica_fetches=_replica_fetches(given, follower, replicas, turn, cold_reader),
        turn=turn,
        cold_reader=cold_reader,
        clock=given.clock,
        metrics=given.metrics,
        new_id=given.new_id,
    )


def _forwarding(
    given: Surroundings, controller: Controller, follower: MetadataFollower, peers: Peers
) -> Forwarding | None:
    if given.is_alone:
        return None
    timeout_s = given.config.request_timeout_ms / 1000
    return Forwarding(controller, follower, peers, given.config.node_id, timeout_s=timeout_s)


def _session_id(given: Surroundings) -> int:
    return given.random.randint(1, _FETCH_SESSION_ID_MAX)


def _replica_fetches(
    given: Surroundings,
    follower: MetadataFollower,
    replicas: ReplicaSet,
    turn: LoopTurn,
    cold_reader: ColdReader,
) -> ReplicaFetches | None:
    """None for a node that has no followers."""
    if given.is_alone:
        return None
    fetches = ReplicaFetches(
        replicas,
        ReplicaSessions(lambda: _session_id(given)),
        turn,
        cold_reader,
        given.clock,
        listener_name=given.config.inter_broker_listener,
        bytes_max=given.config.fetch_bytes_max,
        metrics=given.metrics,
    )
    follower.subscribe(fetches.apply)
    return fetches
