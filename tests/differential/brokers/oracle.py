"""Starts three nodes of Apache Kafka, each broker and controller, which can be stopped one by one."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
from collections.abc import Iterator

from tests.differential.brokers.settings import BROKERS, SHARED_CONFIG
from tests.differential.oracle import free_pair, oracle_command, wait_until_ready

STOP_S = 120.0
HEAP = "384M"


class OracleCluster:
    """Use `running`."""

    def __init__(self, directory: str) -> None:
        self._directory = pathlib.Path(directory)
        # Asked before the nodes start, since it may fetch the jars that all of them need.
        drawn = [oracle_command(), "run", "kafka.tools.StorageTool", "random-uuid"]
        self._cluster_id = subprocess.run(drawn, check=True, capture_output=True, text=True).stdout.split()[
            -1
        ]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.ports = dict(zip(BROKERS, _free_pairs(len(BROKERS)), strict=True))

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return {broker: ("127.0.0.1", port) for broker, port in self.ports.items()}

    def begin(self, broker: int) -> None:
        voters = ",".join(f"{each}@127.0.0.1:{port + 1}" for each, port in self.ports.items())
        config = SHARED_CONFIG | {"node.id": str(broker), "controller.quorum.voters": voters}
        command = [
            oracle_command(), "serve", str(self.ports[broker]), str(self._directory / str(broker)),
            *(f"{key}={value}" for key, value in config.items()),
        ]  # fmt: skip
        with self._log(broker).open("ab") as output:
            self._processes[broker] = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "ORACLE_CLUSTER_ID": self._cluster_id, "ORACLE_HEAP": HEAP},
            )

    def start(self, broker: int) -> None:
        self.begin(broker)
        self.wait(broker)

    def wait(self, broker: int) -> None:
        """Until it answers as a broker that its cluster knows."""
        wait_until_ready(self.ports[broker], self._processes[broker], self._log(broker))

    def stop(self, broker: int) -> None:
        """As by SIGTERM, which hands its partitions over first."""
        os.killpg(self._processes[broker].pid, signal.SIGTERM)
        self._processes.pop(broker).wait(STOP_S)

    def close(self) -> None:
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _log(self, broker: int) -> pathlib.Path:
        return self._directory / f"oracle-{broker}.log"


@contextlib.contextmanager
def running() -> Iterator[OracleCluster]:
    with tempfile.TemporaryDirectory(prefix="riverlog-oracle-") as directory:
        cluster = OracleCluster(directory)
        try:
            for broker in BROKERS:
                cluster.begin(broker)
            for broker in BROKERS:
                cluster.wait(broker)
            yield cluster
        finally:
            cluster.close()


def _free_pairs(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        port = free_pair()
        if all(abs(port - other) > 1 for other in found):
            found.append(port)
    return found
