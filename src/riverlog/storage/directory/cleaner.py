"""The cleaner of a node: picks the dirtiest log, has a pass made over it in a thread, and looks again.

Lives on the event loop; a pass's steps run on an executor. A log whose content stands in the way (a
batch that has rotted) is set aside until the next start, with an error in the log and a metric, so that the
others get their turn; a full disk or a log that changed meanwhile is simply tried again later.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from typing import Final, NamedTuple

from riverlog.model.clock import Clock
from riverlog.model.config.cleaner_config import CleanerConfig
from riverlog.model.errors import DamagedLogError, DiskFullError, StorageError
from riverlog.model.executor import Executor
from riverlog.model.ids import TopicPartition
from riverlog.model.metrics import Metrics
from riverlog.storage.cleaning.cleaning import Bounds, CalledOffError, Cleaning
from riverlog.storage.cleaning.pace import Pace
from riverlog.storage.cleaning.plan import Cleanable, examine
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.log.log import Log

_logger = logging.getLogger(__name__)
THREADS_MAX: Final = 64
_PAUSE_MIN_S: Final = 0.01
_UNSEEN_PER_LOOK: Final = 100
_LOOK_AGAIN_S: Final = 300.0
"""A closed log becomes due by time or by another config only, which is seen so much later at most."""


class Candidate(NamedTuple):
    directory: LogDirectory
    log: Log
    cleanable: Cleanable


class Cleaner:
    def __init__(
        self,
        directories: Callable[[], Iterable[LogDirectory]],
        config: Callable[[], CleanerConfig],
        *,
        executor: Executor,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """`config` is asked before each pass, so that what was altered takes effect."""
        self._directories = directories
        self._config = config
        self._clock = clock
        self._pace = Pace(clock)
        self._executor = executor
        self._passes: dict[Log, Cleaning] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._set_aside: dict[Log, str] = {}
        # When a pass over a log may be tried again.
        self._postponed: dict[Log, float] = {}
        # Closed logs that are to be looked at, a few at a time: all at the start, compacted ones again.
        self._unseen: deque[tuple[LogDirectory, TopicPartition]] = deque()
        self._look_again_s = clock.monotonic_s() + _LOOK_AGAIN_S
        self._task: asyncio.Task[None] | None = None
        self._read_bytes = metrics.counter("riverlog_cleaner_read_bytes_total")
        self._written_bytes = metrics.counter("riverlog_cleaner_written_bytes_total")
        self._passes_done = metrics.counter("riverlog_cleaner_passes_total")
        metrics.gauge("riverlog_cleaner_dirty_ratio_max", self.dirty_ratio_max)
        metrics.gauge("riverlog_cleaner_uncleanable_partitions", lambda: len(self.set_aside))
        metrics.gauge(
            "riverlog_cleaner_uncleanable_bytes", lambda: sum(log.size_bytes for log in self.set_aside)
        )

    @property
    def set_aside(self) -> dict[Log, str]:
        """The logs that cannot be cleaned, and why."""
        self._set_aside = {log: why for log, why in self._set_aside.items() if log.is_online}
        return self._set_aside

    def is_to_be_cleaned(self, log: Log) -> bool:
        """Whether a pass over an open log is under way, due, or cannot be made."""
        if log in self._passes or log in self._set_aside:
            return True
        return self._task is not None and examine(log, self._clock.wall_ms()).is_due(log.config)

    def dirty_ratio_max(self) -> float:
        return max((each.cleanable.dirty_ratio for each in self._compacted()), default=0.0)

    def start(self) -> None:
        if self._config().is_enabled:
            self._unseen.extend(
                (each, partition) for each in self._directories() for partition in each.partitions()
            )
            self._task = asyncio.create_task(self._run(), name="cleaner")

    async def close(self) -> None:
        """Call off what is under way; the logs are as they were, or clean up to some segment."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for cleaning in self._passes.values():
            cleaning.is_called_off = True
        self._closing.set()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def clean_what_is_due(self) -> None:
        """Make every pass that is due now, also if its turn would come later; return when they are done."""
        if self._task is None:
            return
        self._look_again()
        while True:
            self._open_unseen()
            self._begin_passes(self._config())
            if not self._running and not self._unseen:
                return
            if self._running:
                await asyncio.wait(self._running)
            await asyncio.sleep(0)

    async def _run(self) -> None:
        while True:
            config = self._config()
            self._pace.bytes_per_second = config.bytes_per_second_max
            pause_s = max(config.backoff_ms / 1000, _PAUSE_MIN_S)
            try:
                self._open_unseen()
                self._begin_passes(config)
            except Exception:
                _logger.exception("Looking for logs to clean failed; it is tried again in %.1f s", pause_s)
            if self._running:
                await asyncio.wait(self._running, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(pause_s)

    def _begin_passes(self, config: CleanerConfig) -> None:
        free = min(config.threads, THREADS_MAX) - len(self._running)
        if free <= 0:
            return
        now_s = self._clock.monotonic_s()
        self._postponed = {log: until for log, until in self._postponed.items() if until > now_s}
        due = [each for each in self._compacted() if self._is_next(each)]
        due.sort(key=lambda each: each.cleanable.dirty_ratio, reverse=True)
        for candidate in due[:free]:
            task = asyncio.create_task(
                self._clean(candidate, config), name=f"cleaning {candidate.log.directory}"
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _look_again(self) -> None:
        self._look_again_s = self._clock.monotonic_s() + _LOOK_AGAIN_S
        self._unseen.extend(
            (each, log) for each in self._directories() for log in each.logs.closed_to_clean()
        )

    def _open_unseen(self) -> None:
        if not self._unseen and self._clock.monotonic_s() >= self._look_again_s:
            self._look_again()
        now_ms = self._clock.wall_ms()
        for _ in range(min(_UNSEEN_PER_LOOK, len(self._unseen))):
            directory, partition = self._unseen.popleft()
            if directory.is_online:
                directory.upkeep.open_to_clean(partition, lambda log: examine(log, now_ms).is_due(log.config))

    def _compacted(self) -> Iterable[Candidate]:
        now_ms = self._clock.wall_ms()
        for directory in self._directories():
            for log in directory.opened():
                if log.config.is_compacted and log.is_online:
                    yield Candidate(directory, log, examine(log, now_ms))

    def _is_next(self, candidate: Candidate) -> bool:
        log = candidate.log
        is_waiting = log in self._passes or log in self._set_aside or log in self._postponed
        return not is_waiting and not log.replacement.is_moving and candidate.cleanable.is_due(log.config)

    async def _clean(self, candidate: Candidate, config: CleanerConfig) -> None:
        directory, log, cleanable = candidate
        threads = max(config.threads, 1)
        bounds = Bounds(config.map_bytes // threads, config.map_load_factor, config.buffer_bytes // threads)
        cleaning = Cleaning(log, cleanable, bounds=bounds, now_ms=self._clock.wall_ms())
        self._passes[log] = cleaning
        before_bytes = log.size_bytes
        try:
            await self._run_steps(cleaning)
            await self._off_loop(directory.begin_cleaner_checkpoint())
            self._passes_done.add()
            _logger.info("%s: cleaned, %d bytes are now %d", log.directory, before_bytes, log.size_bytes)
        except (CalledOffError, StorageError):
            self._postpone(log, config)  # Whoever took the log or its disk away has said so.
        except DiskFullError as error:
            self._postpone(log, config)
            _logger.warning("%s is not cleaned for now: %s", log.directory, error)
        except DamagedLogError as damage:
            directory.health.damage.note(damage)
            self._set_aside[log] = str(damage)
            _logger.error("%s cannot be cleaned and is set aside until the next start", log.directory)
        except Exception as error:
            self._set_aside[log] = str(error)
            _logger.exception(
                "%s cannot be cleaned and is set aside until the next start; `riverlog log verify` shows "
                "what is wrong with it",
                log.directory,
            )
        finally:
            del self._passes[log]
            self._read_bytes.add(cleaning.read_bytes)
            self._written_bytes.add(cleaning.written_bytes)

    def _postpone(self, log: Log, config: CleanerConfig) -> None:
        self._postponed[log] = self._clock.monotonic_s() + config.backoff_ms / 1000

    async def _run_steps(self, cleaning: Cleaning) -> None:
        paid_bytes = 0
        with closing(cleaning.steps()) as steps:
            for step in steps:
                await self._off_loop(step)
                wait_s = self._pace.spend(cleaning.io_bytes - paid_bytes)
                paid_bytes = cleaning.io_bytes
                if wait_s:
                    await self._wait(wait_s)

    async def _wait(self, seconds: float) -> None:
        """Shorter when the cleaner is closed meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def _off_loop(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, work)
