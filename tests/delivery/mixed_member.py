"""Worker: a member of a group that reads, writes down what it read, and commits, until told to leave."""

import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, TopicPartition

from riverlog.testing.history import Journal, Outcome
from tests.delivery.control import Control, client_settings, options

_TIMEOUT_S = 30.0
_RECORDS_PER_COMMIT = 4000


class Member:
    def __init__(self, wanted: Mapping[str, Any], control: Control) -> None:
        self._group = wanted["group"]
        self._control = control
        self._journal = Journal(Path(wanted["directory"]) / f"{wanted['name']}.jsonl", wanted["name"])
        self._uncommitted: dict[tuple[str, int], int] = {}
        self._read = 0
        self.consumer = Consumer(
            client_settings(
                wanted["bootstrap"],
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                fetch_wait_max_ms=50,
                **wanted["settings"],
            )
        )
        self.consumer.subscribe([wanted["topic"]], on_assign=self._note_assigned, on_lost=self._note_lost)

    def step(self) -> None:
        messages = self.consumer.consume(2000, 0.1)
        records = [_record(each) for each in messages if each.error() is None]
        self._journal.read(records)
        for topic, partition, offset, _ in records:
            self._uncommitted[topic, partition] = offset + 1
        self._read += len(records)
        if self._read >= _RECORDS_PER_COMMIT or (self._uncommitted and not records):
            self.commit()

    def commit(self) -> None:
        """What was read, and so written down. A commit that fails is left to whoever reads it again."""
        self._read = 0
        offsets, self._uncommitted = self._uncommitted, {}
        if not offsets:
            return
        began_ns = time.monotonic_ns()
        numbers = [self._journal.committing(self._group, at, end, began_ns) for at, end in offsets.items()]
        wanted = [TopicPartition(topic, partition, end) for (topic, partition), end in offsets.items()]
        try:
            done = self.consumer.commit(offsets=wanted, asynchronous=False)
            failed = done is None or any(each.error is not None for each in done)
            outcome = Outcome.UNKNOWN if failed else Outcome.OK
        except KafkaException:
            outcome = Outcome.UNKNOWN
        for number in numbers:
            self._journal.committed(number, outcome, time.monotonic_ns())

    def close(self) -> None:
        self.commit()
        self.consumer.close()

    def _note_assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        self._journal.positioned([(each.topic, each.partition) for each in given])
        began_ns = time.monotonic_ns()
        try:
            found = consumer.committed(given, _TIMEOUT_S)
        except KafkaException:
            found = []  # The broker was killed just now.
        for each in found:
            if each.error is None:
                offset = None if each.offset == OFFSET_INVALID else each.offset
                at = (each.topic, each.partition)
                self._journal.found(self._group, at, offset, began_ns, time.monotonic_ns())
        self._control.tell("assigned", partitions=[each.partition for each in given])

    def _note_lost(self, _: Consumer, gone: list[TopicPartition]) -> None:
        """They are another's now; committing them is not for this member any more."""
        for each in gone:
            self._uncommitted.pop((each.topic, each.partition), None)


def _record(message: Message) -> tuple[str, int, int, str]:
    topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    assert isinstance(value, bytes)
    return topic, partition, offset, value.decode()


def main() -> None:
    control = Control()
    member = Member(options(), control)
    while not select.select([sys.stdin], [], [], 0)[0]:
        member.step()
    member.close()
    control.tell("left")


if __name__ == "__main__":
    main()
