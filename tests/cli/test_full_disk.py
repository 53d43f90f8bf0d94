"""What is said where the disk of a broker is full, at its start and while it is written to."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from riverlog.testing import Broker
from tests.cli.running import EXECUTABLE, CommandLine
from tests.node.faulty_disk import FaultyDisk

START_ON_A_SMALL_DISK = """
mount -t tmpfs -o size=300k small "$1" || exit 77
mkdir "$1/data"
head -c 400k /dev/zero > "$1/filler" 2> /dev/null
truncate -s "-$2" "$1/filler"
exec "$3" serve --data-dir "$1/data" --listen 127.0.0.1:0
"""
NO_MOUNT = 77


@pytest.mark.skipif(shutil.which("unshare") is None, reason="a small disk takes a mount of our own")
@pytest.mark.parametrize("left", ["0k", "12k", "60k"])
def test_a_start_on_a_full_disk_names_the_remedy(tmp_path: Path, left: str) -> None:
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", START_ON_A_SMALL_DISK, "sh", str(tmp_path), left, EXECUTABLE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if done.returncode == NO_MOUNT or "unshare" in done.stderr:
        pytest.skip("this machine lets nobody mount a disk")

    assert done.returncode == 1
    assert "No space left" in done.stderr or "the disk is full" in done.stderr
    assert "ree space" in done.stderr
    assert "internal error" not in done.stderr
    assert "backup" not in done.stderr, "nothing is damaged"


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.is_full = False


def test_producing_to_a_full_disk_names_the_remedy(disk: FaultyDisk) -> None:
    with Broker(disk=disk) as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
        disk.is_full = True
        refused = riverlog("produce", topic, "--timeout", "3", stdin="lost", code=5)
        unbegun = riverlog("produce", topic, "--transactional", "--timeout", "3", stdin="lost", code=1)
        disk.is_full = False
        riverlog.produce(topic, "kept")

        assert "free space there or shorten the retention" in refused.stderr
        assert "where the disk is full, free space there" in unbegun.stderr
        assert "check -b" not in refused.stderr, "the broker is there"
        assert "kept" in riverlog.consume(topic).stdout


def test_a_file_that_cannot_be_written_for_want_of_room_names_the_remedy(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [EXECUTABLE, "consume", topic, "--from", "start", "-e"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, **riverlog.environment},
        )

    assert done.returncode == 1
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert "try: free space" in done.stderr
