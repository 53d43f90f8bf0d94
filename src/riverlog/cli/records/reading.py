"""The loop behind `consume`: poll, write, stop in time, and say why when it stops early.

Output is flushed whenever the consumer has nothing more at hand, so a pipe sees records as they come and a
bulk read is written in large pieces. Reading as a member of a group is in `group_reading`.
"""

import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.positions import (
    Reading,
    Span,
    Start,
    choose_partitions,
    resolve,
    resolve_span,
)
from riverlog.cli.failures import CHECK_ADDRESS, CommandError, ExitCode
from riverlog.cli.interrupts import next_message, postponed
from riverlog.cli.printing.output import Progress, progress, remark, warn
from riverlog.cli.records.new_topics import NewTopics
from riverlog.cli.records.remaining import Remaining
from riverlog.cli.records.stopping_short import tell_what_holds_back
from riverlog.cli.records.wanted import Wanted
from riverlog.cli.records.watching import Watch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

POLL_S = 0.2
RECORDS_PER_POLL = 500
COMMITTED = "read_committed"
_GONE_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
_DAMAGED = ("INVALID_MSG", "_BAD_MSG", "_BAD_COMPRESSION", "_NOT_IMPLEMENTED")


def read_partitions(connection: Connection, wanted: Wanted, span: Span, partitions: list[int] | None) -> None:
    """Read named partitions (all by default) of each topic, without a group."""
    readings: list[Reading] = []
    for topic in wanted.topics:
        chosen = choose_partitions(connection, topic, partitions)
        readings += resolve_span(connection, topic, chosen, span)
    for reading in readings:
        _tell_if_moved(reading)
    consumer = connection.consumer(settings(wanted.isolation, {"enable.auto.commit": False}))
    with closing(consumer):
        _PlainRun(connection, consumer, wanted, readings, partitions).read()


def _tell_if_moved(reading: Reading) -> None:
    held = f"{reading.topic}-{reading.partition} holds {reading.held.start} to {reading.held.end}"
    if reading.was_moved:
        warn(f"{held}; reading begins at {reading.first_offset}")
    if reading.end_was_moved:
        warn(f"{held}; reading ends at {reading.end_offset}")


def settings(isolation: str, extra: dict[str, Any]) -> dict[str, Any]:
    return {
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        # The broker sends batches unseen, so that damage in one is found here or not at all.
        "check.crcs": True,
        # A quiet consumer is told of new data by the broker; waiting longer there only costs an idle poll.
        "fetch.wait.max.ms": 500,
        **extra,
    }


@contextmanager
def closing(consumer: "Consumer") -> Iterator[None]:
    try:
        yield
    finally:
        with postponed():
            consumer.close()


