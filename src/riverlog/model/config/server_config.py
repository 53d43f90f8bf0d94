"""`ServerConfig`: what the node, its network and its background duties need to know.

Defaults are Apache Kafka's, except that a node listens on the loopback interface only and keeps its data in
the working directory. `None` means without limit, or that there is nothing to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from riverlog.model.config.listeners import (
    LOOPBACK_LISTENER,
    Listener,
    advertised_listeners,
    bound_listeners,
    inter_broker_listener,
    refuse_open_listeners,
)
from riverlog.model.config.log_config import LONG_MAX
from riverlog.model.config.settings import DEFAULT_NODE_ID, Settings
from riverlog.model.errors import ConfigError
from riverlog.model.ids import NodeId

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the node, its network and its background duties need."""

    node_id: NodeId = DEFAULT_NODE_ID
    rack: str | None = None
    log_dirs: tuple[str, ...] = ("riverlog-data",)
    listeners: tuple[Listener, ...] = (LOOPBACK_LISTENER,)
    advertised_listeners: tuple[Listener, ...] = ()
    """By name; a listener that is not here advertises the address it is bound to."""
    inter_broker_listener: str = LOOPBACK_LISTENER.name
    """The name of the listener at which the brokers of a cluster ask each other."""
    insecure: bool = False
    """A listener without authentication may be bound beyond the loopback interface."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    rebalances_leaders: bool = True
    hands_over: bool = True
    """Leaders are moved away before the node stops."""
    leader_imbalance_check_interval_s: int = 300
    auto_create_topics: bool = True
    delete_topics: bool = True

    socket_request_bytes_max: int = 100 * 1024**2
    queued_request_bytes_max: int | None = None
    """Bytes of requests being received at once, on all connections; None takes our own limit."""
    socket_send_buffer_bytes: int | None = 100 * 1024
    socket_receive_buffer_bytes: int | None = 100 * 1024
    socket_listen_backlog: int = 50
    max_connections: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    connections_max_idle_ms: int | None = 10 * 60 * 1000
    request_timeout_ms: int = 30_000
    """How long another broker is waited for."""
    fetch_bytes_max: int = 55 * 1024**2
    fetch_session_slots: int = 1000

    replica_selector: str | None = None
    """By which rule a leader sends consumers to other replicas; None: it does not."""
    replica_lag_max_ms: int = 30_000
    replica_lag_messages_max: int | None = None
    is_lease_strict: bool = True
    """Without a session, nothing is acknowledged that one broker could acknowledge alone."""
    accept_strays: bool = False
    shared_metadata_dir: str | None = None
    host: str | None = None
    """The machine the node runs on; None: as the system tells."""
    zookeeper_connect: str | None = None
    zookeeper_session_timeout_ms: int = 9_000
    zookeeper_connection_timeout_ms: int | None = None
    """None: a start waits for ZooKeeper without a limit."""
    """Where the brokers of this host share their metadata; None: this one has its own."""
    open_files_max: int | None = None
    """Segment and index files kept open at once; None takes a share of the process's limit."""
    open_logs_max: int = 5_000
    """Beyond it logs that are at rest are closed."""
    retention_check_interval_ms: int = 5 * 60 * 1000
    flush_scheduler_interval_ms: int | None = None
    """How often logs are looked at for a due flush.ms; None means never, as nothing is due."""
    high_watermark_checkpoint_interval_ms: int = 5_000
    initial_task_delay_ms: int = 30_000
    producer_id_expiration_check_interval_ms: int = 10 * 60 * 1000
    request_partitions_max: int = 2000
    """Partitions in one answer of DescribeTopicPartitions."""

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> "ServerConfig":
        """Raises `ConfigError` where settings contradict each other or cannot be served.

        The maps hold what was altered since the start; of the fields here that is the bounds on connections.
        """
        settings = settings.altered({**(dynamic_default or {}), **(dynamic_broker or {})}, only=ALTERABLE)
        listeners = bound_listeners(settings)
        insecure = bool(settings.get("riverlog.insecure"))
        if not insecure:
            refuse_open_listeners(listeners, settings)
        fields: dict[str, Any] = {name: settings.get(key) for name, key in PLAIN_FIELDS.items()}
        for name in _NONE_WHEN_NEGATIVE:
            fields[name] = None if fields[name] < 0 else fields[name]
        if fields["flush_scheduler_interval_ms"] == LONG_MAX:
            fields["flush_scheduler_interval_ms"] = None
        return cls(
            node_id=_node_id(settings),
            log_dirs=_log_dirs(settings),
            listeners=listeners,
            advertised_listeners=advertised_listeners(settings, listeners),
            inter_broker_listener=inter_broker_listener(settings, listeners),
            insecure=insecure,
            max_connections_per_ip_overrides=_per_ip(settings),
            **fields,
        )


