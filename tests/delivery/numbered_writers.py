"""Idempotent producers of three makes that write 0, 1, 2, … to every partition until they are told to end.

Each waits for all replicas and has several requests on their way, as it has by default. Not here: whether
what they wrote is right (`leader_moves`).
"""

import asyncio
import logging
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError as AioKafkaError  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, Message, Producer

from tests.waiting import eventually, is_readable

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 120.0
PAUSE_S: Final = 0.01
AT_ONCE: Final = 3
"""So many records to each partition between two pauses, unless it is told otherwise."""
OUTSTANDING_MAX: Final = 5000
_QUIET = logging.getLogger("tests.quiet")
_QUIET.setLevel(logging.CRITICAL)


class Written:
    """What a producer was told of its records."""

    def __init__(self) -> None:
        self.acknowledged: defaultdict[int, list[int]] = defaultdict(list)
        """Numbers by partition, as they were acknowledged."""
        self.failed: list[str] = []


class Writer(Protocol):
    written: Written

    def start(self) -> None:
        """Return when records are acknowledged."""
        ...

    def end(self) -> None:
        """Return when all records are acknowledged or failed."""
        ...


class Librdkafka:
    def __init__(self, servers: str, topic: str, partitions: int, at_once: int = AT_ONCE) -> None:
        self.written = Written()
        self._topic, self._partitions, self._at_once = topic, partitions, at_once
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": int(PATIENCE_S * 1000),
                "topic.metadata.refresh.interval.ms": 10_000,
            },
            logger=_QUIET,
        )

    def start(self) -> None:
        self._thread.start()
        eventually(lambda: self.written.acknowledged, "nothing was written", PATIENCE_S)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(PAUSE_S):
            if len(self._producer) < OUTSTANDING_MAX:
                for each in range(number, number + self._at_once):
                    for partition in range(self._partitions):
                        self._producer.produce(
                            self._topic, b"%d" % each, partition=partition, on_delivery=self._done
                        )
                number += self._at_once
            self._producer.poll(0)
        self._producer.flush(PATIENCE_S)

    def _done(self, error: KafkaError | None, message: Message) -> None:
        partition, value = message.partition(), message.value()
        assert partition is not None
        assert value is not None
        if error is None:
            self.written.acknowledged[partition].append(int(value))
        else:
            self.written.failed.append(f"{partition}: {int(value)}: {error.name()}")


class Aiokafka:
    def __init__(self, servers: str, topic: str, partitions: int, at_once: int = AT_ONCE) -> None:
        self.written = Written()
        self._servers, self._topic = servers, topic
        self._partitions, self._at_once = partitions, at_once
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def start(self) -> None:
        self._thread.start()
        eventually(lambda: self.written.acknowledged, "nothing was written", PATIENCE_S)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()

    async def _run(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            enable_idempotence=True,
            acks="all",
            request_timeout_ms=int(PATIENCE_S * 1000),
            metadata_max_age_ms=10_000,
        )
        await producer.start()
        sent: set[asyncio.Future[Any]] = set()
        number = 0
        while not self._is_over.is_set():
            for each in range(number, number + self._at_once):
                for partition in range(self._partitions):
                    future = await producer.send(self._topic, b"%d" % each, partition=partition)
                    sent.add(future)
                    future.add_done_callback(sent.discard)
                    future.add_done_callback(
                        lambda done, partition=partition, each=each: self._done(done, partition, each)
                    )
            number += self._at_once
            await asyncio.sleep(PAUSE_S)
            while len(sent) > OUTSTANDING_MAX:
                await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        await producer.stop()

    def _done(self, future: "asyncio.Future[Any]", partition: int, number: int) -> None:
        error = future.exception()
        if error is None:
            self.written.acknowledged[partition].append(number)
        else:
            assert isinstance(error, AioKafkaError), error
            self.written.failed.append(f"{partition}: {number}: {type(error).__name__}")


class Java:
    """`interop/java/WriteNumbers.java`, which writes until its standard input ends, then what came of it."""

    def __init__(self, servers: str, topic: str, partitions: int, at_once: int = AT_ONCE) -> None:
        self.written = Written()
        self._arguments = (servers, topic, str(partitions), str(at_once), str(int(PAUSE_S * 1000)))

    def start(self) -> None:
        program = ROOT / "interop" / "java" / "WriteNumbers.java"
        self._process = subprocess.Popen(
            [str(ROOT / "scripts" / "apache-kafka"), "run", str(program), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert is_readable(self._process.stdout, PATIENCE_S), "the Java producer writes nothing"
        assert self._process.stdout.readline() == "writing\n"

    def end(self) -> None:
        told, _ = self._process.communicate(timeout=PATIENCE_S * 2)
        assert self._process.returncode == 0
        for line in told.splitlines():
            partition, number, *error = line.split()
            if error:
                self.written.failed.append(f"{partition}: {number}: {error[0]}")
            else:
                self.written.acknowledged[int(partition)].append(int(number))


WRITERS: Final[dict[str, Callable[[str, str, int, int], Writer]]] = {
    "librdkafka": Librdkafka,
    "aiokafka": Aiokafka,
    "java": Java,
}
