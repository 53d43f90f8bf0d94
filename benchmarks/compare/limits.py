"""What this machine can do at best, measured in the same run: the yardstick beside every figure.

One copy in memory; write() to the page cache; a stream over loopback TCP between two processes, written from
memory and sent from a file; and the smallest server there is, which sends a small request back.
"""

import os
import socket
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from benchmarks.compare import topics
from benchmarks.compare.driver import Driver
from benchmarks.servers import bare
from riverlog.records.compression import Codec

MEGABYTE = 1_000_000
MEASURED_BYTES = 600 * MEGABYTE
COPIED_BYTES = 64 * MEGABYTE  # More than the caches hold.
WORDS = {
    "memcpy_mb_s": "memcpy, one core",
    "write_mb_s": "write() to the page cache",
    "loopback_mb_s": "loopback TCP, from memory",
    "sendfile_mb_s": "loopback TCP, sendfile",
    "echo_requests_s": "small requests, echo on uvloop, one connection",
}
UNITS = {name: "per s" if name.endswith("requests_s") else "MB/s" for name in WORDS}


def measure(driver: Driver, directory: Path, repeats: int) -> dict[str, list[float]]:
    work: dict[str, Callable[[], float]] = {
        "memcpy_mb_s": memcpy,
        "write_mb_s": lambda: write(directory),
        "loopback_mb_s": lambda: stream(directory, is_file=False),
        "sendfile_mb_s": lambda: stream(directory, is_file=True),
        "echo_requests_s": lambda: echo(driver, directory),
    }
    samples: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, measure_once in work.items():
            samples[name].append(measure_once())
    return samples


def typical(samples: dict[str, list[float]]) -> dict[str, float]:
    return {name: median(values) for name, values in samples.items()}


def memcpy() -> float:
    source, to = memoryview(bytearray(COPIED_BYTES)), memoryview(bytearray(COPIED_BYTES))
    to[:] = source  # The pages must exist.
    started_s = time.perf_counter()
    for _ in range(MEASURED_BYTES // COPIED_BYTES):
        to[:] = source
    elapsed_s = time.perf_counter() - started_s
    return MEASURED_BYTES // COPIED_BYTES * COPIED_BYTES / 1e6 / elapsed_s


def write(directory: Path) -> float:
    data = os.urandom(MEGABYTE)
    with tempfile.TemporaryFile(dir=directory) as file:
        started_s = time.perf_counter()
        for _ in range(MEASURED_BYTES // MEGABYTE):
            os.write(file.fileno(), data)
        return MEASURED_BYTES / 1e6 / (time.perf_counter() - started_s)


def stream(directory: Path, *, is_file: bool) -> float:
    """Between two processes, since one alone would only take turns with itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryFile(dir=directory) as file:
        data = os.urandom(MEGABYTE)
        file.write(data)
        file.flush()
        receiver = get_context("fork").Process(target=_receive, args=(listener.getsockname(),))
        receiver.start()
        connection, _ = listener.accept()
        with connection:
            started_s = time.perf_counter()
            for _ in range(MEASURED_BYTES // MEGABYTE):
                if is_file:
                    _send_file(connection, file.fileno())
                else:
                    connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # It answers when it has everything.
            elapsed_s = time.perf_counter() - started_s
        receiver.join()
    return MEASURED_BYTES / 1e6 / elapsed_s


def _send_file(connection: socket.socket, descriptor: int) -> None:
    sent = 0
    while sent < MEGABYTE:
        sent += os.sendfile(connection.fileno(), descriptor, sent, MEGABYTE - sent)


def _receive(address: tuple[str, int]) -> None:
    buffer = bytearray(MEGABYTE)
    with socket.create_connection(address) as connection:
        while connection.recv_into(buffer):
            pass
        connection.send(b".")


def echo(driver: Driver, directory: Path) -> float:
    path = directory / "frame"
    path.write_bytes(topics.produce_frame("small", [0], topics.batch(1, 100, Codec.NONE)))
    with bare("echo") as loop:
        host, port = loop.address
        settings = {"brokers": f"{host}:{port}", "frame": path, "connections": 1, "seconds": 0.5}
        done = driver.run("requests", {}, **settings)
    return done["requests"] / done["seconds"]
