"""Data that is not in the page cache: found out without waiting, read by a thread, sent whole."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from riverlog.broker.net.cold_reads import ColdReader
from riverlog.model.disk import FileSlice
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.storage.disk.local import LocalDisk, LocalFile
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient


def evict(path: Path) -> bool:
    """Ask the kernel to forget a file's pages; whether it did, as it does where the file is on a disk."""
    descriptor = os.open(path, os.O_RDONLY)
    file = LocalFile(str(path), descriptor)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return not file.is_warm(0, max(file.size(), 1))


def test_what_was_just_written_is_warm(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789" * 1000)
    file = LocalDisk().open(str(path))
    assert file.is_warm(0, 10_000)
    assert file.read_if_warm(10, 5) == b"5678901234"
    assert file.read_if_warm(10, 9_995) is None, "past the end of the file nothing is there to read"


def test_a_thread_warms_what_is_cold(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    content = os.urandom(3_000_000)
    path.write_bytes(content)
    evict(path)
    file = LocalDisk().open(str(path))

    async def main() -> None:
        with ThreadPoolExecutor(1) as thread:
            await ColdReader(thread).warm(FileSlice(file, 1_000_000, 1_500_000))
        assert file.is_warm(1_000_000, 1_500_000)
        assert file.read_if_warm(8000, 1_000_000) == content[1_000_000:1_008_000]

    asyncio.run(main())


def test_a_fetch_of_evicted_segments_returns_every_record() -> None:
    with Broker(log_segment_bytes=2_000_000) as broker, RawClient(broker) as client:
        client.create_topic("history")
        for number in range(20):
            batch = build_batch([(1_700_000_000_000, b"%d" % number, os.urandom(500_000), ())])
            assert client.produce("history", batch).base_offset == number
        offset = 0
        were_cold = False
        while offset < 20:
            evicted = [evict(path) for path in Path(broker.data_dir, "history-0").glob("*.log")]
            were_cold = were_cold or all(evicted)
            limits = {"max_bytes": 3_000_000, "partition_max_bytes": 3_000_000}
            records = client.fetch("history", offset, **limits).records
            assert isinstance(records, bytes)
            for _, header in walk(records):
                assert header.base_offset == offset
                offset += 1
        cold_reads = broker.node.metrics.value("riverlog_cold_reads")  # type: ignore[attr-defined]
        assert cold_reads > 0 or not were_cold


def test_segments_that_were_found_on_disk_are_brought_in_to_be_checked_without_holding_others_up(
    tmp_path: Path,
) -> None:
    with Broker(data_dir=str(tmp_path), log_segment_bytes=2_000_000) as broker, RawClient(broker) as client:
        client.create_topic("history")
        for number in range(60):
            batch = build_batch([(1_700_000_000_000, b"%d" % number, os.urandom(100_000), ())])
            assert client.produce("history", batch).base_offset == number
    evicted = [evict(path) for path in (tmp_path / "history-0").glob("*.log")]
    with Broker(data_dir=str(tmp_path), log_segment_bytes=2_000_000) as broker, RawClient(broker) as client:
        offset = 0
        while offset < 60:
            records = client.fetch("history", offset, max_wait_ms=60_000).records
            assert isinstance(records, bytes)
            found = [header.base_offset for _, header in walk(records)]
            assert found == list(range(offset, offset + len(found)))
            assert found, "the fetch is answered when there is something, and not before"
            offset += len(found)
        cold_reads = broker.node.metrics.value("riverlog_cold_reads")  # type: ignore[attr-defined]
        assert cold_reads > 0 or not all(evicted)
