"""`riverlog serve` as a process that is killed, frozen and started again on the same port and data."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.raw_client import RawClient
from tests.waiting import is_readable

_START_S = 60.0
_ROOT = Path(__file__).parents[2]


class Server:
    def __init__(self, directory: Path, *settings: str, program: str = "riverlog") -> None:
        """`program` is the module to run: the real one, or one that holds it at some point."""
        self.directory = directory
        self._settings = settings
        self._program = program
        self._listen = "127.0.0.1:0"
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.starts = 0
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        return self._listen

    @property
    def hold_file(self) -> Path:
        """While it is there, `held_markers` writes no markers."""
        return self.directory / "hold"

    def start(self) -> None:
        """Return when requests are taken."""
        self.directory.mkdir(exist_ok=True)
        data_dir = self.directory / "data"
        command = [sys.executable, "-m", self._program, "serve", "--listen", self._listen]
        command += ["--data-dir", str(data_dir), "--log-level", "warning"]
        for setting in self._settings:
            command += ["--set", setting]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")}
        environment |= {"PYTHONPATH": str(_ROOT), "DELIVERY_HOLD_FILE": str(self.hold_file)}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._stderr, env=environment, cwd=self.directory
        )
        self._listen = self._read_address()
        self.starts += 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(_START_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def transaction_state(self, transactional_id: str) -> str:
        """As the coordinator has it."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        with RawClient(self) as client:
            reply = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
        state: str = reply.transaction_states[0].transaction_state
        return state

    def unread_bytes(self) -> int:
        """What clients have sent and the frozen broker has not read."""
        port = int(self._listen.rpartition(":")[2])
        total = 0
        with open("/proc/net/tcp") as table:
            for line in list(table)[1:]:
                _, local, _, state, queues, *_ = line.split()
                if int(local.partition(":")[2], 16) == port and state == "01":
                    total += int(queues.partition(":")[2], 16)
        return total

    def errors(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        self._stderr.close()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        ready = is_readable(self.process.stdout, _START_S)
        line = self.process.stdout.readline().decode() if ready else ""
        prefix = "riverlog ready on "
        assert line.startswith(prefix), f"the broker did not start: {line!r}\n{self.errors()}"
        return line.removeprefix(prefix).strip()
