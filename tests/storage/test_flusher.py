"""Group commit: one sync for all who wait, off the event loop."""

import asyncio
import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import StorageError
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.syncing import SyncTask
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import PARTITION, ManualClock, append, batch, open_log
from tests.waiting import loop_turns, until

TOPIC_ID = TopicId(UUID(int=7))


def open_directory(path: str) -> LogDirectory:
    return LogDirectory.open(
        path,
        disk=LocalDisk(),
        clock=ManualClock(),
        node_id=NodeId(1),
        cluster_id="cluster",
        new_uuid=lambda: UUID(int=1),
        config_for=lambda topic: LogConfig(segment_bytes=700),
    )


def test_all_who_wait_share_one_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        disk = SimulatedDisk()
        log = open_log(disk)
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        hold, run = threading.Event(), SyncTask.run

        def held(task: SyncTask) -> None:
            hold.wait(5)
            run(task)

        monkeypatch.setattr(SyncTask, "run", held)
        append(log, batch(b"first"))
        waiting = [flusher.flush_to(log.sync, 1)]
        for number in range(20):
            append(log, batch(b"%d" % number))
            waiting.append(flusher.flush_to(log.sync, log.log_end_offset))
        assert log.flushed_offset == 0
        assert not any(future.done() for future in waiting)
        hold.set()
        await asyncio.gather(*waiting)
        assert log.flushed_offset == 21
        # One sync for the first, one for the twenty that came while it ran.
        assert disk.counts["sync"] <= 2 + 3
        assert flusher.flush_to(log.sync, 21).done()
        await flusher.drain()

    asyncio.run(scenario())


def test_a_failed_sync_fails_everybody_and_is_not_retried() -> None:
    async def scenario() -> None:
        disk = SimulatedDisk()
        log = open_log(disk)
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        append(log, batch(b"a"))
        disk.fail("sync", errno.EIO)
        first, second = flusher.flush_to(log.sync, 1), flusher.flush_to(log.sync, 1)
        for waiting in (first, second):
            with pytest.raises(StorageError):
                await waiting
        syncs = disk.counts["sync"]
        with pytest.raises(StorageError):
            await flusher.flush_to(log.sync, 1)
        assert disk.counts["sync"] == syncs
        assert log.flushed_offset == 0
        await flusher.drain()

    asyncio.run(scenario())


def test_waiting_for_what_was_truncated_ends_in_an_error() -> None:
    async def scenario() -> None:
        log = open_log(SimulatedDisk())
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        append(log, batch(b"a"))
        append(log, batch(b"b"))
        waiting = flusher.flush_to(log.sync, 2)
        log.cutting.truncate_to(1)
        with pytest.raises(StorageError, match="truncated"):
            await waiting
        assert log.flushed_offset == 0
        await flusher.flush_to(log.sync, 1)
        assert log.flushed_offset == 1
        await flusher.drain()

    asyncio.run(scenario())


def test_a_roll_is_synced_and_checkpointed_off_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        flusher = Flusher(loop, executor=ThreadPoolExecutor(2))
        directory = open_directory(str(tmp_path / "data"))
        directory.environment.request_sync = flusher.request
        directory.rolls.run_blocking = lambda work: work()
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION)
        assert log is not None
        for _ in range(40):
            append(log, batch(b"x" * 100))
        await until(lambda: log.flushed_offset >= log.state.segments.active.base_offset)
        await flusher.drain()
        text = (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text()
        assert f"orders 0 {log.flushed_offset}" in text
        await flusher.drain()
        directory.close()
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()

    asyncio.run(scenario())


def test_rolls_of_many_logs_do_not_queue_a_checkpoint_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        directory = open_directory(str(tmp_path / "data"))
        waiting: list[Callable[[], None]] = []
        directory.environment.request_sync, directory.rolls.run_blocking = flusher.request, waiting.append
        logs = []
        for number in range(10):
            partition = TopicPartition("orders", number)
            directory.create(partition, TOPIC_ID)
            log = directory.get(partition)
            assert log is not None
            append(log, batch(b"x"))
            log.sync.roll()
            logs.append(log)
        await until(lambda: all(log.flushed_offset >= log.state.segments.active.base_offset for log in logs))
        await flusher.drain()
        assert len(waiting) == 1
        waiting.pop()()
        append(logs[0], batch(b"x"))
        logs[0].sync.roll()
        await flusher.drain()
        assert len(waiting) == 1, "after it has been written there may be another"
        waiting.pop()()
        text = (tmp_path / "data" / "recovery-point-offset-checkpoint").read_text()
        assert all(f"orders {number} {log.flushed_offset}" in text for number, log in enumerate(logs))
        await flusher.drain()
        directory.close()

    asyncio.run(scenario())


def test_a_partition_may_be_deleted_while_it_is_being_synced(tmp_path: Path) -> None:
    async def scenario() -> None:
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        directory = open_directory(str(tmp_path / "data"))
        directory.create(PARTITION, TOPIC_ID)
        log = directory.get(PARTITION)
        assert log is not None
        append(log, batch(b"a"))
        waiting = flusher.flush_to(log.sync, 1)
        directory.delete(PARTITION)
        await asyncio.gather(waiting, return_exceptions=True)
        assert directory.is_online
        await flusher.drain()
        directory.close()

    asyncio.run(scenario())


def test_draining_waits_for_a_sync_that_begins_as_another_ends() -> None:
    """Found by the simulator: the log was closed under the second sync."""

    async def scenario() -> None:
        log = open_log(SimulatedDisk())
        flusher = Flusher(asyncio.get_running_loop(), executor=ThreadPoolExecutor(2))
        append(log, batch(b"first"))
        first = flusher.flush_to(log.sync, 1)
        draining = asyncio.ensure_future(flusher.drain())
        await loop_turns()

        def again(_: object) -> None:
            append(log, batch(b"second"))
            flusher.request(log.sync)

        first.add_done_callback(again)
        await draining
        assert log.flushed_offset == 2

    asyncio.run(scenario())
