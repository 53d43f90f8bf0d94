"""The loops behind `consume`: poll, write, stop in time.

An interrupt is a normal end of reading. Output is flushed whenever the consumer has nothing more at hand, so
a pipe sees records as they come and a bulk read is written in large pieces.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from riverlog.cli.cluster import partitions_of
from riverlog.cli.connection import Connection
from riverlog.cli.failures import CHECK_ADDRESS, CommandError, ExitCode
from riverlog.cli.interrupts import next_message
from riverlog.cli.output import Progress, progress, warn
from riverlog.cli.positions import Reading, parse_position, resolve
from riverlog.cli.record_format import Writer
from riverlog.cli.topic_changes import choose_partitions

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

POLL_S = 0.2
RECORDS_PER_POLL = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop; with neither, only an interrupt ends the reading."""

    count: int | None
    exit_at_end: bool


def read_partitions(
    connection: Connection,
    topic: str,
    partitions: list[int] | None,
    start: str,
    isolation: str,
    limits: Limits,
    writer: Writer,
) -> None:
    """Read named partitions (all by default) from a position, without a group."""
    from confluent_kafka import TopicPartition

    position = parse_position(start, "--from")
    readings = resolve(connection, topic, choose_partitions(connection, topic, partitions), position)
    for reading in readings:
        if reading.was_moved:
            held = f"{reading.held.start} to {reading.held.end}"
            warn(f"{topic}-{reading.partition} holds {held}; reading begins at {reading.first_offset}")
    consumer = connection.consumer(_settings(isolation, {"enable.auto.commit": False}))
    with _closing(consumer):
        consumer.assign(
            [TopicPartition(topic, reading.partition, reading.first_offset) for reading in readings]
        )
        _Run(connection, consumer, limits, writer, readings).read()


def read_as_group(
    connection: Connection, topic: str, group: str, start: str, isolation: str, limits: Limits, writer: Writer
) -> None:
    """Read as a member of a group; what has been written is committed."""
    from confluent_kafka import TopicPartition

    partitions = partitions_of(connection, topic)
    settings = {
        "group.id": group,
        "auto.offset.reset": "earliest" if start == "start" else "latest",
        "enable.auto.offset.store": False,
        "enable.auto.commit": True,
    }
    consumer = connection.consumer(_settings(isolation, settings))
    with _closing(consumer):
        _find_coordinator(connection, consumer, TopicPartition(topic, partitions[0]), group)
        consumer.subscribe([topic])
        _Run(connection, consumer, limits, writer, None).read()


def _find_coordinator(
    connection: Connection, consumer: "Consumer", partition: "TopicPartition", group: str
) -> None:
    """Make sure that the group has a coordinator: without one a member waits for ever and says nothing."""
    from confluent_kafka import KafkaException

    try:
        consumer.committed([partition], timeout=connection.timeout_s)
    except KafkaException as error:
        failure = connection.failure(error.args[0], f"group {group} has no coordinator that answers")
        failure.remedy = "leave out --group, or ask a broker that keeps groups"
        raise failure from None


def _settings(isolation: str, extra: dict[str, Any]) -> dict[str, Any]:
    return {
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        # A quiet consumer is told of new data by the broker; waiting longer there only costs an idle poll.
        "fetch.wait.max.ms": 500,
        **extra,
    }


@contextmanager
def _closing(consumer: "Consumer") -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()


class _Run:
    """One reading: knows what is still to come of each partition."""

    def __init__(
        self,
        connection: Connection,
        consumer: "Consumer",
        limits: Limits,
        writer: Writer,
        readings: Sequence[Reading] | None,
    ) -> None:
        self._connection = connection
        self._consumer = consumer
        self._limits = limits
        self._writer = writer
        self._in_group = readings is None
        self._last_offsets = {each.partition: each.held.end - 1 for each in readings or ()}
        self._unfinished = {each.partition for each in readings or () if each.first_offset < each.held.end}
        self._held = sum(each.held.end - each.first_offset for each in readings or ())
        self._at_end: set[int] = set()
        self._written = 0
        self._lost_since: float | None = None
        self._began = time.monotonic()

    def read(self) -> None:
        # At a terminal the records themselves are the progress.
        with progress("records", self._total(), wanted=not sys.stdout.isatty()) as bar:
            while not self._is_done():
                room = RECORDS_PER_POLL
                if self._limits.count is not None:
                    room = min(room, self._limits.count - self._written)
                first = next_message(self._consumer, POLL_S)
                if first is None:
                    self._note_silence()
                else:
                    self._lost_since = None
                    # Then what is at hand: asking for many with a time-out would hold back the first.
                    self._take([first, *(self._consumer.consume(room - 1, 0) if room > 1 else ())], bar)

    def _total(self) -> int | None:
        """How many records there are to come, where that is known."""
        known = [] if self._limits.count is None else [self._limits.count]
        if self._limits.exit_at_end and not self._in_group:
            known.append(self._held)
        return min(known, default=None)

    def _is_done(self) -> bool:
        if self._limits.count is not None and self._written >= self._limits.count:
            return True
        if not self._limits.exit_at_end:
            return False
        if not self._in_group:
            return not self._unfinished
        assigned = {each.partition for each in self._consumer.assignment()}
        if not assigned and not self._written and time.monotonic() - self._began > self._connection.timeout_s:
            raise CommandError(
                "the group has given this member no partitions",
                remedy="it may have members enough; otherwise allow more time with --timeout",
                code=ExitCode.CONNECTION,
            )
        return bool(assigned) and assigned <= self._at_end

    def _take(self, messages: "list[Message]", bar: Progress) -> None:
        stdout = sys.stdout.buffer
        written = []
        for message in messages:
            if message.error() is not None:
                self._note_error(message)
                continue
            stdout.write(self._writer(message))
            written.append(message)
            self._note_progress(message.partition() or 0, message.offset() or 0)
        stdout.flush()
        if self._in_group:
            for message in written:
                self._consumer.store_offsets(message=message)
        self._written += len(written)
        bar.advance(len(written))

    def _note_silence(self) -> None:
        """Nothing has come: because there is nothing, or because there is no broker any more."""
        self._connection.raise_if_refused()
        error = self._connection.take_loss()
        if error is not None and self._lost_since is None:
            self._lost_since = time.monotonic()
            warn(f"the connection is lost ({error.str()}); trying again")
        lost_s = 0.0 if self._lost_since is None else time.monotonic() - self._lost_since
        if self._limits.exit_at_end and lost_s > self._connection.timeout_s:
            raise CommandError("the broker has not come back", remedy=CHECK_ADDRESS, code=ExitCode.CONNECTION)

    def _note_progress(self, partition: int, offset: int) -> None:
        self._at_end.discard(partition)
        if offset >= self._last_offsets.get(partition, offset + 1):
            self._unfinished.discard(partition)

    def _note_error(self, message: "Message") -> None:
        error = message.error()
        assert error is not None
        partition = message.partition()
        if error.name() != "_PARTITION_EOF":
            raise self._connection.failure(error, f"reading {message.topic() or 'the topic'}")
        if partition is not None:
            # The end is also reached where the last offset belongs to no record (a transaction marker).
            self._unfinished.discard(partition)
            self._at_end.add(partition)
