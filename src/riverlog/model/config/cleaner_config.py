"""`CleanerConfig`: what compaction may use, over all logs of a node. Defaults are Apache Kafka's.

What decides about a single topic (ratio, lags, how long tombstones stay) is in `LogConfig`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from riverlog.model.config.settings import Settings


class CleanerConfig(NamedTuple):
    is_enabled: bool = True
    threads: int = 1
    backoff_ms: int = 15_000
    map_bytes: int = 128 * 1024**2
    """Memory for keys, over all threads."""
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024
    """Memory for reading and writing, over all threads."""
    bytes_per_second_max: float = float("inf")

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> "CleanerConfig":
        settings = settings.altered({**(dynamic_default or {}), **(dynamic_broker or {})}, only=ALTERABLE)
        fields: dict[str, Any] = {name: settings.get(key) for name, key in CLEANER_FIELDS.items()}
        return cls(**fields)


CLEANER_FIELDS: Mapping[str, str] = {
    "is_enabled": "log.cleaner.enable",
    "threads": "log.cleaner.threads",
    "backoff_ms": "log.cleaner.backoff.ms",
    "map_bytes": "log.cleaner.dedupe.buffer.size",
    "map_load_factor": "log.cleaner.io.buffer.load.factor",
    "buffer_bytes": "log.cleaner.io.buffer.size",
    "bytes_per_second_max": "log.cleaner.io.max.bytes.per.second",
}
ALTERABLE = frozenset(CLEANER_FIELDS.values()) - {"log.cleaner.enable"}
