"""The cleaner of a node: which log comes next, how fast, and what it does about those it cannot clean."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from riverlog.model.config.cleaner_config import CleanerConfig
from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.node.adapters.system_clock import SystemClock
from riverlog.storage.cleaning.pace import Pace
from riverlog.storage.directory.cleaner import THREADS_MAX, Cleaner
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.compaction import CONFIG, close_segment, put
from tests.storage.logs import ManualClock, read_all
from tests.storage.scenarios import open_directory
from tests.waiting import until

QUICK = CleanerConfig(backoff_ms=10)


def directory_at(path: Path, config: LogConfig = CONFIG) -> LogDirectory:
    return LogDirectory.open(
        str(path),
        disk=LocalDisk(),
        clock=SystemClock(),
        node_id=NodeId(1),
        cluster_id="cluster",
        new_uuid=lambda: UUID(int=1),
        config_for=lambda topic: config if topic != "deleted" else LogConfig(),
    )


def table_in(directory: LogDirectory, topic: str, *, keys: int = 5, writes: int = 60) -> Log:
    partition = TopicPartition(topic, 0)
    directory.create(partition, TopicId(UUID(int=hash_of(topic))))
    log = directory.get(partition)
    assert log is not None
    for number in range(writes):
        put(log, (b"%d" % (number % keys), b"%d" % number * 20))
    close_segment(log)
    return log


def hash_of(topic: str) -> int:
    return int.from_bytes(topic.encode())


class CountedCleaner(Cleaner):
    """Counts how often it has looked for logs to clean."""

    looks = 0

    def _begin_passes(self, config: CleanerConfig) -> None:
        super()._begin_passes(config)
        self.looks += 1


def run_with(
    directory: LogDirectory,
    work: Callable[["CountedCleaner", InMemoryMetrics], Awaitable[None]],
    config: CleanerConfig = QUICK,
) -> None:
    async def run() -> None:
        metrics = InMemoryMetrics()
        cleaner = CountedCleaner(
            lambda: [directory],
            lambda: config,
            executor=ThreadPoolExecutor(THREADS_MAX),
            clock=SystemClock(),
            metrics=metrics,
        )
        cleaner.start()
        try:
            await work(cleaner, metrics)
        finally:
            await cleaner.close()

    asyncio.run(run())
    directory.close()


def test_every_compacted_log_is_cleaned_and_others_are_left_alone(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    tables = [table_in(directory, f"table-{number}") for number in range(3)]
    other = table_in(directory, "deleted")

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        assert metrics.value("riverlog_cleaner_dirty_ratio_max") == 1.0
        await until(lambda: metrics.value("riverlog_cleaner_passes_total") == 3)
        assert [len(read_all(log)) for log in tables] == [5, 5, 5]
        assert len(read_all(other)) == 60
        assert metrics.value("riverlog_cleaner_dirty_ratio_max") == 0.0
        assert metrics.value("riverlog_cleaner_read_bytes_total") > 0

    run_with(directory, work, QUICK._replace(threads=2))
    assert "table-2 0 60" in (tmp_path / "cleaner-offset-checkpoint").read_text()


def test_a_log_that_nobody_opens_after_a_start_is_cleaned_too(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    table_in(directory, "table")
    table_in(directory, "deleted")
    directory.close()
    again = directory_at(tmp_path)

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: metrics.value("riverlog_cleaner_passes_total") == 1)
        assert [log.topic_partition.topic for log in again.opened()] == ["table"]

    run_with(again, work)


def test_the_checkpoint_saves_the_next_start_from_cleaning_again(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    table_in(directory, "table")

    async def once(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: metrics.value("riverlog_cleaner_passes_total") == 1)

    run_with(directory, once)
    again = directory_at(tmp_path)
    log = again.get(TopicPartition("table", 0))
    assert log is not None
    assert log.state.cleaned_offset == 60
    again.delete(log.topic_partition)
    again.begin_cleaner_checkpoint()()
    assert "table" not in (tmp_path / "cleaner-offset-checkpoint").read_text()
    again.close()


@pytest.mark.parametrize(
    ("position", "data"),
    [(8, b"\x7f\xff\xff\xff"), (0, b"\x00\x00\x00\x00\x00\x00\x01\x00"), (16, b"\x00"), (70, b"\xff")],
)
def test_a_damaged_log_is_left_as_it_is_and_counted(tmp_path: Path, position: int, data: bytes) -> None:
    directory = directory_at(tmp_path)
    rotten = table_in(directory, "rotten")
    path = Path(rotten.segments[0].log.path)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)
    before = {each.name: each.read_bytes() for each in path.parent.glob("*.log")}

    async def work(cleaner: Cleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: metrics.value("riverlog_cleaner_uncleanable_partitions") == 1)
        assert f"{path} is damaged at byte 0 (offset 0)" in cleaner.set_aside[rotten]
        assert directory.health.damage.count == 1
        assert {each.name: each.read_bytes() for each in path.parent.glob("*.log")} == before

    run_with(directory, work)


def test_a_log_that_cannot_be_cleaned_is_tried_once(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    rotten = table_in(directory, "rotten")
    path = Path(rotten.segments[0].log.path)
    with path.open("r+b") as file:
        file.seek(80)
        file.write(b"\xff\xff")

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: metrics.value("riverlog_cleaner_uncleanable_partitions") == 1)
        read, looks = metrics.value("riverlog_cleaner_read_bytes_total"), cleaner.looks
        await until(lambda: cleaner.looks >= looks + 5)
        assert not cleaner._passes
        assert metrics.value("riverlog_cleaner_read_bytes_total") == read
        assert "CRC" in cleaner.set_aside[rotten]
        assert not list(path.parent.glob("*.cleaned"))

    run_with(directory, work)


def test_closing_calls_off_a_pass_that_would_take_long(tmp_path: Path) -> None:
    directory = directory_at(tmp_path, replace(CONFIG, segment_bytes=300_000))
    log = table_in(directory, "table", keys=3000, writes=3000)

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: bool(cleaner._passes))

    run_with(directory, work, QUICK._replace(bytes_per_second_max=1000.0))
    assert log.state.cleaned_offset < log.log_end_offset, "the pass was waited for"
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_nothing_is_cleaned_when_the_cleaner_is_off(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    log = table_in(directory, "table")

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        assert asyncio.all_tasks() == {asyncio.current_task()}, "somebody cleans"
        assert len(read_all(log)) == 60

    run_with(directory, work, QUICK._replace(is_enabled=False))


def test_an_unreadable_checkpoint_of_the_cleaner_is_begun_anew() -> None:
    disk = SimulatedDisk()
    directory = open_directory(disk, config=CONFIG)
    disk.open("/data/cleaner-offset-checkpoint", create=True).pwrite(b"nonsense", 0)
    directory.close()
    assert open_directory(disk, config=CONFIG).is_online


def test_the_pace_bounds_what_is_read_and_written_per_second() -> None:
    clock = ManualClock()
    pace = Pace(clock, 1_000_000)
    start_s = clock.monotonic_s()
    for _ in range(30):
        clock.now_ms += round(pace.spend(10_000) * 1000)
    assert clock.monotonic_s() - start_s == pytest.approx(0.3)
    clock.now_ms += 10_000
    start_s = clock.monotonic_s()
    for _ in range(30):
        clock.now_ms += round(pace.spend(10_000) * 1000)
    assert clock.monotonic_s() - start_s == pytest.approx(0.2), "0.1 s of an idle time is made up for"


def test_waiting_for_the_pace_ends_when_the_cleaner_is_closed(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    log = table_in(directory, "table")
    before_bytes = log.size_bytes

    async def work(cleaner: CountedCleaner, metrics: InMemoryMetrics) -> None:
        await until(lambda: any(each.read_bytes for each in cleaner._passes.values()))

    run_with(directory, work, QUICK._replace(bytes_per_second_max=1e-3))
    assert log.size_bytes == before_bytes


def test_the_settings_of_the_cleaner_are_kafkas() -> None:
    assert CleanerConfig.from_settings(combine([])) == CleanerConfig()._replace(
        bytes_per_second_max=1.7976931348623157e308
    )
    altered = CleanerConfig.from_settings(
        combine([from_mapping({"log.cleaner.threads": 2}, "test")]),
        dynamic_default={"log.cleaner.threads": "3", "log.cleaner.enable": "false"},
        dynamic_broker={"log.cleaner.backoff.ms": "7"},
    )
    assert (altered.threads, altered.backoff_ms, altered.is_enabled) == (3, 7, True)
