"""Gauges of the data directories, which keep no metrics of their own."""

from collections.abc import Sequence

from riverlog.model.metrics import Metrics
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.open_files import OpenFiles


def measure_storage(
    metrics: Metrics, directories: Sequence[LogDirectory], open_files: OpenFiles, *, unusable_count: int
) -> None:
    """`unusable_count` of further directories could not be opened."""
    metrics.gauge("riverlog_open_files", lambda: open_files.count)
    metrics.gauge("riverlog_open_logs", lambda: sum(each.open_count for each in directories))
    metrics.gauge("riverlog_partitions_on_disk", lambda: sum(len(each) for each in directories))
    metrics.gauge(
        "riverlog_log_directories_offline",
        lambda: unusable_count + sum(not each.is_online for each in directories),
    )
    metrics.gauge("riverlog_log_damages", lambda: sum(each.health.damage.count for each in directories))
    metrics.gauge("riverlog_disk_full_errors", lambda: sum(each.health.full_count for each in directories))
