"""`ReplicaFetchConfig`: how a follower copies from its leaders. Defaults are Apache Kafka's."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from riverlog.model.config.settings import Settings


class ReplicaFetchConfig(NamedTuple):
    min_bytes: int = 1
    partition_bytes_max: int = 1024**2
    response_bytes_max: int = 10 * 1024**2
    wait_max_ms: int = 500
    backoff_ms: int = 1_000
    socket_timeout_ms: int = 30_000

    @classmethod
    def from_settings(cls, settings: Settings) -> "ReplicaFetchConfig":
        fields: dict[str, Any] = {name: settings.get(key) for name, key in REPLICA_FETCH_FIELDS.items()}
        return cls(**fields)


REPLICA_FETCH_FIELDS: Mapping[str, str] = {
    "min_bytes": "replica.fetch.min.bytes",
    "partition_bytes_max": "replica.fetch.max.bytes",
    "response_bytes_max": "replica.fetch.response.max.bytes",
    "wait_max_ms": "replica.fetch.wait.max.ms",
    "backoff_ms": "replica.fetch.backoff.ms",
    "socket_timeout_ms": "replica.socket.timeout.ms",
}
