"""What time does to the logs of a data directory: retention, compaction, producers that expire, syncs.

Logs that nobody has opened are opened for it, and closed again. Not here: when to look (the caller passes the
time), compaction itself (`cleaner`), and files that are due to go (`deleted_files`).
"""

from collections.abc import Callable, Iterator

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import TopicPartition
from riverlog.storage.directory.directory_logs import DirectoryLogs
from riverlog.storage.directory.opened_logs import OpenedLogs
from riverlog.storage.log.log import Log


class Upkeep:
    def __init__(
        self, logs: DirectoryLogs, noted: OpenedLogs, config_for: Callable[[str], LogConfig]
    ) -> None:
        self._logs = logs
        self._noted = noted
        self._config_for = config_for
        self.on_closed_cut: Callable[[TopicPartition], None] = lambda partition: None

    def retention_steps(self, now_ms: int) -> Iterator[int]:
        """Apply retention to one log after the other; yields how many segments each lost.

        Logs that nobody has opened are opened for it and closed again, except empty ones, which a clean
        shutdown leaves without a recovery point."""
        logs = self._logs
        for log in list(logs.opened.values()):
            if log.is_online:
                yield log.cutting.apply_retention(now_ms)
        for partition in logs.closed():
            with logs.open_for_a_moment(partition) as log:
                if log.cutting.decide_retention(now_ms):
                    self._noted.note(str(partition))
                count = log.cutting.apply_retention(now_ms)
            if count:
                self.on_closed_cut(partition)
            yield count

    def expire_producers(self, now_ms: int) -> int:
        return sum(log.state.expire_producers(now_ms) for log in self._logs.opened.values())

    def flush_due(self, now_ms: int) -> list[Log]:
        """The logs whose `flush.ms` has passed; the caller has them synced."""
        return [log for log in self._logs.opened.values() if log.is_online and log.sync.is_due(now_ms)]

    def open_to_clean(self, partition: TopicPartition, is_due: Callable[[Log], bool]) -> Log | None:
        """A compacted log that is closed, if it is due; otherwise it stays so."""
        name, logs = str(partition), self._logs
        if not logs.is_closed(name) or not self._config_for(partition.topic).is_compacted:
            return None
        log = logs.open(name, partition)
        is_kept = False
        try:
            if is_due(log):
                logs.keep(name, log)
                is_kept = True
        finally:
            if not is_kept:
                logs.close(name, log)
        return log if is_kept else None
