"""Programs that tests start: with their errors kept for the message of a failure, and never left running.

`Process` is any program, `ServedProcess` is `riverlog serve`. Not here: commands that end by themselves and
whose outcome is all that a test wants (`tests/cli/running.py`).
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.waiting import is_readable

ROOT = Path(__file__).parents[1]
START_S = 60.0
END_S = 60.0
_READY = "riverlog ready on "


class Process:
    """Standard input and output are pipes of the test; standard error is a file."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        errors_to: IO[bytes] | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        """`errors_to` is for several programs that share a file, which stays open; `before_start` runs in the
        new process before the program does."""
        self._errors: IO[bytes] = errors_to or tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._owns_errors = errors_to is None
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=cwd,
            env=environment,
            preexec_fn=before_start,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def errors(self) -> str:
        """What it has written to standard error so far."""
        descriptor = self._errors.fileno()
        # Not by a seek: the program writes where the file's position is, which it shares with us.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self.process.wait(END_S)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.stdin, self.stdout):
            with suppress(BrokenPipeError):
                stream.close()
        if self._owns_errors:
            self._errors.close()


class ServedProcess(Process):
    """`riverlog serve`, ready or refused: `bootstrap_servers` tells which."""

    def __init__(
        self,
        data_dir: Path,
        *settings: str,
        listen: str = "127.0.0.1:0",
        log_level: str = "info",
        program: str = "riverlog",
        variables: Mapping[str, str] | None = None,
        errors_to: IO[bytes] | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        """`program` is the module to run: the real one, or one that holds it at some point."""
        command = [sys.executable, "-m", program, "serve", "--data-dir", str(data_dir), "--listen", listen]
        command += ["--log-level", log_level]
        for setting in settings:
            command += ["--set", setting]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")}
        super().__init__(
            command,
            cwd=data_dir.parent,
            environment={**inherited, "PYTHONPATH": str(ROOT), **(variables or {})},
            errors_to=errors_to,
            before_start=before_start,
        )
        is_heard = is_readable(self.stdout, START_S)
        self.ready_line = self.stdout.readline().decode() if is_heard else ""

    @property
    def bootstrap_servers(self) -> str:
        assert self.ready_line.startswith(_READY), f"not ready: {self.ready_line!r}\n{self.errors()}"
        return self.ready_line.removeprefix(_READY).strip()
