"""Starts Apache Kafka itself, in a temporary directory on free ports, and stops it again."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator

from tests.differential import codec
from tests.differential.connection import Connection, ConnectionClosedError, NoAnswerError
from tests.waiting import looks

REPOSITORY = pathlib.Path(__file__).parents[2]
START_S = 120.0


def oracle_command() -> str:
    return os.environ.get("RIVERLOG_ORACLE", str(REPOSITORY.parent / "shared" / "oracle" / "kafka"))


@contextlib.contextmanager
def running(config: dict[str, str]) -> Iterator[tuple[str, int]]:
    """The address of a fresh broker, which is gone with the block."""
    with tempfile.TemporaryDirectory(prefix="riverlog-oracle-") as directory:
        port = free_pair()
        pairs = [f"{key}={value}" for key, value in config.items()]
        command = [oracle_command(), "serve", str(port), directory, *pairs]
        log = pathlib.Path(directory, "oracle.log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                wait_until_ready(port, process, log)
                yield "127.0.0.1", port
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_pair() -> int:
    """A port that is free together with the one after it: the oracle uses both."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port
    raise OSError("no two neighbouring free ports on 127.0.0.1")


def wait_until_ready(port: int, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    for _ in looks(START_S, every_s=0.2):
        if process.poll() is not None:
            raise RuntimeError(f"the oracle has stopped:\n{log.read_text(errors='replace')[-2000:]}")
        if _is_in_its_own_metadata(port):
            return
    raise TimeoutError(f"the oracle on port {port} is not ready after {START_S:.0f} s")


def _is_in_its_own_metadata(port: int) -> bool:
    """A broker answers before its controller knows it; only then can it place a partition on itself."""
    request = codec.encode_request("Metadata", 12, {"topics": []}, 1, "oracle")
    try:
        connection = Connection("127.0.0.1", port, 5.0)
    except OSError:
        return False
    try:
        connection.send(struct.pack(">i", len(request)) + request)
        reply = codec.decode_reply("Metadata", 12, connection.receive())
        return bool(reply["brokers"])
    except (ConnectionClosedError, NoAnswerError):
        return False
    finally:
        connection.close()
