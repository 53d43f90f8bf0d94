"""``riverlog serve`` as a process of its own, with a limit on its memory, watched from outside."""

from __future__ import annotations

import contextlib
import pathlib
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

DATA_LIMIT_BYTES = 512 << 20
"""Of private memory; an idle broker takes a fraction, and no frame is a reason for more."""


@dataclass(slots=True)
class Served:
    bootstrap: str
    process: psutil.Process
    data: pathlib.Path
    log: pathlib.Path

    def memory_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def sockets(self) -> int:
        """How many descriptors are sockets; the loop has a few of its own beside those of clients."""
        return sum("socket:" in target for target in self._descriptors())

    def open_files(self) -> int:
        return sum(str(self.data) in target for target in self._descriptors())

    def partitions(self) -> int:
        return sum(path.is_dir() for path in self.data.iterdir())

    def _descriptors(self) -> list[str]:
        found = []
        for path in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed while we look
                found.append(str(path.readlink()))
        return found


@contextlib.contextmanager
def serve(directory: pathlib.Path, **settings: str) -> Iterator[Served]:
    """Runs until the block ends; then it must stop cleanly when asked to."""
    command = [sys.executable, "-m", "riverlog", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(directory / "data"), "--log-level", "warning"]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('_', '.')}={value}"]
    log = directory / "serve.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=_limit_memory
        )
        assert process.stdout is not None
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        try:
            line = process.stdout.readline()
            assert line.startswith("riverlog ready on "), (line, log.read_text())
            yield Served(line.split()[-1], psutil.Process(process.pid), directory / "data", log)
            process.terminate()
            assert process.wait(30) == 0, log.read_text()[-2000:]
        finally:
            watchdog.cancel()
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT_BYTES, DATA_LIMIT_BYTES))
