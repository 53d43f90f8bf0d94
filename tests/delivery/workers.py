"""Client processes as a test sees them: started, listened to, told to go on, killed."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

DEADLINE_S = 60.0
_ROOT = Path(__file__).parents[2]


class WorkerError(AssertionError):
    """A worker ended that nobody killed, or is stuck."""


class Worker:
    """A module of `tests.delivery` that runs as a process of its own."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None, **options: object) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"tests.delivery.{module}", json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT), **(environment or {})},
        )
        self._told: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def next(self, deadline_s: float = DEADLINE_S) -> Mapping[str, Any]:
        """What the worker tells next."""
        try:
            told = self._told.get(timeout=deadline_s)
        except queue.Empty:
            raise WorkerError(f"nothing told for {deadline_s} s\n{self._errors()}") from None
        if told is None:
            raise WorkerError(f"the worker ended with {self.process.wait()}\n{self._errors()}")
        return told

    def wait_for(self, *points: str) -> Mapping[str, Any]:
        """The next thing told, which must be one of these."""
        told = self.next()
        assert told["at"] in points, f"expected {points}, the worker is at {told}"
        return told

    def tell(self, **answer: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(answer).encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def finish(self) -> None:
        """Wait for a worker that has been told to end."""
        code = self.process.wait(DEADLINE_S)
        assert code == 0, f"the worker ended with {code}\n{self._errors()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self._listener.join(DEADLINE_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._stderr.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self._told.put(json.loads(line))
        self._told.put(None)

    def _errors(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode()[-4000:]


def until(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Return when the condition holds; fail when it does not in time."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not after {deadline_s} s: {what}"
        time.sleep(0.005)
