"""``riverlog serve`` as a process of its own, with a limit on its memory, watched from outside."""

from __future__ import annotations

import contextlib
import pathlib
import resource
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from tests.processes import ServedProcess

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
    log = directory / "serve.log"
    given = (f"{key.replace('_', '.')}={value}" for key, value in settings.items())
    with (
        log.open("w+b") as errors,
        ServedProcess(
            directory / "data", *given, log_level="warning", errors_to=errors, before_start=_limit_memory
        ) as served,
    ):
        yield Served(served.bootstrap_servers, psutil.Process(served.pid), directory / "data", log)
        assert served.stop() == 0, log.read_text()[-2000:]


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT_BYTES, DATA_LIMIT_BYTES))
