"""All connections of a node: who may connect, who has been idle for too long, and closing them all.

Limits are counted before anything is read: a connection above `max.connections` or its address's share is
closed at once (Kafka leaves the former waiting in the listen queue, where the client sees nothing). Idle
connections are found by a scan that looks at a bounded number per turn, not by a timer each.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from riverlog.broker.exchange.rate_limited_log import RateLimitedLog
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.connection import Answering, Connection
from riverlog.broker.net.receive_memory import ReceiveMemory
from riverlog.model.clock import Clock
from riverlog.model.metrics import Metrics
from riverlog.model.network import Address, Socket

_logger = logging.getLogger(__name__)
_SCANNED_PER_TURN = 1000
_STALLED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    request_bytes_max: int = 100 * 1024**2
    connections_max: int = 2**31 - 1
    per_address_max: int = 2**31 - 1
    per_address_overrides: Mapping[str, int] = field(default_factory=dict)
    brokers_at: Mapping[str, int] = field(default_factory=dict)
    """How many connections of other brokers an address may have beyond its share; under "" those of brokers
    whose address is a name, and may be any."""
    idle_ms_max: int | None = 10 * 60 * 1000


class Connections:
    def __init__(
        self,
        answering: Answering,
        limits: ConnectionLimits,
        *,
        memory: ReceiveMemory,
        cold_reader: ColdReader,
        turn: LoopTurn,
        clock: Clock,
        metrics: Metrics,
        refuses: Callable[[Address], bool] = lambda _: False,
    ) -> None:
        """`refuses` names peers whose connections are reset at once, whatever the limits say."""
        self._answering = answering
        self._refuses = refuses
        self.limits = limits
        """May be replaced; connections that are there already stay."""
        self._memory = memory
        self._cold_reader = cold_reader
        self._clock = clock
        self._turn = turn
        self._open: OrderedDict[Connection, None] = OrderedDict()
        self._per_address: Counter[str] = Counter()
        self._log = RateLimitedLog(_logger, clock.monotonic_s)
        self._accepted = metrics.counter("riverlog_connections_accepted_total")
        self._refused = metrics.counter("riverlog_connections_refused_total")
        metrics.gauge("riverlog_connections", lambda: len(self._open))
        metrics.gauge("riverlog_cold_reads", lambda: cold_reader.reads)
        metrics.gauge("riverlog_receive_bytes_reserved", lambda: memory.reserved_bytes)

    def __len__(self) -> int:
        return len(self._open)

    def accept(self, socket: Socket, listener_name: str) -> None:
        host = socket.peer.host
        if len(self._open) >= self.limits.connections_max or self._per_address[host] >= self._allowed(host):
            self._refused.add()
            self._log.warn("refused %s: there are too many connections", socket.peer)
            socket.close()
            self._forget_address_if_unused(host)
            return
        if self._refuses(socket.peer):
            self._refused.add()
            socket.reset()
            return
        self._accepted.add()
        self._per_address[host] += 1
        connection = Connection(
            socket,
            listener_name,
            self._answering,
            self._memory,
            self._cold_reader,
            self._turn,
            frame_bytes_max=self.limits.request_bytes_max,
            on_closed=self._on_closed,
        )
        self._open[connection] = None

    def _allowed(self, host: str) -> int:
        """From one address. Brokers of a cluster are not to keep each other out."""
        limits = self.limits
        share = limits.per_address_overrides.get(host, limits.per_address_max)
        return share + limits.brokers_at.get(host, 0) + limits.brokers_at.get("", 0)

    def close_idle(self) -> None:
        """One turn of the scan; call it every few seconds. Those looked at longest ago come first."""
        now_s = self._clock.monotonic_s()
        for connection in list(islice(self._open, _SCANNED_PER_TURN)):
            if connection.is_closed:
                continue  # By what another's end has set free.
            self._open.move_to_end(connection)
            silent_s = now_s - connection.last_active_s
            idle_ms_max = self.limits.idle_ms_max
            if idle_ms_max is not None and connection.is_idle and silent_s * 1000 > idle_ms_max:
                connection.close("idle")
            elif self._memory.is_short and connection.holds_memory and silent_s > _STALLED_S:
                self._log.warn(
                    "closed %s: its request stopped arriving while others wait for the memory it holds",
                    connection.origin.peer,
                )
                connection.close("stalled")

    def close(self) -> None:
        for connection in list(self._open):
            connection.close("the broker stops")

    def _on_closed(self, connection: Connection, reason: str) -> None:
        self._open.pop(connection, None)
        host = connection.origin.peer.host
        self._per_address[host] -= 1
        self._forget_address_if_unused(host)
        if reason:
            _logger.debug("closed %s: %s", connection.origin.peer, reason)

    def _forget_address_if_unused(self, host: str) -> None:
        if self._per_address[host] <= 0:
            del self._per_address[host]
