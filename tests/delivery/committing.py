"""Worker: consumers that each commit in another way, all in one process that is to be killed.

Each reads the same topic in a group of its own. They process what they read and commit it, in the order that
the test wants; between the two, and after both, the worker stops if it is told to.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition

from examples.sqlite_offsets import Totals
from tests.delivery.control import Control, client_settings, options
from tests.delivery.joining import join

WAYS = ("auto", "stored", "sync", "async", "any offset", "database")
"""`auto` stores what it hands out and commits it every so often; `stored` has that only commit what the
program has stored."""

_TIMEOUT_S = 30.0
_AUTO: Mapping[str, dict[str, Any]] = {
    "auto": {"enable_auto_commit": True},
    "stored": {"enable_auto_commit": True, "enable_auto_offset_store": False},
}


class Way:
    """One consumer with its way to commit."""

    def __init__(self, way: str, wanted: Mapping[str, Any]) -> None:
        self.way = way
        self._place = TopicPartition(wanted["topic"], 0)
        self._committed: list[int] = []
        self._results = os.open(wanted["results"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._totals = Totals(Path(wanted["database"])) if way == "database" else None
        settings = client_settings(
            wanted["bootstrap"],
            group_id=f"{wanted['group']}-{way.replace(' ', '-')}",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=wanted["interval_ms"],
            fetch_wait_max_ms=50,
            **_AUTO.get(way, {"enable_auto_commit": False}),
            **wanted["membership_settings"],
        )
        self.consumer = Consumer({**settings, "on_commit": self._note_commit})
        if self._totals is not None:
            position = self._totals.position(self._place.topic, 0)
            self.consumer.assign([TopicPartition(self._place.topic, 0, position)])
            self._early: list[Message] = []
        else:
            self._early = join(self.consumer, [self._place], wanted["membership_settings"])

    def position(self) -> int:
        """Where this way would go on."""
        if self._totals is not None:
            return self._totals.position(self._place.topic, 0)
        [found] = self.consumer.committed([self._place], _TIMEOUT_S)
        return 0 if found.offset == OFFSET_INVALID else found.offset

    def take(self, count: int) -> list[Message]:
        """So many records, and no more handed out until the next call: `auto` would commit them too."""
        self.consumer.resume([self._place])
        taken, self._early = self._early[:count], self._early[count:]
        while len(taken) < count:
            got = self.consumer.consume(count - len(taken), 1.0)
            taken += [each for each in got if each.error() is None]
        self.consumer.pause([self._place])
        return taken

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext() if self._totals is None else self._totals.transaction()

    def process(self, records: Sequence[Message]) -> None:
        if self._totals is not None:
            self._totals.count(records)
            return
        for record in records:
            line = json.dumps([self.way, record.offset(), os.getpid()]) + "\n"
            os.write(self._results, line.encode())

    def commit(self, records: Sequence[Message], offset: int) -> None:
        """Return when the commit has been confirmed."""
        match self.way:
            case "auto" | "stored":
                if self.way == "stored":
                    self.consumer.store_offsets(message=records[-1])
                self._poll_until_committed(offset)
            case "sync":
                self._commit_in_spite_of_errors(self.consumer.position([self._place]))
            case "any offset":
                self._commit_in_spite_of_errors([TopicPartition(self._place.topic, 0, offset)])
            case "async":
                self.consumer.commit(asynchronous=True)
                self._poll_until_committed(offset)
            case "database":
                pass  # Done by the end of the transaction.

    def _commit_in_spite_of_errors(self, offsets: list[TopicPartition]) -> None:
        """A commit that fails while the broker is away is the program's to repeat."""
        while True:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                if error.args[0].fatal():
                    raise
                self.consumer.poll(0.05)  # A member that was given up joins again.
            else:
                return

    def _poll_until_committed(self, offset: int) -> None:
        while not self._committed or self._committed[-1] < offset:
            self.consumer.poll(0.01)

    def _note_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        if error is None:
            self._committed += [each.offset for each in offsets if each.error is None]
        elif self.way == "async":
            self.consumer.commit(asynchronous=True)


def run(ways: Sequence[Way], order: Mapping[str, Any], control: Control) -> None:
    """Let each way read, process and commit so many records."""
    taken = {each.way: each.take(order["records"]) for each in ways}
    offsets = {way: _offset_to_commit(way, records) for way, records in taken.items()}

    def process() -> None:
        for each in ways:
            each.process(taken[each.way])

    def commit() -> None:
        for each in ways:
            each.commit(taken[each.way], offsets[each.way])

    first, second = (process, commit) if order["first"] == "process" else (commit, process)
    transactions = [each.transaction() for each in ways]
    for transaction in transactions:
        transaction.__enter__()
    first()
    _stop("between", order, control, read={way: records[0].offset() for way, records in taken.items()})
    second()
    for transaction in transactions:
        transaction.__exit__(None, None, None)
    _stop("done", order, control, committed=offsets)


def _offset_to_commit(way: str, records: Sequence[Message]) -> int:
    """Behind the last record, or for `any offset` behind some other."""
    last = records[len(records) // 2 if way == "any offset" else -1].offset()
    assert last is not None
    return last + 1


def _stop(point: str, order: Mapping[str, Any], control: Control, **facts: object) -> None:
    if order["stop_at"] == point:
        control.ask(point, **facts)


def main() -> None:
    control, wanted = Control(), options()
    ways = [Way(way, wanted) for way in wanted["ways"]]
    while not (order := control.ask("ready", positions={each.way: each.position() for each in ways})).get(
        "finish"
    ):
        run(ways, order, control)
    for each in ways:
        each.consumer.close()


if __name__ == "__main__":
    main()
