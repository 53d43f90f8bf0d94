"""A ZooKeeper server for a test, from the jars that PySpark carries: only Java has to be installed.

One server, for a cluster of processes that is to run as it does between hosts. Not an ensemble: what happens
when servers of ZooKeeper fail is tested elsewhere.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from riverlog.model.errors import RiverlogError

_START_S: Final = 60.0
_STOP_S: Final = 30.0
_LOOK_S: Final = 0.02
_NEEDED: Final = ("zookeeper", "slf4j-api", "log4j-", "netty-", "metrics-core", "snappy-java", "commons-io")
_MAIN: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_JAVA: Final = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN")


class ZooKeeperServer:
    def __init__(self, directory: str) -> None:
        """`directory` is made, and is not removed here."""
        self._directory = Path(directory)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._address = ("127.0.0.1", 0)

    @property
    def connect(self) -> str:
        """For `zookeeper.connect`."""
        return f"{self._address[0]}:{self._address[1]}"

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Return when it serves. Raises `RiverlogError` where Java or the jars are not there."""
        java, jars = shutil.which("java"), _jars()
        if java is None or not jars:
            raise RiverlogError(
                "A ZooKeeper server needs Java and PySpark's jars (pip install pyspark). Or name one that "
                'runs: Cluster(processes=True, zookeeper="127.0.0.1:2181").'
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        self._address = ("127.0.0.1", _free_port())
        configuration = self._directory / "zoo.cfg"
        configuration.write_text(
            f"tickTime=500\ndataDir={self._directory}\nclientPort={self._address[1]}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"
        )
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process = subprocess.Popen(
            [java, *_JAVA, "-cp", ":".join(jars), _MAIN, str(configuration)],
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )
        deadline_s = time.monotonic() + _START_S
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self._errors.seek(0)
                told = self._errors.read().decode(errors="replace")
                self.stop()
                raise RiverlogError(f"ZooKeeper did not start:\n{told}")
            time.sleep(_LOOK_S)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _serves(self) -> bool:
        with suppress(OSError), socket.create_connection(self._address, 1) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.recv(4096)
        return False


def _jars() -> list[str]:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return []
    found = sorted((Path(spec.origin).parent / "jars").glob("*.jar"))
    return [str(path) for path in found if path.name.startswith(_NEEDED)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
