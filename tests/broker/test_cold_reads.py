"""Data that is not in the page cache: found out without waiting, read by a thread, sent whole."""

import asyncio
import os
from pathlib import Path

from riverlog.broker.cold_reads import ColdReader, is_warm, read_if_warm
from riverlog.model.disk import FileSlice
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.storage.local_disk import LocalDisk
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient


def evict(path: Path) -> bool:
    """Ask the kernel to forget a file's pages; whether it did, as it does where the file is on a disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return not is_warm(descriptor, 0, max(os.fstat(descriptor).st_size, 1))
    finally:
        os.close(descriptor)


def test_what_was_just_written_is_warm(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789" * 1000)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert is_warm(descriptor, 0, 10_000)
        assert read_if_warm(descriptor, 5, 10) == b"5678901234"
        assert read_if_warm(descriptor, 9_995, 10) is None, (
            "past the end of the file nothing is there to read"
        )
    finally:
        os.close(descriptor)


def test_a_thread_warms_what_is_cold(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    content = os.urandom(3_000_000)
    path.write_bytes(content)
    evict(path)
    file = LocalDisk().open(str(path))
    descriptor = file.fileno()

    async def main() -> None:
        reader = ColdReader()
        try:
            await reader.warm(FileSlice(file, 1_000_000, 1_500_000))
        finally:
            reader.close()
        assert is_warm(descriptor, 1_000_000, 1_500_000)
        assert read_if_warm(descriptor, 1_000_000, 8000) == content[1_000_000:1_008_000]

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
