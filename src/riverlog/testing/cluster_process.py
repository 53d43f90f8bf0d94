"""A broker of a `Cluster` as a process of its own: `riverlog serve`, killed and held by real signals."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection
from typing import IO, Final

from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address
from riverlog.testing.broker import setting_text

_START_S: Final = 60.0
_STOP_S: Final = 60.0
_TOLD_MAX: Final = 20
_READY: Final = "riverlog ready on "


class ClusterProcess:
    def __init__(self, node_id: int, directory: str, settings: dict[str, object]) -> None:
        """`directory` is that of the cluster. The brokers share their metadata, if nothing else is set."""
        self.node_id = node_id
        self.data_dir = f"{directory}/broker-{node_id}"
        self.settings = {name: setting_text(value) for name, value in settings.items()}
        self.settings["node.id"] = str(node_id)
        if "zookeeper.connect" not in self.settings:
            self.settings["riverlog.shared.metadata.dir"] = f"{directory}/metadata"
        self._errors: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._is_paused = False

    @property
    def bootstrap_servers(self) -> str:
        if not self.is_running:
            raise RuntimeError(f"Broker {self.node_id} is not running.")
        return self._address

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Return when requests are taken. Raises `RiverlogError` with what it said if it cannot start."""
        self._errors = self._errors or tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        command = [sys.executable, "-m", "riverlog", "serve", "--data-dir", self.data_dir, "--supervised"]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        assert self._process.stdout is not None
        line = _line(self._process.stdout).decode()
        if not line.startswith(_READY):
            self.kill()
            raise RiverlogError(f"Broker {self.node_id} did not start:\n{self.errors()}")
        self._address = line.removeprefix(_READY).strip()
        # The port is known now, and kept, so that clients find the broker again after a restart.
        self.settings["listeners"] = f"PLAINTEXT://{self._address}"

    def errors(self) -> str:
        """What it has written to standard error since the first start."""
        if self._errors is None:
            return ""
        descriptor = self._errors.fileno()
        # Not by a seek: the broker writes where the file's position is, which it shares with us.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()

    def stop_process(self) -> None:
        """Cleanly, and keep what it has told."""
        self._end(signal.SIGTERM)

    def stop(self) -> None:
        self.stop_process()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def restart(self) -> None:
        self._end(signal.SIGTERM)
        self.start()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        if self.is_running:
            self._signal(signal.SIGSTOP)
            self._is_paused = True

    def resume(self) -> None:
        if self._is_paused:
            self._signal(signal.SIGCONT)
            self._is_paused = False

    def cut(self, unreachable: Collection[Address]) -> None:
        if unreachable:
            raise RiverlogError(
                "Connections between processes cannot be cut from here. Use Cluster() without processes=True."
            )

    def account(self) -> str:
        """What it said last; what it holds is in another process."""
        said = self.errors().splitlines()[-_TOLD_MAX:]
        return "\n".join([f"process {self.pid}", *said])

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            self.resume()
            self._process.wait(_STOP_S)
        self._is_paused = False
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process = None


def _line(stream: IO[bytes]) -> bytes:
    """The first line, or nothing if none comes in time."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return stream.readline() if poll.poll(_START_S * 1000) else b""
