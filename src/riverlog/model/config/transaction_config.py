"""`TransactionConfig`: what the transaction coordinator needs to know.

Defaults are Apache Kafka's, except that two-phase commit is on (docs/adr/0008).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from riverlog.model.config.settings import Settings


class TransactionConfig(NamedTuple):
    timeout_max_ms: int = 15 * 60 * 1000
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    is_two_phase_enabled: bool = True
    timeout_check_interval_ms: int = 10_000
    expiration_check_interval_ms: int = 60 * 60 * 1000
    log_partitions: int = 50
    log_replication_factor: int = 3
    log_min_insync_replicas: int = 2
    log_segment_bytes: int = 100 * 1024**2
    log_commit_timeout_ms: int = 30_000
    log_load_bytes: int = 5 * 1024**2
    add_retry_pause_ms: int = 20
    add_retry_max_ms: int = 100
    verifies_partitions: bool = True
    two_phase_warn_ms: int = 60 * 60 * 1000

    @classmethod
    def from_settings(cls, settings: Settings) -> "TransactionConfig":
        fields: dict[str, Any] = {name: settings.get(key) for name, key in TRANSACTION_FIELDS.items()}
        return cls(**fields)


TRANSACTION_FIELDS: Mapping[str, str] = {
    "timeout_max_ms": "transaction.max.timeout.ms",
    "id_expiration_ms": "transactional.id.expiration.ms",
    "is_two_phase_enabled": "transaction.two.phase.commit.enable",
    "timeout_check_interval_ms": "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "expiration_check_interval_ms": "transaction.remove.expired.transaction.cleanup.interval.ms",
    "log_partitions": "transaction.state.log.num.partitions",
    "log_replication_factor": "transaction.state.log.replication.factor",
    "log_min_insync_replicas": "transaction.state.log.min.isr",
    "log_segment_bytes": "transaction.state.log.segment.bytes",
    "log_commit_timeout_ms": "request.timeout.ms",
    "log_load_bytes": "transaction.state.log.load.buffer.size",
    "add_retry_pause_ms": "add.partitions.to.txn.retry.backoff.ms",
    "add_retry_max_ms": "add.partitions.to.txn.retry.backoff.max.ms",
    "verifies_partitions": "transaction.partition.verification.enable",
    "two_phase_warn_ms": "riverlog.2pc.warn.ms",
}

ALTERABLE = ("transaction.partition.verification.enable",)
