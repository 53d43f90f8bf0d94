"""`riverlog serve` as a real process, for tests that kill it."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self


class ServedProcess:
    def __init__(self, data_dir: Path, *settings: str, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "riverlog", "serve", "--data-dir", str(data_dir), "--listen", listen]
        for setting in settings:
            command += ["--set", setting]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")}
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._stderr, env=environment, cwd=data_dir.parent
        )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline().decode()

    @property
    def bootstrap_servers(self) -> str:
        prefix = "riverlog ready on "
        assert self.ready_line.startswith(prefix), f"not ready: {self.ready_line!r} {self.stderr()}"
        return self.ready_line.removeprefix(prefix).strip()

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._stderr.close()
