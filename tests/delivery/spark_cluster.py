"""Spark as several processes, from the PySpark that is installed: a standalone master with two workers.

Each worker has an address of its own on the loopback: Spark never runs a second copy of a task on the host
that runs the first.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from riverlog.spark.spark_home import light_home
from tests.waiting import looks

HOSTS = ("127.0.0.1", "127.0.0.2")
_START_S = 180.0
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")


class StandaloneCluster:
    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None, cores: int = 1) -> None:
        """The environment is that of the workers, which hand it to their executors."""
        self._directory = directory
        self._home = light_home(directory / "home")
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(directory / "local"),
            **(environment or {}),
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start("master", "master.Master", "--host", HOSTS[0])
            self.master = self._wait_for("master", _MASTER)[0]
            for index, host in enumerate(HOSTS):
                work = str(directory / f"work-{index}")
                self._start(
                    f"worker-{index}", "worker.Worker", "--host", host, "--cores", str(cores),
                    "--memory", "1g", "--work-dir", work, self.master,
                )  # fmt: skip
            for index in range(len(HOSTS)):
                self._wait_for(f"worker-{index}", re.compile("Successfully registered with master"))
        except BaseException:
            self.close()
            raise

    def errors_of_executors(self) -> str:
        """What they have logged, for a message."""
        return "\n".join(path.read_text()[-2000:] for path in self._directory.glob("work-*/*/*/stderr"))

    def close(self) -> None:
        for process in self._processes:
            tree = [psutil.Process(process.pid)] if process.poll() is None else []
            tree += [child for each in tree for child in each.children(recursive=True)]
            for each in tree:
                if each.is_running():
                    each.kill()
            process.wait(_START_S)
            psutil.wait_procs(tree, _START_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, name: str, main_class: str, *arguments: str) -> None:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main_class}"]
        command += ["--port", "0", "--webui-port", "0", *arguments]
        with self._log(name).open("wb") as log:
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=self._environment, cwd=self._directory)
            )

    def _wait_for(self, name: str, pattern: re.Pattern[str]) -> list[str]:
        for _ in looks(_START_S):
            if found := pattern.findall(self._log(name).read_text()):
                return found
            assert self._processes[-1].poll() is None, self._log(name).read_text()[-4000:]
        raise AssertionError(f"{name} did not start\n{self._log(name).read_text()[-4000:]}")

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"
