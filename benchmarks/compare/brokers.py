"""The brokers that are compared: how each is started, and what the system says of its process.

All run on the same filesystem with the same settings; the two of Apache Kafka differ in their JVM only. A
broker that runs elsewhere already has no files for us and, unless it listens on this machine, no process.
"""

import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from benchmarks import load
from benchmarks.compare.failing import CompareError
from benchmarks.servers import ENVIRONMENT, cpu_s

ROOT = Path(__file__).parents[2]
STOP_S = 60.0
# Short waits before deleted files go and before a dirty log is cleaned, so that no case pays for the one
# before it; no wait for more members before a group forms.
SETTINGS = {
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
}
_ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# What its own start script passes: heap of 1 GB, G1 with these goals.
_G1 = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
JVM_DEFAULT = ("-Xms1G", "-Xmx1G", *_G1)
# A heap that fits one small node: half of the memory (128 MB of it go to the cleaner's map at once), and
# regions in which a request of 1 MB is an ordinary object, not a humongous one that G1 keeps apart.
JVM_TUNED = ("-Xms512M", "-Xmx512M", "-XX:G1HeapRegionSize=4M", *_G1)


class KafkaUnavailableError(CompareError):
    """Apache Kafka cannot be had on this machine; the message says why."""


class Flavour(Protocol):
    """A broker that we can start."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    def prepare(self, directory: Path, port: int) -> None: ...
    def command(self, directory: Path, port: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Riverlog:
    name: str = "riverlog"
    about: str = "`riverlog serve`, CPython, uvloop"

    def prepare(self, directory: Path, port: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)

    def command(self, directory: Path, port: int) -> list[str]:
        command = [str(Path(sys.executable).with_name("riverlog")), "serve"]
        command += ["--data-dir", str(directory), "--listen", f"127.0.0.1:{port}"]
        for key, value in SETTINGS.items():
            command += ["--set", f"{key}={value}"]
        return command


@dataclass(frozen=True, slots=True)
class Kafka:
    name: str
    about: str
    jvm: tuple[str, ...]
    class_path: str

    def prepare(self, directory: Path, port: int) -> None:
        """The configuration, and the directory formatted; neither is part of a start."""
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "server.properties"
        lines = {**kraft(directory, port, free_port()), **_ALONE, **SETTINGS}
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        if not (directory / "logs" / "meta.properties").exists():
            command = ["java", "-cp", self.class_path, "kafka.tools.StorageTool", "format"]
            command += ["-t", "benchmarkAAAAAAAAAAAAA", "-c", str(config)]
            subprocess.run(command, check=True, capture_output=True)

    def command(self, directory: Path, port: int) -> list[str]:
        return [
            "java",
            *self.jvm,
            "-cp",
            self.class_path,
            "kafka.Kafka",
            str(directory / "server.properties"),
        ]


def kraft(directory: Path, port: int, controller_port: int) -> dict[str, str]:
    """What a node of Apache Kafka needs that is alone, or one of several once it has a number and voters."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(directory / "logs"),
    }


@dataclass(slots=True)
class Target:
    """A broker that runs: where, as which process, and with which files."""

    name: str
    about: str
    address: load.Address
    flavour: Flavour | None = None
    directory: Path | None = None
    process: "subprocess.Popen[bytes] | None" = None
    counters: psutil.Process | None = None

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    @property
    def cpu_s(self) -> float | None:
        """Processor time in nanosecond steps, of the process and its children."""
        if self.counters is None:
            return None
        every = [self.counters, *self.counters.children(recursive=True)]
        return sum(cpu_s(each.pid) for each in every)

    @property
    def rss_mb(self) -> float | None:
        if self.counters is None:
            return None
        every = [self.counters, *self.counters.children(recursive=True)]
        return sum(float(each.memory_info().rss) for each in every) / 1e6

    def stop(self) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=STOP_S)


def launch(
    flavour: Flavour, directory: Path, *, is_prepared: bool = False, port: int | None = None
) -> Target:
    """Returns as soon as the process exists; `started.first_ack` waits for it."""
    port = port or free_port()
    if not is_prepared:
        flavour.prepare(directory, port)
    log = (directory.parent / f"{directory.name}.log").open("ab")
    process = subprocess.Popen(flavour.command(directory, port), stdout=log, stderr=log, env=ENVIRONMENT)
    log.close()
    counters = psutil.Process(process.pid)
    return Target(flavour.name, flavour.about, ("127.0.0.1", port), flavour, directory, process, counters)


def given(name: str, host: str, port: int) -> Target:
    """A broker that was started by somebody else."""
    return Target(name, f"given as {host}:{port}", (host, port), counters=_listener(host, port))


def _listener(host: str, port: int) -> psutil.Process | None:
    if not socket.gethostbyname(host).startswith("127."):
        return None
    for connection in psutil.net_connections("tcp"):
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or not connection.pid:
            continue
        if connection.laddr.port == port:
            return psutil.Process(connection.pid)
    return None


def kafkas() -> list[Kafka]:
    """Its jars come from Maven Central at first use and stay outside the repository."""
    if shutil.which("java") is None:
        raise KafkaUnavailableError("`java` is not installed; `scripts/setup java mvn` installs it")
    resolve = [str(ROOT / "scripts" / "apache-kafka"), "resolve"]
    done = subprocess.run(resolve, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if shutil.which("mvn") is None:
            raise KafkaUnavailableError("`mvn` is not installed; `scripts/setup java mvn` installs it")
        said = done.stderr.strip().splitlines()
        raise KafkaUnavailableError(said[-1].rstrip(".") if said else "scripts/apache-kafka resolve failed")
    class_path = done.stdout.strip()
    return [
        Kafka("kafka", f"its default JVM settings: {' '.join(JVM_DEFAULT)}", JVM_DEFAULT, class_path),
        Kafka("kafka-tuned", f"a tuned heap: {' '.join(JVM_TUNED)}", JVM_TUNED, class_path),
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def kafka_version(flavours: Mapping[str, Flavour]) -> str | None:
    for flavour in flavours.values():
        if isinstance(flavour, Kafka):
            jars = Path(flavour.class_path.rstrip("*"))
            return next((path.stem.rpartition("-")[2] for path in jars.glob("kafka_2.13-*.jar")), None)
    return None
