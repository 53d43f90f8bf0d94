"""Opens the logs of a data directory with what the directory's checkpoints say of them."""

from collections.abc import Callable

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.directory.checkpoints import DirectoryCheckpoints
from riverlog.storage.directory.cleaner_offsets import CleanerOffsets
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment, LogToOpen


class LogOpener:
    __slots__ = ("_checkpoints", "_cleaned", "_environment", "_path", "config_for")

    def __init__(
        self,
        path: str,
        environment: LogEnvironment,
        config_for: Callable[[str], LogConfig],
        checkpoints: DirectoryCheckpoints,
        cleaned: CleanerOffsets,
    ) -> None:
        self.config_for = config_for
        self._path = path
        self._environment = environment
        self._checkpoints = checkpoints
        self._cleaned = cleaned

    def open(self, partition: TopicPartition, topic_id: TopicId | None, *, is_clean: bool) -> Log:
        """The caller has made sure that the directory is online."""
        name, checkpoints = str(partition), self._checkpoints
        to_open = LogToOpen(
            f"{self._path}/{name}",
            partition,
            self.config_for(partition.topic),
            topic_id=topic_id,
            recovery_point=checkpoints.recovery_points.get(name, 0),
            log_start_offset=checkpoints.log_starts.get(name, 0),
            high_watermark=checkpoints.high_watermarks.get(name, 0 if is_clean else None),
            cleaned_offset=self._cleaned.get(name),
            is_clean=is_clean,
        )
        log = Log(to_open, self._environment)
        log.state.set_high_watermark(to_open.high_watermark or 0)
        return log

    def open_future(self, name: str, partition: TopicPartition, topic_id: TopicId, *, is_clean: bool) -> Log:
        """A copy on its way in, of which no checkpoint speaks."""
        config = self.config_for(partition.topic)
        to_open = LogToOpen(f"{self._path}/{name}", partition, config, topic_id, is_clean=is_clean)
        return Log(to_open, self._environment)
