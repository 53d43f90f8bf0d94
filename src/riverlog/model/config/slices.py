"""The slices of the settings that other layers are given: small, frozen, typed.

A slice is not a map of strings and knows no key names; every default is Apache Kafka's, so that `LogConfig()`
is a usable topic. Kafka's sentinels stop here: `None` means without limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from riverlog.model.ids import NodeId
from riverlog.model.network import Address

DAY_MS = 24 * 60 * 60 * 1000
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_DEFAULT_NODE_ID = NodeId(1)


class CleanupPolicy(StrEnum):
    DELETE = "delete"
    COMPACT = "compact"


class CompressionType(StrEnum):
    """`PRODUCER` keeps what the producer chose; any other is what the broker stores."""

    PRODUCER = "producer"
    UNCOMPRESSED = "uncompressed"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class TimestampType(StrEnum):
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class SecurityProtocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How one partition's log behaves: the topic's overrides on top of the broker's settings."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    retention_ms: int | None = 7 * DAY_MS
    retention_bytes: int | None = None
    cleanup_policies: frozenset[CleanupPolicy] = frozenset({CleanupPolicy.DELETE})
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int | None = None
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1024**2 + 12
    compression_type: CompressionType = CompressionType.PRODUCER
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = 60 * 60 * 1000
    flush_messages: int | None = None
    flush_ms: int | None = None
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    producer_id_expiration_ms: int = DAY_MS
    acks_fsync: bool = False
    """An acknowledgement, and every reader, waits until the data is on disk."""
    validate_records: bool = False
    """Look into every batch on the way in, not only where the topic needs it."""
    decompressed_bytes_max: int = 256 * 1024**2

    @property
    def is_compacted(self) -> bool:
        return CleanupPolicy.COMPACT in self.cleanup_policies

    @property
    def deletes_old_segments(self) -> bool:
        return CleanupPolicy.DELETE in self.cleanup_policies

    @property
    def compression_level(self) -> int | None:
        """The level for `compression_type`, or None where the type has no levels."""
        match self.compression_type:
            case CompressionType.GZIP:
                return self.gzip_level
            case CompressionType.LZ4:
                return self.lz4_level
            case CompressionType.ZSTD:
                return self.zstd_level
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Listener:
    """A name, the address to bind (or to advertise), and how its connections are secured."""

    name: str
    address: Address
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """What the node, its network and its background duties need."""

    node_id: NodeId = _DEFAULT_NODE_ID
    rack: str | None = None
    log_dirs: tuple[str, ...] = ("riverlog-data",)
    listeners: tuple[Listener, ...] = (Listener("PLAINTEXT", Address("127.0.0.1", 9092)),)
    advertised_listeners: tuple[Listener, ...] = ()
    """By name; a listener that is not here advertises the address it is bound to."""
    insecure: bool = False
    """A listener without authentication may be bound beyond the loopback interface."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    auto_create_topics: bool = True
    delete_topics: bool = True

    socket_request_bytes_max: int = 100 * 1024**2
    socket_send_buffer_bytes: int | None = 100 * 1024
    socket_receive_buffer_bytes: int | None = 100 * 1024
    socket_listen_backlog: int = 50
    max_connections: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    connections_max_idle_ms: int | None = 10 * 60 * 1000
    fetch_bytes_max: int = 55 * 1024**2
    fetch_session_slots: int = 1000

    open_files_max: int | None = None
    """Segment and index files kept open at once; None takes a share of the process's limit."""
    retention_check_interval_ms: int = 5 * 60 * 1000
    flush_scheduler_interval_ms: int | None = None
    """How often logs are looked at for a due flush.ms; None means never, as nothing is due."""
    recovery_point_checkpoint_interval_ms: int = 60_000
    log_start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    initial_task_delay_ms: int = 30_000
    producer_id_expiration_check_interval_ms: int = 10 * 60 * 1000
