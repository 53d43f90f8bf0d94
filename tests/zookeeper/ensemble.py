"""A real ZooKeeper ensemble for a test: servers that it starts, kills, pauses and starts again.

The jars are those that PySpark carries, so nothing has to be installed but Java. Ticks are short, so that a
session can end within a test.
"""

import os
import shutil
import signal
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from tests.processes import Process
from tests.waiting import eventually

TICK_MS: Final = 100
START_S: Final = 60.0
_JARS: Final = Path(pyspark.__file__).parent / "jars"
_NEEDED: Final = ("zookeeper", "slf4j-api", "log4j-", "netty-", "metrics-core", "snappy-java", "commons-io")
_JAVA: Final = ("java", "-Xmx48m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN")
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class Ensemble:
    """`with Ensemble(directory) as ensemble`: three servers that serve."""

    def __init__(self, directory: Path, servers: int = 3) -> None:
        self._ports = _free_ports(3 * servers)
        self._directory = directory
        self._running: dict[int, Process] = {}
        self._stack = ExitStack()
        self.numbers = range(servers)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", self._ports[number]) for number in self.numbers]

    @property
    def servers(self) -> str:
        """As in `zookeeper.connect`."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def start(self, *numbers: int) -> None:
        """Those servers, or all; returns when they serve."""
        for number in numbers or self.numbers:
            command = [*_JAVA, "-cp", _class_path(), _MAIN, str(self._configuration(number))]
            process = Process(command, cwd=self._directory, environment=dict(os.environ))
            self._running[number] = self._stack.enter_context(process)
        for number in numbers or self.numbers:
            self.wait_for(number)

    def wait_for(self, number: int) -> None:
        process = self._running[number]
        eventually(
            lambda: self.serves(number), f"server {number} does not serve\n{process.errors()}", START_S
        )

    def serves(self, number: int) -> bool:
        with suppress(OSError), socket.create_connection(self.addresses[number], 1) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.recv(4096)
        return False

    def kill(self, *numbers: int) -> None:
        for number in numbers or self.numbers:
            self._running.pop(number).kill()

    def pause(self, *numbers: int) -> None:
        for number in numbers or self.numbers:
            self._running[number].process.send_signal(signal.SIGSTOP)

    def resume(self, *numbers: int) -> None:
        for number in numbers or self.numbers:
            self._running[number].process.send_signal(signal.SIGCONT)

    def wipe(self, *numbers: int) -> None:
        """Forget all that servers which do not run have kept."""
        for number in numbers or self.numbers:
            shutil.rmtree(self._directory / str(number))

    def _configuration(self, number: int) -> Path:
        directory = self._directory / str(number)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "myid").write_text(str(number))
        count = len(self.numbers)
        lines = [
            f"tickTime={TICK_MS}",
            "initLimit=100",
            "syncLimit=50",
            f"dataDir={directory}",
            f"clientPort={self._ports[number]}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr",
            "maxSessionTimeout=60000",
            "quorumListenOnAllIPs=false",
        ]
        if count > 1:
            lines += [
                f"server.{each}=127.0.0.1:{self._ports[count + each]}:{self._ports[2 * count + each]}"
                for each in self.numbers
            ]
        path = directory / "zoo.cfg"
        path.write_text("\n".join(lines) + "\n")
        return path

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _class_path() -> str:
    return ":".join(str(path) for path in sorted(_JARS.glob("*.jar")) if path.name.startswith(_NEEDED))


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
