"""One runner for one project: a lock that ends with its process, and who holds it.

The lock is the operating system's, on a file beside the checkpoints, so that a killed runner leaves nothing
to clean up. It holds for one machine, or several that share the file system; the sink fences off a runner
that starts elsewhere.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from riverlog.spark.pipelines.failures import PipelineError

_LOCK: Final = "runner.lock"


class RunnerIsAlive(PipelineError):  # noqa: N818 - named for what it is
    """Another process runs this project."""


@dataclass(frozen=True, slots=True)
class Runner:
    pid: int
    mode: str
    master: str
    started_ms: int


@contextmanager
def held(directory: Path, mode: str, master: str) -> Iterator[Runner]:
    """Hold the project for the block. Raises `RunnerIsAlive` at once when it is taken."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _locked(descriptor):
            other = _read(directory / _LOCK)
            who = f"process {other.pid}, `{other.mode}` on {other.master}" if other else "another process"
            raise RunnerIsAlive(
                f"this project is being run already, by {who}",
                remedy="stop that one first (kill -TERM), or look at it with `riverlog pipeline status`",
            )
        runner = Runner(os.getpid(), mode, master, int(time.time() * 1000))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(runner)).encode(), 0)
        yield runner
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Tried a few times: somebody who only looks who runs the project holds it for a moment."""
    for pause_s in (0.05, 0.2, 0.0):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause_s)
        else:
            return True
    return False


def alive(directory: Path) -> Runner | None:
    """Who runs the project now."""
    path = directory / _LOCK
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path)
    finally:
        os.close(descriptor)
    return None


def _read(path: Path) -> Runner | None:
    try:
        return Runner(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
