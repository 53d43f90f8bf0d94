"""`riverlog serve` as a process that is killed, frozen and started again on the same port and data."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.raw_client import RawClient
from tests.processes import ServedProcess


class Server:
    def __init__(self, directory: Path, *settings: str, program: str = "riverlog") -> None:
        """`program` is the module to run: the real one, or one that holds it at some point."""
        self.directory = directory
        self._settings = settings
        self._program = program
        self._listen = "127.0.0.1:0"
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._started = ExitStack()
        self.starts = 0
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        return self._listen

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def hold_file(self) -> Path:
        """While it is there, `held_markers` writes no markers."""
        return self.directory / "hold"

    def start(self) -> None:
        """Return when requests are taken."""
        self.directory.mkdir(exist_ok=True)
        process = ServedProcess(
            self.directory / "data",
            *self._settings,
            listen=self._listen,
            log_level="warning",
            program=self._program,
            variables={"DELIVERY_HOLD_FILE": str(self.hold_file)},
            errors_to=self._errors,
        )
        with ExitStack() as starting:
            self._process = starting.enter_context(process)
            self._listen = process.bootstrap_servers
            self._started = starting.pop_all()
        self.starts += 1

    def kill(self) -> None:
        self._process.kill()
        self._started.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def freeze(self) -> None:
        self._process.freeze()

    def thaw(self) -> None:
        self._process.thaw()

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
        """Of all starts."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()
        self._errors.close()
