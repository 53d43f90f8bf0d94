"""The Java consumer finds out that what it had read was lost by an unclean election (KIP-320)."""

import subprocess
from pathlib import Path

import pytest

from interop.conftest import KAFKA
from riverlog.testing import Cluster
from tests.delivery.unclean_election import KEPT, LOST, TOPIC, UncleanElection

PROGRAM = Path(__file__).parent / "java" / "ReadOn.java"
WAIT_S = 90.0


@pytest.mark.timeout(180)
def test_the_java_consumer_is_told_that_the_log_was_truncated_and_where() -> None:
    with Cluster(3, {"min.insync.replicas": 1}) as cluster:
        election = UncleanElection(cluster)
        command = [str(KAFKA), "run", str(PROGRAM), cluster.bootstrap_servers, TOPIC]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as consumer:
            try:
                election.write_what_is_lost()
                read = [_line(consumer) for _ in range(KEPT + LOST)]
                assert read[-1] == "lost 9"
                election.lose_it()
                assert _line(consumer) == f"truncated at {KEPT + LOST} to {KEPT}"
                assert consumer.wait(WAIT_S) == 0
            finally:
                consumer.kill()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")
