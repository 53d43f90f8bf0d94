"""The bound on open files: kept, fair to hot files, and harmless to whoever holds one."""

import os
from pathlib import Path

from riverlog.model.config.slices import LogConfig
from riverlog.storage.disk.damage import DamageReports
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.disk.open_files import Files, LazyFile, OpenFiles
from tests.storage.logs import append, batch, open_log, slice_bytes, values


def lazy_files(tmp_path: Path, count: int, limit: int) -> tuple[OpenFiles, list[LazyFile]]:
    open_files = OpenFiles(limit)
    files = Files(LocalDisk(), open_files, DamageReports())
    return open_files, [LazyFile(str(tmp_path / str(number)), files) for number in range(count)]


def open_descriptors(directory: Path) -> int:
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(1 for link in links if os.path.islink(link) and os.readlink(link).startswith(str(directory)))


def test_no_more_files_are_open_than_the_bound_allows(tmp_path: Path) -> None:
    open_files, lazy = lazy_files(tmp_path, 50, 5)
    for file in lazy:
        file.get(create=True).pwrite(b"x", 0)
        assert open_files.count <= 5
        assert open_descriptors(tmp_path) <= 5
    assert all(file.get().pread(1, 0) == b"x" for file in lazy)


def test_a_file_in_use_outlives_its_eviction(tmp_path: Path) -> None:
    _, lazy = lazy_files(tmp_path, 10, 2)
    held = lazy[0].get(create=True)
    held.pwrite(b"held", 0)
    for file in lazy[1:]:
        file.get(create=True)
    assert lazy[0].file is None
    assert held.pread(4, 0) == b"held"
    assert open_descriptors(tmp_path) == 3
    del held
    assert open_descriptors(tmp_path) == 2


def test_a_hot_file_stays_open(tmp_path: Path) -> None:
    _, lazy = lazy_files(tmp_path, 20, 4)
    hot = lazy[0].get(create=True)
    for file in lazy[1:]:
        file.get(create=True)
        assert lazy[0].get() is hot


def test_a_log_of_many_segments_works_with_two_open_files(tmp_path: Path) -> None:
    open_files = OpenFiles(2)
    config = LogConfig(segment_bytes=600, index_interval_bytes=100)
    log = open_log(LocalDisk(), directory=str(tmp_path / "log-0"), config=config, open_files=open_files)
    for number in range(60):
        append(log, batch(b"value-%d" % number * 3))
    assert len(log.segments) > 5
    assert [offset for offset, _ in values(log)] == list(range(60))
    assert open_descriptors(tmp_path) <= 2
    read = log.read(0, max_bytes=100, end_offset=60)
    values(log)
    assert slice_bytes(read)
    log.close()
    del read
    assert open_descriptors(tmp_path) == 0
