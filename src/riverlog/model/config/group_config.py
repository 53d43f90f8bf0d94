"""`GroupConfig`: what the group coordinator needs to know. Defaults are Apache Kafka's."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from riverlog.model.config.settings import Settings
from riverlog.model.errors import ConfigError

_MINUTE_MS = 60_000
_INT_MAX = 2**31 - 1
_CODEC_MAX = 4
_ASSIGNORS = frozenset({"uniform", "range"})


class GroupConfig(NamedTuple):
    """Committed offsets, and groups of the classic and of the consumer protocol."""

    offset_metadata_bytes_max: int = 4096
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 10 * _MINUTE_MS
    offsets_commit_timeout_ms: int = 5_000
    offsets_load_bytes: int = 5 * 1024**2
    offsets_topic_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 * 1024**2
    offsets_topic_codec: int = 0

    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 30 * _MINUTE_MS
    initial_rebalance_delay_ms: int = 3_000
    group_size_max: int = _INT_MAX

    protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_session_timeout_ms: int = 45_000
    consumer_group_size_max: int = _INT_MAX
    consumer_migration_policy: str = "bidirectional"
    consumer_regex_refresh_interval_ms: int = 10 * _MINUTE_MS
    consumer_assignment_interval_ms: int = 1_000

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * _MINUTE_MS

    @classmethod
    def from_settings(cls, settings: Settings) -> "GroupConfig":
        fields: dict[str, Any] = {name: settings.get(key) for name, key in GROUP_FIELDS.items()}
        if not 0 <= fields["offsets_topic_codec"] <= _CODEC_MAX:
            name = GROUP_FIELDS["offsets_topic_codec"]
            raise ConfigError(
                f"{settings.origin(name)}: {name} is {fields['offsets_topic_codec']}. "
                "Give 0 for none, 1 for gzip, 2 for snappy, 3 for lz4 or 4 for zstd."
            )
        _check_assignors(settings, fields["consumer_assignors"])
        return cls(**fields)


def _check_assignors(settings: Settings, names: tuple[str, ...]) -> None:
    if names and _ASSIGNORS.issuperset(names):
        return
    name = GROUP_FIELDS["consumer_assignors"]
    raise ConfigError(
        f"{settings.origin(name)}: {name} is {','.join(names)!r}. Give one or both of uniform and range; "
        "assignors of your own cannot be loaded."
    )


GROUP_FIELDS: Mapping[str, str] = {
    "offset_metadata_bytes_max": "offset.metadata.max.bytes",
    "offsets_retention_minutes": "offsets.retention.minutes",
    "offsets_retention_check_interval_ms": "offsets.retention.check.interval.ms",
    "offsets_commit_timeout_ms": "offsets.commit.timeout.ms",
    "offsets_load_bytes": "offsets.load.buffer.size",
    "offsets_topic_partitions": "offsets.topic.num.partitions",
    "offsets_topic_replication_factor": "offsets.topic.replication.factor",
    "offsets_topic_segment_bytes": "offsets.topic.segment.bytes",
    "offsets_topic_codec": "offsets.topic.compression.codec",
    "session_timeout_min_ms": "group.min.session.timeout.ms",
    "session_timeout_max_ms": "group.max.session.timeout.ms",
    "initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "group_size_max": "group.max.size",
    "protocols": "group.coordinator.rebalance.protocols",
    "consumer_assignors": "group.consumer.assignors",
    "consumer_heartbeat_interval_ms": "group.consumer.heartbeat.interval.ms",
    "consumer_session_timeout_ms": "group.consumer.session.timeout.ms",
    "consumer_group_size_max": "group.consumer.max.size",
    "consumer_migration_policy": "group.consumer.migration.policy",
    "consumer_regex_refresh_interval_ms": "group.consumer.regex.refresh.interval.ms",
    "consumer_assignment_interval_ms": "group.consumer.assignment.interval.ms",
}
