"""Client processes as a test sees them: started, listened to, told to go on, killed."""

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from tests.processes import END_S, ROOT, Process
from tests.waiting import eventually, looks

DEADLINE_S = END_S
_ANSWER_S = 5.0


class WorkerError(AssertionError):
    """A worker ended that nobody killed, or is stuck."""


class Worker(Process):
    """A module of `tests.delivery` that runs as a process of its own."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None, **options: object) -> None:
        super().__init__(
            [sys.executable, "-m", f"tests.delivery.{module}", json.dumps(options)],
            cwd=ROOT,
            environment={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        )
        self._told: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def next(self, deadline_s: float = DEADLINE_S) -> Mapping[str, Any]:
        """What the worker tells next."""
        try:
            told = self._told.get(timeout=deadline_s)
        except queue.Empty:
            self._ask_where_it_is()
            raise WorkerError(f"nothing told for {deadline_s} s\n{self._last_errors()}") from None
        if told is None:
            raise WorkerError(f"the worker ended with {self.wait()}\n{self._last_errors()}")
        return told

    def wait_for(self, *points: str) -> Mapping[str, Any]:
        """The next thing told, which must be one of these."""
        told = self.next()
        assert told["at"] in points, f"expected {points}, the worker is at {told}"
        return told

    def tell(self, **answer: object) -> None:
        self.stdin.write(json.dumps(answer).encode() + b"\n")
        self.stdin.flush()

    def finish(self) -> None:
        """Wait for a worker that has been told to end."""
        code = self.wait()
        assert code == 0, f"the worker ended with {code}\n{self._last_errors()}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self._listener.join(DEADLINE_S)
        super().__exit__(kind, error, trace)

    def _listen(self) -> None:
        for line in self.stdout:
            if line.endswith(b"\n"):
                self._told.put(json.loads(line))
        self._told.put(None)

    def _ask_where_it_is(self) -> None:
        """Have it write that down (`control`), for the account of what went wrong."""
        said = len(self.errors())
        self.process.send_signal(signal.SIGUSR1)
        for _ in looks(_ANSWER_S):
            if len(self.errors()) != said or self.process.poll() is not None:
                return

    def _last_errors(self) -> str:
        return self.errors()[-4000:]


def until(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Return when the condition holds; fail when it does not in time."""
    eventually(condition, f"not so: {what}", deadline_s)
