"""The processes that are measured: a real `riverlog serve`, and bare loops that show the machine's limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

# An installed package has its bytecode; a shell that forbids writing it would have every start compile anew.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_s(pid: int) -> float:
    """Processor time of another process in nanosecond steps, by the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


class Server:
    """A server process, with its processor time and memory as the system counts them."""

    def __init__(self, command: list[str]) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        self.ready_after_s = time.perf_counter() - started
        if " on " not in line:
            self.stop()
            raise RuntimeError(f"{command[0]} did not become ready; it said {line!r}")
        host, _, port = line.rpartition(" ")[2].rpartition(":")
        self.address = (host, int(port))
        self._counters = psutil.Process(self._process.pid)

    @property
    def cpu_s(self) -> float:
        return cpu_s(self._process.pid)

    @property
    def rss_mb(self) -> float:
        return float(self._counters.memory_info().rss) / 1e6

    @property
    def descriptors(self) -> int:
        return self._counters.num_fds()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def riverlog(data_dir: Path, **settings: str) -> Iterator[Server]:
    """`riverlog serve` on a free port; keyword names are config keys with underscores for dots."""
    command = [str(Path(sys.executable).with_name("riverlog")), "serve"]
    command += ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0"]
    for name, value in settings.items():
        command += ["--set", f"{name.replace('_', '.')}={value}"]
    with _running(command) as server:
        yield server


@contextmanager
def bare(loop: str, *arguments: str) -> Iterator[Server]:
    """One of the loops of `benchmarks.bare_loops`."""
    with _running([sys.executable, "-m", "benchmarks.bare_loops", loop, *arguments]) as server:
        yield server


@contextmanager
def _running(command: list[str]) -> Iterator[Server]:
    server = Server(command)
    try:
        yield server
    finally:
        server.stop()
