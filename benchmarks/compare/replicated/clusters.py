"""The clusters that are compared: how each is started, and what the system says of its processes.

A cluster is a `Target` whose first broker is its address. Not here: what is asked of it (`asking_all`).
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

import psutil

from benchmarks import load
from benchmarks.compare import brokers
from benchmarks.compare.aims import OURS, SHARED, THEIRS
from benchmarks.compare.brokers import JVM_DEFAULT, SETTINGS, STOP_S, Kafka, Target, free_port
from benchmarks.compare.case import NotMeasurableError
from benchmarks.servers import ENVIRONMENT, cpu_s
from riverlog.testing.zookeeper import ZooKeeperServer

COUNT: Final = 3
SESSION_MS: Final = 6_000
"""After how long a broker that says nothing is taken for dead, in every cluster that goes by a time."""
_CLUSTER_ID: Final = "benchmarkAAAAAAAAAAAAA"
_START_S: Final = 90.0
_PLACES: Final = ("broker-*", "broker-*/logs", "data/broker-*")
_READY: Final = b"riverlog ready on "


class Cluster(Target, ABC):
    """Brokers that run, by their numbers."""

    def __init__(self, name: str, about: str, directory: Path, count: int = COUNT) -> None:
        self.ports = {number: free_port() for number in range(1, count + 1)}
        super().__init__(name, about, ("127.0.0.1", self.ports[1]))
        self.root = directory
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def cpu_s(self) -> float:
        return sum(cpu_s(pid) for pid in self._pids())

    @property
    def rss_mb(self) -> float:
        """Of each broker, with its share of what they need beside them."""
        return (
            sum(float(psutil.Process(pid).memory_info().rss) for pid in self._pids()) / 1e6 / len(self.ports)
        )

    def address_of(self, number: int) -> load.Address:
        return "127.0.0.1", self.ports[number]

    def _pids(self) -> list[int]:
        return [*(self.pid(number) for number in self.ports), *self._beside()]

    def files_of(self, topic: str) -> list[str]:
        """The names of the directories of its partitions, on any broker."""
        places = [place for pattern in _PLACES for place in self.root.glob(pattern) if place.is_dir()]
        return [name for place in places for name in os.listdir(place) if name.startswith(f"{topic}-")]

    def kill(self, number: int) -> None:
        """As the machine would: nothing is flushed or said."""
        pid = self.pid(number)
        process = psutil.Process(pid)
        process.send_signal(signal.SIGKILL)
        self._wait(number, process)

    def terminate(self, number: int) -> None:
        """Returns when it has ended cleanly."""
        process = psutil.Process(self.pid(number))
        process.send_signal(signal.SIGTERM)
        self._wait(number, process)

    @property
    def restarts_by_itself(self) -> bool:
        """Whether somebody of the cluster starts a broker that ended."""
        return False

    @property
    def last_words(self) -> str:
        """What each process said last, for when something does not come about."""
        said = {path.name: path.read_text(errors="replace").strip() for path in self.root.glob("*.log")}
        return "; ".join(f"{name}: {(text.splitlines() or [''])[-1]}" for name, text in sorted(said.items()))

    @abstractmethod
    def launch(self) -> None:
        """Start everything; the brokers may not be ready yet. Whatever happens, `stop` is to be called."""

    @abstractmethod
    def pid(self, number: int) -> int: ...

    @abstractmethod
    def start(self, number: int) -> None:
        """Returns as soon as the process exists."""

    @abstractmethod
    def _beside(self) -> list[int]:
        """The processes that the brokers need and that are none."""

    def _wait(self, number: int, process: psutil.Process) -> None:
        process.wait(STOP_S)


class _Started(Cluster):
    """Each broker is a process that is started here."""

    def __init__(self, name: str, about: str, directory: Path) -> None:
        super().__init__(name, about, directory)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def launch(self) -> None:
        for number in self.ports:
            self.start(number)

    def pid(self, number: int) -> int:
        return self._processes[number].pid

    def start(self, number: int) -> None:
        with (self.root / f"{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                self.command(number), stdout=log, stderr=log, env=ENVIRONMENT
            )

    @abstractmethod
    def command(self, number: int) -> list[str]: ...

    def _wait(self, number: int, process: psutil.Process) -> None:
        self._processes[number].wait(STOP_S)

    def stop(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_S)


class WithZooKeeper(_Started):
    """As between hosts. The server is the smallest there is: one process, from PySpark's jars."""

    def __init__(self, directory: Path, extra: dict[str, str] | None = None) -> None:
        about = f"{COUNT} x `riverlog serve` and one ZooKeeper server, which counts as theirs"
        super().__init__(OURS, about, directory)
        self._settings = SETTINGS | {"zookeeper.session.timeout.ms": str(SESSION_MS)} | (extra or {})
        self._zookeeper = ZooKeeperServer(str(directory / "zookeeper"))

    def launch(self) -> None:
        self._zookeeper.start()
        super().launch()

    def command(self, number: int) -> list[str]:
        settings = self._settings | {"node.id": str(number), "zookeeper.connect": self._zookeeper.connect}
        command = [str(Path(sys.executable).with_name("riverlog")), "serve"]
        command += ["--data-dir", str(self.root / f"broker-{number}")]
        command += ["--listen", f"127.0.0.1:{self.ports[number]}", "--log-level", "warning"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def start_and_wait(self, number: int) -> float:
        """How long it takes until it says that it is ready."""
        log = self.root / f"{number}.log"
        before, started_s = log.read_bytes().count(_READY), time.perf_counter()
        self.start(number)
        while log.read_bytes().count(_READY) == before:
            if time.perf_counter() - started_s > _START_S:
                raise NotMeasurableError(f"broker {number} did not become ready")
            time.sleep(0.01)
        return time.perf_counter() - started_s

    def _beside(self) -> list[int]:
        assert self._zookeeper.pid is not None
        return [self._zookeeper.pid]

    def stop(self) -> None:
        super().stop()
        self._zookeeper.stop()


class Supervised(Cluster):
    """`riverlog serve --brokers`: a supervisor, and a store that the brokers of one host share."""

    def __init__(self, directory: Path, count: int = COUNT) -> None:
        about = f"`riverlog serve --brokers {count}`, whose supervisor counts as theirs"
        super().__init__(SHARED, about, directory, count)

    def launch(self) -> None:
        command = [str(Path(sys.executable).with_name("riverlog")), "serve"]
        command += ["--brokers", str(len(self.ports)), "--data-dir", str(self.root / "data")]
        command += ["--listen", "127.0.0.1:0", "--log-level", "warning"]
        for key, value in SETTINGS.items():
            command += ["--set", f"{key}={value}"]
        ready = self.root / "ready"
        with (self.root / "all.log").open("ab") as log, ready.open("wb") as line:
            self.process = subprocess.Popen(command, stdout=line, stderr=log, env=ENVIRONMENT)
        self.ports = dict(enumerate(_ports_in(ready), 1))
        self.address = self.address_of(1)

    @property
    def restarts_by_itself(self) -> bool:
        return True

    def pid(self, number: int) -> int:
        """Of the process that it has now."""
        assert self.process is not None
        mark, deadline_s = f"node.id={number}", time.monotonic() + _START_S
        while time.monotonic() < deadline_s:
            for child in psutil.Process(self.process.pid).children():
                try:
                    if any(mark in word for word in child.cmdline()):
                        return child.pid
                except psutil.NoSuchProcess:
                    continue
            time.sleep(0.01)
        raise NotMeasurableError(f"broker {number} of {self.name} does not run")

    def start(self, number: int) -> None:
        """The supervisor has done it already."""

    def _beside(self) -> list[int]:
        assert self.process is not None
        return [self.process.pid]


class ApacheKafka(_Started):
    """Brokers that are the controllers as well, so that there are three processes of either."""

    def __init__(self, directory: Path, kafka: Kafka) -> None:
        super().__init__(THEIRS, f"{COUNT} brokers that are controllers, too; {kafka.about}", directory)
        self._kafka = kafka

    def launch(self) -> None:
        voted = {number: free_port() for number in self.ports}
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in voted.items())
        for number, port in voted.items():
            self._format(number, voters, port)
        super().launch()

    def _format(self, number: int, voters: str, controller_port: int) -> None:
        directory = self.root / f"broker-{number}"
        directory.mkdir(parents=True)
        lines = {
            **brokers.kraft(directory, self.ports[number], controller_port),
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "broker.session.timeout.ms": str(SESSION_MS),
            **SETTINGS,
        }
        config = directory / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = ["java", "-cp", self._kafka.class_path, "kafka.tools.StorageTool", "format"]
        command += ["-t", _CLUSTER_ID, "-c", str(config)]
        subprocess.run(command, check=True, capture_output=True)

    def command(self, number: int) -> list[str]:
        config = self.root / f"broker-{number}" / "server.properties"
        return ["java", *JVM_DEFAULT, "-cp", self._kafka.class_path, "kafka.Kafka", str(config)]

    def _beside(self) -> list[int]:
        return []


def cluster_of(target: Target) -> Cluster:
    if not isinstance(target, Cluster):
        raise NotMeasurableError("needs a cluster that the harness starts itself")
    return target


def _ports_in(ready: Path) -> list[int]:
    """Of the line that says where all of them serve."""
    deadline_s = time.monotonic() + _START_S
    while not ready.read_text().endswith("\n"):
        if time.monotonic() > deadline_s:
            raise NotMeasurableError("`riverlog serve --brokers` did not become ready")
        time.sleep(0.02)
    addresses = ready.read_text().strip().rpartition(" ")[2].split(",")
    return [int(each.rpartition(":")[2]) for each in addresses]


def remove(cluster: Cluster) -> None:
    shutil.rmtree(cluster.root, ignore_errors=True)
