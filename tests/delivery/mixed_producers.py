"""Worker: idempotent and transactional producers at work at the same time, until so many are acknowledged.

Acknowledged means what the client may rely on: for a record in a transaction that the commit returned.
"""

import random
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from riverlog.testing.history import Journal, Outcome
from tests.delivery.control import Control, client_settings, options

_TIMEOUT_S = 30.0
_LOOK_S = 5.0
_IN_FLIGHT = 4000
_ABORT_SHARE = 0.15


class Sending(Protocol):
    acknowledged: int

    def look_around(self) -> None:
        """Learn of all brokers."""

    def step(self) -> None:
        """Send some records."""

    def close(self) -> None:
        """Wait until nothing is in flight."""


class Sender:
    """What both kinds have in common: a producer, its journal, values that nobody else sends."""

    def __init__(self, name: str, wanted: Mapping[str, Any], **settings: object) -> None:
        self.name = name
        self.acknowledged = 0
        self.journal = Journal(Path(wanted["directory"]) / f"{name}.jsonl", name)
        self.dice = random.Random(f"{wanted['seed']}:{name}")
        self._topic, self._partitions = wanted["topic"], wanted["partitions"]
        self._sent = 0
        self._offsets: list[tuple[str, int]] = []
        self._settings = client_settings(
            wanted["bootstrap"],
            enable_idempotence=True,
            linger_ms=5,
            batch_num_messages=500,
            **settings,
            **wanted["client"],
        )
        self.producer = Producer(self._settings)

    def look_around(self) -> None:
        """Ask who is there. librdkafka forgets the brokers that an answer does not name, as while they start
        after all of them were killed, and asks by itself after five minutes. When the one that it knows is
        killed meanwhile it mostly begins anew with those it was told of at first, but not always."""
        with suppress(KafkaException):
            self.producer.list_topics(timeout=_LOOK_S)

    def send(self, count: int, transaction: str | None = None) -> None:
        values = [f"{self.name}.{number}" for number in range(self._sent, self._sent + count)]
        self._sent += count
        placed = [(self._topic, self.dice.randrange(self._partitions), value) for value in values]
        self.journal.sending(transaction, placed)
        for topic, partition, value in placed:
            self.producer.produce(topic, value, partition=partition, on_delivery=self._note)
        self.producer.poll(0)

    def write_down(self) -> int:
        """How many were acknowledged since the last time."""
        offsets, self._offsets = self._offsets, []
        self.journal.acknowledged(offsets)
        return len(offsets)

    def _note(self, error: KafkaError | None, message: Message) -> None:
        value, offset = message.value(), message.offset()
        if error is None and isinstance(value, bytes) and offset is not None:
            self._offsets.append((value.decode(), offset))


class Idempotent(Sender):
    def step(self) -> None:
        self.send(500)
        while len(self.producer) > _IN_FLIGHT:
            self.producer.poll(0.05)
        self.acknowledged += self.write_down()

    def close(self) -> None:
        assert self.producer.flush(_TIMEOUT_S) == 0
        self.acknowledged += self.write_down()


class Transactional(Sender):
    def __init__(self, name: str, wanted: Mapping[str, Any], transactional_id: str) -> None:
        super().__init__(name, wanted, transactional_id=transactional_id)
        self._begin()
        self._transactions = 0

    def step(self) -> None:
        self._transactions += 1
        name = f"{self.name}/{self._transactions}"
        count = self.dice.randint(1, 800)
        self.producer.begin_transaction()
        self.send(count, name)
        try:
            if self.dice.random() < _ABORT_SHARE:
                self._end(name, Outcome.FAILED)
            else:
                self._end(name, Outcome.OK)
                self.acknowledged += count
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            print(f"{name} is aborted: {error}", file=sys.stderr)  # noqa: T201 - seen if the worker fails
            self._end(name, Outcome.FAILED)

    def close(self) -> None:
        """Nothing is open between two steps."""

    def _begin_anew(self) -> None:
        """In place of a producer that is of no use any more. librdkafka ends also a transaction of which its
        coordinator has not heard, since it was killed before it was told of the first partition. As Apache
        Kafka does, it says then that there is none, which librdkafka takes for fatal. Were there one all the
        same, its records would keep readers waiting."""
        self.producer = Producer(self._settings)
        self._begin()

    def _begin(self) -> None:
        while True:
            try:
                return self.producer.init_transactions(_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _end(self, name: str, outcome: Outcome) -> None:
        commits = outcome is Outcome.OK
        end = self.producer.commit_transaction if commits else self.producer.abort_transaction
        while True:
            try:
                end(_TIMEOUT_S)
                break
            except KafkaException as error:
                if not commits and error.args[0].code() == KafkaError.INVALID_TXN_STATE:
                    self._begin_anew()
                    break
                if not error.args[0].retriable():
                    raise
        self.write_down()
        self.journal.ended(name, outcome)


def main() -> None:
    control, wanted = Control(), options()
    name = wanted["name"]
    senders: list[Sending] = [Idempotent(f"{name}i{number}", wanted) for number in range(2)]
    senders += [Transactional(f"{name}t{number}", wanted, f"mixed-{number}") for number in range(2)]
    goal = 0
    while not (order := control.ask("ready")).get("finish"):
        # So many more, also where more than that were acknowledged already.
        goal = max(goal, sum(each.acknowledged for each in senders)) + order["records"]
        is_told = False
        for each in senders:
            each.look_around()
        while (acknowledged := sum(each.acknowledged for each in senders)) < goal:
            for each in senders:
                each.step()
            if not is_told:
                control.tell("producing")
                is_told = True
        control.tell("produced", acknowledged=acknowledged)
    for each in senders:
        each.close()
    control.tell("closed", acknowledged=sum(each.acknowledged for each in senders))


if __name__ == "__main__":
    main()
