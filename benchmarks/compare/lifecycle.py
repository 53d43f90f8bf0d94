"""Start to the first acknowledged message, and what an idle broker holds in memory.

Each sample is a broker of its own in a fresh directory; formatting that directory is not part of the start.
"""

import shutil
import socket
import time
from dataclasses import dataclass

from benchmarks import load
from benchmarks.asking import ask
from benchmarks.compare import topics
from benchmarks.compare.brokers import Target, free_port, launch
from benchmarks.compare.case import Metrics, Plain, Tools, flavour_of, fresh
from benchmarks.compare.failing import CompareError
from riverlog.model.errors import ErrorCode
from riverlog.records.compression import Codec
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

READY_S = 60.0
IDLE_S = 1.0
RETRY_S = 0.002


class NotReadyError(CompareError):
    """A broker that was started did not acknowledge a message in time."""


@dataclass(frozen=True, slots=True)
class Start(Plain):
    name: str = "start"
    words: str = "start to the first acknowledged message; memory one second later"
    seconds: float = 5.5
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        flavour = flavour_of(target)
        directory, port = tools.directory / fresh("start"), free_port()
        flavour.prepare(directory, port)
        started_s = time.perf_counter()
        started = launch(flavour, directory, is_prepared=True, port=port)
        try:
            first_ack(started)
            start_s = time.perf_counter() - started_s
            cpu_s = started.cpu_s
            time.sleep(IDLE_S)
            rss_mb = started.rss_mb
        finally:
            started.stop()
            shutil.rmtree(directory, ignore_errors=True)
        assert cpu_s is not None
        assert rss_mb is not None
        return {"start_s": start_s, "start_cpu_s": cpu_s, "rss_mb": rss_mb}


def first_ack(target: Target) -> None:
    """Ask again and again, as a client that cannot wait would, until one message has been taken."""
    deadline_s = time.monotonic() + READY_S
    frame = topics.produce_frame("first", [0], topics.batch(1, 100, Codec.NONE))
    while True:
        try:
            with load.connect(target.address) as connection:
                connection.settimeout(READY_S)
                _create_first(connection, deadline_s)
                topics.send_until_taken(connection, frame)
                return
        except OSError:
            has_ended = target.process is not None and target.process.poll() is not None
            if has_ended or time.monotonic() > deadline_s:
                why = f"{target.name} did not become ready; its log is beside its data"
                raise NotReadyError(why) from None
            time.sleep(RETRY_S)


def _create_first(connection: socket.socket, deadline_s: float) -> None:
    topic = CreatableTopic(name="first", num_partitions=1, replication_factor=1)
    while time.monotonic() < deadline_s:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        code = ask(connection, ApiKey.CREATE_TOPICS, 5, request).topics[0].error_code
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        time.sleep(RETRY_S)
