"""Names are held by one living process each, and handed on with what was done under them."""

import errno
import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riverlog.spark.sink import held_names
from riverlog.spark.sink.held_names import HeldName, held_name, is_held
from tests.processes import ROOT, Process
from tests.spark.sink_parts import in_another_process
from tests.waiting import is_readable

real_directory = held_names.names_directory
HOLDER = """
import os, sys
from riverlog.spark.sink.held_names import held_name
held = held_name("run", "query")
held.use_slot(int(sys.argv[1]))
if "fork" in sys.argv:
    reader, writer = os.pipe()
    if os.fork() == 0:
        if "idle" not in sys.argv:
            assert held_name("run", "query").name != held.name
        os.write(writer, b".")
        sys.stdin.readline()
        os._exit(0)
    assert os.read(reader, 1) == b"."
print(held.name, held.epochs, flush=True)
sys.stdin.readline()
"""


@contextmanager
def holder(names: Path, epoch: int, *more: str) -> Iterator[tuple[Process, str]]:
    """Another process, which holds the name that it tells until it ends; also the epochs of its slots."""
    environment = {**os.environ, "TMPDIR": str(names.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLDER, str(epoch), *more]
    with Process(command, cwd=names.parent, environment=environment) as process:
        assert is_readable(process.stdout, 60), process.errors()
        yield process, process.stdout.readline().decode().strip()


def test_the_name_of_a_process_that_was_killed_goes_to_the_next_with_its_slots(names: Path) -> None:
    with holder(names, 7) as (process, first):
        process.kill()
    with holder(names, 8) as (process, second):
        process.kill()
    with holder(names, 8) as (_, third):
        assert held_name("run", "query").name != third.split()[0]
    name = first.split()[0]
    assert [first, second, third] == [f"{name} [7]", f"{name} [8]", f"{name} [8, 8]"]


def test_a_process_that_is_only_stopped_keeps_its_name(names: Path) -> None:
    with holder(names, 7) as (process, told):
        process.freeze()
        assert held_name("run", "query").name != told.split()[0]
        process.thaw()


@pytest.mark.parametrize("child", ["busy", "idle"])
def test_a_fork_of_the_holder_takes_another_name_and_does_not_keep_the_first(names: Path, child: str) -> None:
    """As a function of the user's forks that has processes of its own, none of which knows of names."""
    with holder(names, 7, "fork", child) as (process, told):
        # The child lives on.
        process.kill()
        assert held_name("run", "query").name == told.split()[0]


def test_what_is_for_another_purpose_has_another_name(names: Path) -> None:
    assert held_name("run", "query").name != held_name("lanes", "query").name
    assert held_name("run", "query") is held_name("run", "query")


def test_a_name_whose_file_is_deleted_is_not_held_twice(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = held_name("run", "query")
    for path in names.iterdir():
        path.unlink()
    with in_another_process(monkeypatch):
        assert held_name("run", "query").name != first.name


def test_a_file_that_is_deleted_while_it_is_taken_is_left_alone(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = held_name("run", "query").name
    held_name("run", "query").release()
    flock = fcntl.flock

    def too_late(file: int, how: int) -> None:
        for path in names.glob(f"*-{first}"):
            path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with in_another_process(monkeypatch):
        assert held_name("run", "query").name != first


def test_where_no_file_can_be_written_each_process_has_names_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    monkeypatch.setattr(held_names, "names_directory", real_directory)
    assert real_directory() is None
    first = held_name("run", "query")
    assert [first.use_slot(1), first.use_slot(1), first.use_slot(2)] == [0, 1, 0]
    with in_another_process(monkeypatch):
        assert held_name("run", "query").name != first.name


def test_where_there_is_no_directory_for_temporary_files_names_are_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_usable() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    monkeypatch.setattr(held_names, "names_directory", real_directory)
    assert held_name("run", "query").use_slot(0) == 0


def test_a_host_that_does_not_tell_of_its_start_has_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is there and cannot be read, also by root.
    monkeypatch.setattr(held_names, "_BOOT_ID", tmp_path)
    held_names._host.cache_clear()
    try:
        first = held_name("run", "query").name
        with in_another_process(monkeypatch):
            assert held_name("run", "query").name != first
    finally:
        held_names._host.cache_clear()


def test_where_files_cannot_be_locked_none_stays_and_none_is_open(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot_lock(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    held_name("run", "query").release()
    held_names._held.clear()
    there = list(names.iterdir())
    monkeypatch.setattr(fcntl, "flock", cannot_lock)
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    assert held_name("run", "query").use_slot(0) == 0
    assert held_name("run", "another").use_slot(0) == 0
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    assert list(names.iterdir()) == there


def test_a_copy_of_a_file_is_no_name(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a directory that was brought back, or of a container that was made from another one."""
    first = held_name("run", "query")
    first.use_slot(1)
    [path] = names.iterdir()
    copied = path.read_bytes()
    path.rename(names.parent / "elsewhere")
    path.write_bytes(copied)
    with in_another_process(monkeypatch):
        assert held_name("run", "query").name != first.name


def test_a_note_that_is_cut_off_is_none(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = held_name("run", "query")
    first = held.name
    monkeypatch.setattr(os, "pwrite", lambda *_: 3)
    assert held.use_slot(5) == 0
    assert held.name != first


def test_a_directory_that_is_a_link_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(held_names, "names_directory", real_directory)
    assert real_directory() == tmp_path / f"riverlog-spark-{os.getuid()}"
    (tmp_path / f"riverlog-spark-{os.getuid()}").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"riverlog-spark-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    held_name("run", "query").use_slot(0)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_name_under_which_nothing_can_be_noted_is_given_up(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = held_name("run", "query")
    assert held.use_slot(3) == 0
    first = held.name

    def disk_is_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", disk_is_full)
        assert [held.use_slot(3), held.use_slot(3)] == [0, 1]
    assert held.name != first
    with in_another_process(monkeypatch):
        assert held_name("run", "query") == HeldName(first, [3], _file=held_name("run", "query")._file)


def test_a_process_that_serves_many_queries_has_few_files_open(names: Path) -> None:
    for number in range(200):
        held_name("run", f"query-{number}").use_slot(number)
    assert not is_held("run", "query-0")
    assert is_held("run", "query-199")
    assert len(held_names._held) <= 64
    first = held_name("run", "query-0")
    assert (first.epochs, first.first_epoch_here) == ([0], None)


def test_what_nobody_has_used_for_a_day_is_deleted_and_what_is_held_is_not(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = held_name("run", "held")
    with in_another_process(monkeypatch):
        held_name("run", "old")
        held_name("run", "new")
    long_ago = time.time() - 25 * 3600
    for path in names.iterdir():
        if not path.name.endswith(held_name("run", "new").name):
            os.utime(path, (long_ago, long_ago))
    count = len(list(names.iterdir()))
    held_name("run", "another")
    assert len(list(names.iterdir())) == count
    with in_another_process(monkeypatch):
        assert held_name("run", "held").name != held.name


def test_a_new_name_is_found_by_others_only_when_it_is_locked(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that starts at the same moment would lock it first, and both would have it."""
    seen: list[str] = []
    real_flock = fcntl.flock

    def flock(file: int, operation: int) -> None:
        seen.append(name_of(names, file))
        real_flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    first = held_name("run", "query")
    assert [each[0] for each in seen] == ["."], "no name that is looked for begins with a dot"
    [path] = names.iterdir()
    assert path.name.endswith(first.name)


def name_of(names: Path, file: int) -> str:
    """That of an open file."""
    [path] = [path for path in names.iterdir() if path.stat().st_ino == os.fstat(file).st_ino]
    return path.name