class Run:
    """One reading. What a group does otherwise than a plain reader is left to the two kinds of it."""

    def __init__(
        self,
        connection: Connection,
        consumer: "Consumer",
        wanted: Wanted,
        readings: Sequence[Reading] = (),
    ) -> None:
        self._connection = connection
        self._consumer = consumer
        self._wanted = wanted
        self._limits = wanted.limits
        self._remaining = Remaining(readings)
        self._watch = Watch(connection, wanted.topics)
        self._new_topics = NewTopics(connection, wanted.patterns, wanted.topics)
        self._written = 0
        self._heard_at = time.monotonic()

    def read(self) -> None:
        try:
            self._read()
        finally:
            self._new_topics.close()

    def _read(self) -> None:
        # At a terminal the records themselves are the progress.
        with progress("records", self._total(), wanted=not sys.stdout.isatty()) as bar:
            while not self._has_enough() and not (self._limits.exit_at_end and self._is_at_end()):
                self._take_in(self._new_topics.take())
                first = next_message(self._consumer, POLL_S)
                if first is None:
                    self._note_silence()
                else:
                    self._heard_at = time.monotonic()
                    self._watch.heard()
                    self._take([first, *self._at_hand()], bar)
        if not self._limits.exit_at_end or self._has_enough():
            return
        for place, offset in self._remaining.passed_ends.items():
            self._tell_end(place, offset)
        if self._wanted.isolation == COMMITTED:
            tell_what_holds_back(self._connection, self._remaining.ends)

    def _take_in(self, topics: Sequence[str]) -> None:
        for topic in topics:
            try:
                self._begin(topic)
            except CommandError as failure:
                if failure.code is not ExitCode.NOT_FOUND:
                    raise
                continue  # It has gone again.
            self._watch.add(topic)
            remark(f"topic {topic} is new, and is read from its start")

    def _tell_end(self, place: Place, offset: int) -> None:
        if self._wanted.tells_ends:
            topic, partition = place
            remark(f"{topic}-{partition}: end at offset {offset}")

    def _has_enough(self) -> bool:
        return self._limits.count is not None and self._written >= self._limits.count

    def _at_hand(self) -> "list[Message]":
        """What has come with the first: asking for many with a time-out would hold back the first."""
        room = RECORDS_PER_POLL
        if self._limits.count is not None:
            room = min(room, self._limits.count - self._written)
        if room == 1:
            return []
        with postponed():
            return self._consumer.consume(room - 1, 0)

    def _total(self) -> int | None:
        """How many records there are to come, where that is known."""
        return self._limits.count

    def _is_at_end(self) -> bool:
        raise NotImplementedError

    def _missing(self) -> list[Place]:
        """The partitions of which something is still to come."""
        raise NotImplementedError

    def _begin(self, topic: str) -> None:
        """A topic has come that was not there."""
        raise NotImplementedError

    def _begin_anew(self, topic: str) -> None:
        """Another topic has the name of one that was read."""
        raise NotImplementedError

    def _keep(self, written: "list[Message]") -> None:
        """Called with what has been handed to whoever reads our output."""

    def _finish(self, place: Place) -> None:
        """A record has come that is behind the end of what was asked for: no more of this partition."""
        self._remaining.note_beyond(place)

    def _take(self, messages: "list[Message]", bar: Progress) -> None:
        stdout = sys.stdout.buffer
        written: list[Message] = []
        try:
            for message in messages:
                if message.error() is not None:
                    self._note_error(message)
                    continue
                place, offset = place_of(message), message.offset() or 0
                if self._remaining.is_beyond(place, offset):
                    self._finish(place)
                    continue
                stdout.write(self._wanted.writer(message))
                written.append(message)
                self._remaining.note_record(place, offset)
        finally:
            # What came before an error is good, and its reader is to have it.
            stdout.flush()
            self._keep(written)
        self._written += len(written)
        bar.advance(len(written))

    def _note_silence(self) -> None:
        """Nothing has come: because there is nothing, or because there is no broker or topic any more."""
        self._connection.raise_if_refused()
        for topic in self._watch.look():
            self._begin_anew(topic)
        if not self._limits.exit_at_end:
            return
        if self._watch.gone:
            raise CommandError(
                f"topic {' '.join(self._watch.gone)} was deleted while it was read", code=ExitCode.NOT_FOUND
            )
        if self._watch.lost_s > self._connection.timeout_s:
            raise CommandError("the broker has not come back", remedy=CHECK_ADDRESS, code=ExitCode.CONNECTION)
        if time.monotonic() - self._heard_at > self._connection.timeout_s and (places := self._missing()):
            topic, partition = places[0]
            raise CommandError(
                f"nothing has come for {self._connection.timeout_s:g} s, with "
                f"{topic}-{partition} read up to offset {self._remaining.positions.get(places[0], '?')}",
                remedy="look at the broker's log; allow more time with --timeout",
                code=ExitCode.CONNECTION,
            )

    def _note_error(self, message: "Message") -> None:
        error = message.error()
        assert error is not None
        if error.name() == "_PARTITION_EOF":
            self._remaining.note_end(place_of(message), message.offset() or 0)
            sys.stdout.buffer.flush()  # A notice comes after the records that it speaks of.
            self._tell_end(place_of(message), message.offset() or 0)
        elif error.name() == "_AUTO_OFFSET_RESET" and (anew := self._watch.look_now()):
            for topic in anew:
                self._begin_anew(topic)
        elif self._limits.exit_at_end or error.name() not in _GONE_TOPIC:  # The watch tells of a topic.
            raise self._failure(error, message)

    def _failure(self, error: "KafkaError", message: "Message") -> CommandError:
        partition, offset = message.partition(), message.offset()
        place = message.topic() or "the topic"
        if partition is not None and partition >= 0:
            place += f"-{partition}"
        if offset is not None and offset >= 0:
            place += f" at offset {offset}"
        failure = self._connection.failure(error, f"reading {place}")
        if error.name() in _DAMAGED:
            failure.remedy = (
                "the records there are damaged: `riverlog log verify DATA_DIR` names the file, and --from "
                "with a later offset reads on behind them"
            )
        return failure


class _PlainRun(Run):
    """Of chosen partitions."""

    def __init__(
        self,
        connection: Connection,
        consumer: "Consumer",
        wanted: Wanted,
        readings: Sequence[Reading],
        partitions: Collection[int] | None,
    ) -> None:
        super().__init__(connection, consumer, wanted, readings)
        self._partitions = partitions
        self._assign()

    def _total(self) -> int | None:
        held = [self._remaining.record_count] if self._limits.exit_at_end else []
        return min([*held, *([] if self._limits.count is None else [self._limits.count])], default=None)

    def _is_at_end(self) -> bool:
        return not self._remaining.unfinished

    def _missing(self) -> list[Place]:
        return self._remaining.unfinished

    def _begin(self, topic: str) -> None:
        chosen = [
            each
            for each in choose_partitions(self._connection, topic, None)
            if self._partitions is None or each in self._partitions
        ]
        self._remaining.add(resolve(self._connection, topic, chosen, Start()))
        self._assign()

    def _begin_anew(self, topic: str) -> None:
        partitions = choose_partitions(self._connection, topic, None)
        self._remaining.begin_anew(resolve(self._connection, topic, partitions, Start()))
        self._assign()

    def _finish(self, place: Place) -> None:
        from confluent_kafka import TopicPartition

        super()._finish(place)
        self._consumer.pause([TopicPartition(*place)])

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign(
            [
                TopicPartition(topic, partition, offset)
                for (topic, partition), offset in self._remaining.positions.items()
            ]
        )


def place_of(message: "Message") -> Place:
    return message.topic() or "", message.partition() or 0
