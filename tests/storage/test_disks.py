"""The real and the simulated disk behave alike; the simulated one also loses what a real one may lose."""

import errno
from pathlib import Path

import pytest

from riverlog.model.disk import Disk
from riverlog.storage.disk.local import LocalDisk
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk


@pytest.fixture(params=["local", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "local":
        return LocalDisk(), str(tmp_path)
    disk = SimulatedDisk()
    disk.make_directories("/place")
    return disk, "/place"


def test_what_is_written_is_read(place: tuple[Disk, str]) -> None:
    disk, root = place
    file = disk.open(f"{root}/file", create=True)
    assert file.pwrite(b"hello", 0) == 5
    assert file.pwrite(memoryview(b"p!")[:1], 7) == 1
    assert file.size() == disk.size(f"{root}/file") == 8
    assert file.pread(100, 0) == b"hello\0\0p"
    assert file.pread(2, 1) == b"el"
    assert file.pread(5, 100) == b""
    file.truncate(2)
    file.datasync()
    assert disk.read(f"{root}/file") == b"he"
    assert (file.is_warm(0, 2), file.is_warm(1, 2)) == (True, False), "a file ends where it ends"
    assert (file.read_if_warm(2, 0), file.read_if_warm(2, 1)) == (b"he", None)
    file.close()


def test_directories_names_and_renames(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directories(f"{root}/a/b")
    disk.make_directories(f"{root}/a/b")
    disk.open(f"{root}/a/b/file", create=True).pwrite(b"x", 0)
    assert disk.list(f"{root}/a") == ["b"]
    disk.rename(f"{root}/a", f"{root}/c")
    assert not disk.exists(f"{root}/a")
    assert disk.read(f"{root}/c/b/file") == b"x"
    disk.open(f"{root}/c/other", create=True)
    disk.rename(f"{root}/c/b/file", f"{root}/c/other")
    assert disk.read(f"{root}/c/other") == b"x"
    disk.sync_directory(f"{root}/c")
    disk.unlink(f"{root}/c/other")
    disk.unlink(f"{root}/c/other")
    assert sorted(disk.list(f"{root}/c")) == ["b"]
    disk.remove_tree(f"{root}/c")
    assert not disk.exists(f"{root}/c")
    assert disk.free_bytes(root) <= disk.total_bytes(root)


def test_what_is_not_there_is_an_error(place: tuple[Disk, str]) -> None:
    disk, root = place
    for attempt in (disk.open, disk.read, disk.size, disk.list, disk.sync_directory):
        with pytest.raises(FileNotFoundError):
            attempt(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/missing/file", create=True)


def test_a_lock_has_one_holder(place: tuple[Disk, str]) -> None:
    disk, root = place
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{root}/.lock")
    lock.release()
    disk.lock(f"{root}/.lock").release()


def crashed(seed: int) -> SimulatedDisk:
    """A synced and an unsynced write to a synced file, and a file whose entry was never synced."""
    disk = SimulatedDisk()
    file = disk.open("/file", create=True)
    file.pwrite(b"synced", 0)
    file.datasync()
    disk.sync_directory("/")
    file.pwrite(b"unsynced", 6)
    disk.open("/new", create=True)
    disk.crash(seed)
    return disk


def test_a_crash_keeps_what_was_synced_and_may_lose_or_tear_the_rest() -> None:
    outcomes = set()
    for seed in range(60):
        disk = crashed(seed)
        content = disk.read("/file")
        assert content.startswith(b"synced")
        outcomes.add((content, disk.exists("/new")))
    contents = {content for content, _ in outcomes}
    assert {b"synced", b"syncedunsynced"} < contents
    assert any(b"synced" < content < b"syncedunsynced" for content in contents)
    assert {exists for _, exists in outcomes} == {True, False}


def test_the_same_seed_gives_the_same_crash() -> None:
    for seed in range(20):
        assert crashed(seed).read("/file") == crashed(seed).read("/file")


def test_a_kill_keeps_everything_but_open_files() -> None:
    disk = SimulatedDisk()
    file = disk.open("/file", create=True)
    file.pwrite(b"x", 0)
    disk.kill()
    assert disk.read("/file") == b"x"
    with pytest.raises(OSError, match="has ended"):
        file.pread(1, 0)


def test_failures_come_when_they_were_asked_for() -> None:
    disk = SimulatedDisk(capacity_bytes=10)
    file = disk.open("/file", create=True)
    assert file.pwrite(b"0123456789abc", 0) == 10
    with pytest.raises(OSError, match="No space") as full:
        file.pwrite(b"x", 10)
    assert full.value.errno == errno.ENOSPC
    assert file.pwrite(b"over", 0) == 4
    disk.fail("sync", errno.EIO, after=1)
    file.datasync()
    with pytest.raises(OSError, match="Input/output"):
        file.datasync()
    file.datasync()
    disk.power_off_after = disk.operations + 1
    with pytest.raises(PowerOff):
        file.truncate(0)
    with pytest.raises(PowerOff):
        file.pread(1, 0)


def test_a_directory_that_is_dead_fails_for_ever_and_the_others_go_on() -> None:
    disk = SimulatedDisk()
    for name in ("/dead", "/dead-or-alive"):
        disk.make_directories(name)
        disk.open(f"{name}/file", create=True).pwrite(b"text", 0)
    file = disk.open("/dead/file")
    disk.die("/dead")
    with pytest.raises(OSError, match="Input/output error"):
        file.pread(4, 0)
    disk.kill()
    for operation in (
        lambda: disk.open("/dead/file"),
        lambda: disk.read("/dead/file"),
        lambda: disk.rename("/dead/file", "/dead/other"),
        lambda: disk.unlink("/dead/file"),
        lambda: disk.sync_directory("/dead"),
        lambda: disk.make_directories("/dead/new"),
    ):
        with pytest.raises(OSError, match="Input/output error"):
            operation()
    assert disk.read("/dead-or-alive/file") == b"text"
