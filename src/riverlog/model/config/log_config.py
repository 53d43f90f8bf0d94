"""`LogConfig`: how one partition's log behaves, from a topic's overrides on top of the broker's settings.

Every default is Apache Kafka's, so that `LogConfig()` is a usable topic. Kafka's sentinels stop here: `None`
means without limit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from riverlog.model.config.definitions import BROKER_KEYS, TOPIC_KEYS
from riverlog.model.config.effective import BrokerLayers, topic_default
from riverlog.model.config.settings import Settings
from riverlog.model.config.values import Value, parse

DAY_MS = 24 * 60 * 60 * 1000
LONG_MAX = 2**63 - 1


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
    """Whose clock a record's timestamp is from."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


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
    def roll_ms(self) -> int:
        """Age at which a segment is closed: early enough for compaction to get at its records in time."""
        if self.max_compaction_lag_ms is None or not self.is_compacted:
            return self.segment_ms
        return min(self.segment_ms, self.max_compaction_lag_ms)

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

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
        topic_overrides: Mapping[str, str] | None = None,
    ) -> "LogConfig":
        """From what the node was started with and what was altered since: for all brokers, for this one, and
        for the topic. The maps hold values that were checked when they were set.
        """
        layers = BrokerLayers(settings.static, dynamic_default or {}, dynamic_broker or {})
        fields = {
            field.name: field.convert(topic_default(layers, TOPIC_KEYS[name]))
            for name, field in TOPIC_FIELDS.items()
            if name not in _OVERRIDE_ONLY
        }
        for name, attribute in BROKER_FIELDS.items():
            fields[attribute] = layers.value(BROKER_KEYS[name])
        return cls(**fields).with_overrides(topic_overrides or {})

    def with_overrides(self, overrides: Mapping[str, str]) -> "LogConfig":
        """The same with a topic's own settings; cheap where there are few. Unknown names are left out."""
        fields = {
            TOPIC_FIELDS[name].name: TOPIC_FIELDS[name].convert(parse(TOPIC_KEYS[name], overrides[name]))
            for name in TOPIC_FIELDS
            if name in overrides
        }
        return replace(self, **fields) if fields else self


class _Field(NamedTuple):
    """The attribute that a topic's key sets, and how its value gets there."""

    name: str
    convert: Callable[[Value], Any] = lambda value: value


def _unless_negative(value: Value) -> int | None:
    assert isinstance(value, int)
    return value if value >= 0 else None


def _unless_endless(value: Value) -> int | None:
    assert isinstance(value, int)
    return value if value < LONG_MAX else None


def _policies(value: Value) -> frozenset[CleanupPolicy]:
    assert isinstance(value, tuple)
    return frozenset(map(CleanupPolicy, value))


_OVERRIDE_ONLY = frozenset({"internal.segment.bytes"})
"""Keys without a default; the one for tests of small segments comes after segment.bytes and so wins."""

TOPIC_FIELDS: Mapping[str, _Field] = {
    "segment.bytes": _Field("segment_bytes"),
    "internal.segment.bytes": _Field("segment_bytes"),
    "segment.ms": _Field("segment_ms"),
    "segment.jitter.ms": _Field("segment_jitter_ms"),
    "segment.index.bytes": _Field("segment_index_bytes"),
    "index.interval.bytes": _Field("index_interval_bytes"),
    "retention.ms": _Field("retention_ms", _unless_negative),
    "retention.bytes": _Field("retention_bytes", _unless_negative),
    "cleanup.policy": _Field("cleanup_policies", _policies),
    "delete.retention.ms": _Field("delete_retention_ms"),
    "min.compaction.lag.ms": _Field("min_compaction_lag_ms"),
    "max.compaction.lag.ms": _Field("max_compaction_lag_ms", _unless_endless),
    "min.cleanable.dirty.ratio": _Field("min_cleanable_dirty_ratio"),
    "max.message.bytes": _Field("max_message_bytes"),
    "compression.type": _Field("compression_type", lambda value: CompressionType(str(value))),
    "compression.gzip.level": _Field("gzip_level"),
    "compression.lz4.level": _Field("lz4_level"),
    "compression.zstd.level": _Field("zstd_level"),
    "message.timestamp.type": _Field("timestamp_type", lambda value: TimestampType(str(value))),
    "message.timestamp.before.max.ms": _Field("timestamp_before_max_ms"),
    "message.timestamp.after.max.ms": _Field("timestamp_after_max_ms"),
    "flush.messages": _Field("flush_messages", _unless_endless),
    "flush.ms": _Field("flush_ms", _unless_endless),
    "file.delete.delay.ms": _Field("file_delete_delay_ms"),
    "preallocate": _Field("preallocate"),
    "min.insync.replicas": _Field("min_insync_replicas"),
    "unclean.leader.election.enable": _Field("unclean_leader_election"),
    "riverlog.acks.fsync": _Field("acks_fsync"),
    "riverlog.validate.records": _Field("validate_records"),
}

BROKER_FIELDS: Mapping[str, str] = {
    "producer.id.expiration.ms": "producer_id_expiration_ms",
    "riverlog.decompressed.max.bytes": "decompressed_bytes_max",
}
