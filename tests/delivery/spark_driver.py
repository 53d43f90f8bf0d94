"""A Spark driver as a test sees it: a tree of processes, killed together."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from riverlog.spark.spark_home import light_home
from tests.delivery.workers import DEADLINE_S, Worker

START_S = 240.0


class SparkDriver(Worker):
    """A program with its JVM and its Python workers; on a cluster the executors are elsewhere."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        module: str = "spark_query",
        **options: object,
    ) -> None:
        given = {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(light_home(directory / "home"))}
        super().__init__(module, given | dict(environment or {}), directory=str(directory), **options)

    def kill(self) -> None:
        """SIGKILL for all: the JVM first, so that nothing of it can react to another's end."""
        tree = [psutil.Process(self.process.pid)]
        tree += tree[0].children(recursive=True)
        for process in sorted(tree, key=lambda each: each.name() != "java"):
            process.kill()
        psutil.wait_procs(tree, DEADLINE_S)
        super().kill()

    def kill_planners(self, module: str) -> int:
        """SIGKILL for the Python workers of the driver that run this module of Spark; how many there were.

        Those that are forked by a daemon have the same command as the daemon, which stays and makes new ones.
        """
        tree = psutil.Process(self.process.pid).children(recursive=True)
        commands = {each: _command(each) for each in tree}
        of_module = [each for each, command in commands.items() if module in command]
        pids = {each.pid for each in of_module}
        workers = [each for each in of_module if each.ppid() in pids or "daemon" not in commands[each]]
        for worker in workers:
            worker.kill()
        psutil.wait_procs(workers, DEADLINE_S)
        return len(workers)

    def run(self, *queries: str) -> None:
        """Have the queries take what is there."""
        self.wait_until("ready")
        self.tell(run=queries)

    def outcomes(self) -> dict[str, str | None]:
        """When all are at their end: what went wrong with each."""
        failures: dict[str, str | None] = self.wait_until("done")["failures"]
        return failures

    def wait_until(self, point: str) -> Mapping[str, Any]:
        told = self.next(START_S)
        assert told["at"] == point, f"expected {point}, the driver is at {told}"
        return told

    def has_told(self) -> bool:
        """Whether `next` would not have to wait."""
        return not self._told.empty()

    def assert_silent(self) -> None:
        """It works; what it tells would be that its queries are at their end."""
        assert not self.has_told(), f"the driver tells {self.next(0)}"


def _command(process: psutil.Process) -> str:
    """Nothing for one that has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