PLAIN_FIELDS: Mapping[str, str] = {
    "rack": "broker.rack",
    "num_partitions": "num.partitions",
    "default_replication_factor": "default.replication.factor",
    "hands_over": "controlled.shutdown.enable",
    "rebalances_leaders": "auto.leader.rebalance.enable",
    "leader_imbalance_check_interval_s": "leader.imbalance.check.interval.seconds",
    "auto_create_topics": "auto.create.topics.enable",
    "delete_topics": "delete.topic.enable",
    "socket_request_bytes_max": "socket.request.max.bytes",
    "queued_request_bytes_max": "queued.max.request.bytes",
    "socket_send_buffer_bytes": "socket.send.buffer.bytes",
    "socket_receive_buffer_bytes": "socket.receive.buffer.bytes",
    "socket_listen_backlog": "socket.listen.backlog.size",
    "max_connections": "max.connections",
    "max_connections_per_ip": "max.connections.per.ip",
    "connections_max_idle_ms": "connections.max.idle.ms",
    "request_timeout_ms": "request.timeout.ms",
    "fetch_bytes_max": "fetch.max.bytes",
    "fetch_session_slots": "max.incremental.fetch.session.cache.slots",
    "open_files_max": "riverlog.open.files.max",
    "open_logs_max": "riverlog.open.logs.max",
    "replica_selector": "replica.selector.class",
    "replica_lag_max_ms": "replica.lag.time.max.ms",
    "replica_lag_messages_max": "riverlog.replica.lag.max.messages",
    "is_lease_strict": "riverlog.lease.strict",
    "accept_strays": "riverlog.strays.accept",
    "shared_metadata_dir": "riverlog.shared.metadata.dir",
    "host": "riverlog.host",
    "zookeeper_connect": "zookeeper.connect",
    "zookeeper_session_timeout_ms": "zookeeper.session.timeout.ms",
    "zookeeper_connection_timeout_ms": "zookeeper.connection.timeout.ms",
    "retention_check_interval_ms": "log.retention.check.interval.ms",
    "flush_scheduler_interval_ms": "log.flush.scheduler.interval.ms",
    "high_watermark_checkpoint_interval_ms": "replica.high.watermark.checkpoint.interval.ms",
    "initial_task_delay_ms": "log.initial.task.delay.ms",
    "producer_id_expiration_check_interval_ms": "producer.id.expiration.check.interval.ms",
    "request_partitions_max": "max.request.partition.size.limit",
}
ALTERABLE = ("max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides")
_NONE_WHEN_NEGATIVE = (
    "queued_request_bytes_max",
    "socket_send_buffer_bytes",
    "socket_receive_buffer_bytes",
    "connections_max_idle_ms",
)


def _node_id(settings: Settings) -> NodeId:
    named = [name for name in ("node.id", "broker.id") if name in settings]
    values = {settings.get(name) for name in named}
    if len(values) > 1:
        raise ConfigError(
            f"{settings.origin('broker.id')}: broker.id and node.id differ. They are two names of one "
            "number; remove broker.id."
        )
    if not named:
        return DEFAULT_NODE_ID
    number = settings.get(named[0])
    assert isinstance(number, int)
    if number < 0:
        raise ConfigError(
            f"{settings.origin(named[0])}: broker.id must not be negative. Give node.id instead."
        )
    return NodeId(number)


def _log_dirs(settings: Settings) -> tuple[str, ...]:
    name = "log.dirs" if "log.dirs" in settings else "log.dir"
    directories = settings.get(name)
    assert isinstance(directories, tuple)
    if not directories:
        raise ConfigError(f"{settings.origin(name)}: {name} is empty. Name at least one directory.")
    return directories


def _per_ip(settings: Settings) -> Mapping[str, int]:
    """`address:count` pairs; the count follows the last colon, as an IPv6 address has colons of its own."""
    name = "max.connections.per.ip.overrides"
    overrides = {}
    for pair in filter(None, (part.strip() for part in str(settings.get(name)).split(","))):
        host, separator, count = pair.rpartition(":")
        if not separator or not count.strip().isdecimal():
            raise ConfigError(f"{settings.origin(name)}: {name}: {pair} is not address:count.")
        overrides[host.strip().strip("[]")] = int(count)
    return overrides
