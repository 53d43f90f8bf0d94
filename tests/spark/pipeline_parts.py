"""Pipelines in tests: the command as a process, projects, and what is in a topic."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.waiting import looks

EXECUTABLE = str(Path(sys.executable).with_name("riverlog"))
PATIENCE_S = 240.0


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass(frozen=True, slots=True)
class Pipelines:
    """`riverlog pipeline` in a directory, on one cluster and one Spark."""

    directory: Path
    bootstrap: str
    master: str

    def __call__(self, command: str, *arguments: str, code: int = 0, **environ: str) -> Outcome:
        done = subprocess.run(
            [EXECUTABLE, "pipeline", command, *arguments],
            cwd=self.directory,
            env=self._environment(environ),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> "Running":
        process = subprocess.Popen(
            [EXECUTABLE, "pipeline", "run", *arguments],
            cwd=self.directory,
            env=self._environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process)

    def project(self, name: str, flows: str, *lines: str, files: Mapping[str, str] | None = None) -> Path:
        directory = self.directory / name
        (directory / "flows").mkdir(parents=True)
        (directory / "flows" / "flows.py").write_text(flows)
        for path, text in (files or {}).items():
            (directory / "flows" / path).write_text(text)
        spec = [
            f"name: {name}",
            f"storage: {(directory / 'storage').as_uri()}",
            "libraries: [{glob: {include: flows/**}}]",
            *lines,
        ]
        (directory / "spark-pipeline.yml").write_text("\n".join(spec) + "\n")
        return directory

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        chosen = {
            "RIVERLOG_BOOTSTRAP": self.bootstrap,
            "RIVERLOG_SPARK_MASTER": self.master,
            "PYTHONWARNINGS": "",
        }
        return {**os.environ, **chosen, **extra}


@dataclass(slots=True)
class Running:
    """A runner; in a `with` it is killed at the end if it has not ended by itself."""

    process: "subprocess.Popen[str]"

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def terminate(self) -> Outcome:
        return self._ended_by(signal.SIGTERM)

    def interrupt(self) -> Outcome:
        """As Ctrl-C does."""
        return self._ended_by(signal.SIGINT)

    def _ended_by(self, number: signal.Signals) -> Outcome:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=PATIENCE_S)
        return Outcome(self.process.returncode, stdout, stderr)

    def commands(self) -> list[str]:
        """Of all processes that it has started."""
        found = []
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                found.append(" ".join(each.cmdline()))
        return found

    def assert_alive(self) -> None:
        if self.process.poll() is not None:
            _, stderr = self.process.communicate()
            raise AssertionError(f"the runner ended with {self.process.returncode}: {stderr}")


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(30) == 0


def committed_values(bootstrap: str, topic: str) -> list[str]:
    """All that a reader of committed records finds now."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "t", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[str] = []
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                return values
            values.append((message.value() or b"").decode())
        raise AssertionError(f"the end of {topic} was not reached")
    finally:
        consumer.close()


def wait_for_a_value(bootstrap: str, topic: str, runner: Running) -> None:
    """Also where more come all the time, so that there is no end to be reached."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "t", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        for _ in looks(PATIENCE_S, every_s=0.1):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                return
            runner.assert_alive()
        raise AssertionError(f"nothing has come into {topic}")
    finally:
        consumer.close()


def wait_for_values(bootstrap: str, topic: str, count: int, runner: Running) -> list[str]:
    found: list[str] = []
    for _ in looks(PATIENCE_S, every_s=0.1):
        found = committed_values(bootstrap, topic)
        if len(found) >= count:
            return found
        runner.assert_alive()
    raise AssertionError(f"{len(found)} of {count} values in {topic}")
