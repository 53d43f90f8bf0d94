"""What a node does every so often, and how often; compaction is due when the logs say so."""

from collections.abc import Iterator
from typing import Final

from riverlog.controller.controller import Controller
from riverlog.metadata.follower import MetadataFollower
from riverlog.node.duties import Duty
from riverlog.node.serving import Serving
from riverlog.node.surroundings import Surroundings
from riverlog.replication.idle_logs import IdleLogs
from riverlog.storage.directory.cleaner import THREADS_MAX, Cleaner
from riverlog.storage.directory.data_directories import DataDirectories

_REMOVAL_MS: Final = 5_000
_FLUSH_LOOK_MS: Final = 1_000
_PRODUCER_EXPIRY_MIN_MS: Final = 1_000


def own_duties(
    given: Surroundings,
    serving: Serving,
    directories: DataDirectories,
    idle_logs: IdleLogs,
    idle_looks_ms: int,
    controller: Controller,
) -> Iterator[Duty]:
    config = given.config
    yield Duty("closing idle connections", serving.idle_scan_ms, serving.connections.close_idle)
    yield Duty(
        "retention",
        config.retention_check_interval_ms,
        directories.apply_retention,
        config.initial_task_delay_ms,
    )
    yield Duty("closing idle logs", idle_looks_ms, idle_logs.close_some)
    yield Duty("removing deleted files", _REMOVAL_MS, directories.remove_deleted)
    yield Duty("checkpoints", config.high_watermark_checkpoint_interval_ms, directories.write_checkpoints)
    yield Duty(
        "expiring producers",
        max(config.producer_id_expiration_check_interval_ms, _PRODUCER_EXPIRY_MIN_MS),
        directories.expire_producers,
    )
    if config.rebalances_leaders and not given.is_alone:
        interval_ms = config.leader_imbalance_check_interval_s * 1000
        yield Duty("balancing leaders", interval_ms, controller.rebalance_leaders)
    flush_ms = config.flush_scheduler_interval_ms
    yield Duty("flushing", min(flush_ms or _FLUSH_LOOK_MS, _FLUSH_LOOK_MS), directories.flush_due)


def cleaner_of(given: Surroundings, follower: MetadataFollower, directories: DataDirectories) -> Cleaner:
    return Cleaner(
        lambda: directories.online,
        lambda: given.live_config.cleaner_config(follower.image),
        executor=given.executor("cleaner", THREADS_MAX),
        clock=given.clock,
        metrics=given.metrics,
    )
