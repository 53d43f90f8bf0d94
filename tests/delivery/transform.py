"""Worker: consume, transform, produce in transactions, with a stop wherever the test wants to kill.

The test names for each transaction how many records it takes, where to stop, and whether to commit it. What
a record becomes carries the name of the transaction, so that a second attempt can be told from the first.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, Producer, TopicPartition

from riverlog.testing.history import Journal, Outcome, Place
from tests.delivery.control import Control, client_settings, options
from tests.delivery.joining import join, without

_TIMEOUT_S = 30.0


def transformed(value: str) -> str:
    return f"{int(value) * 3 + 1}"


class Transformer:
    def __init__(self, wanted: Mapping[str, Any], control: Control) -> None:
        self._wanted = wanted
        self._control = control
        self._journal = Journal(wanted["journal"], wanted["name"])
        self._source = [TopicPartition(wanted["source"], each) for each in range(wanted["partitions"])]
        self._transactions = 0
        self._acknowledged: list[tuple[str, int]] = []
        self.producer = Producer(
            client_settings(wanted["bootstrap"], transactional_id=wanted["transactional_id"], linger_ms=0)
        )
        self.producer.init_transactions(_TIMEOUT_S)
        self.consumer = Consumer(
            client_settings(
                wanted["bootstrap"],
                group_id=wanted["group"],
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                fetch_wait_max_ms=50,
                **wanted["membership_settings"],
            )
        )
        self._assigned_anew: set[Place] = set()
        self._early: list[Message] = []
        self._early = join(self.consumer, self._source, wanted["membership_settings"], self._note_assigned)
        self._assigned_anew.clear()

    def committed(self) -> list[int]:
        """The group's position in each partition."""
        found = self.consumer.committed(self._source, _TIMEOUT_S)
        return [0 if each.offset == OFFSET_INVALID else each.offset for each in found]

    def take(self, count: int) -> list[Message]:
        """So many records, or those that are left."""
        taken, self._early = self._early[:count], self._early[count:]
        while len(taken) < count:
            got = self.consumer.consume(count - len(taken), 0.2)
            taken = without(taken, self._assigned_anew)
            self._assigned_anew.clear()
            taken += [each for each in got if each.error() is None]
            if not got and self._is_at_end():
                break
        # A member that has been replaced since must not commit for its group.
        self._membership = self.consumer.consumer_group_metadata()
        return taken

    def run(self, order: Mapping[str, Any]) -> None:
        """One transaction as ordered."""
        records = self.take(order["records"])
        if not records:
            self._control.tell("exhausted")
            return
        self._transactions += 1
        name = f"{self._wanted['name']}.{self._transactions}"
        try:
            self._send(name, records, order["stop_at"])
            self._stop("ending", order["stop_at"])
            if order["end"] == "commit":
                self._retry(self.producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(name)
            self._control.tell("aborted", why=str(error), committed=self.committed())
            return
        if order["end"] == "commit":
            self._journal.ended(name, Outcome.OK)
            self._control.tell("committed", records=len(records), committed=self.committed())
        else:
            self._abort(name)
            self._control.tell("aborted", why="as ordered", committed=self.committed())

    def close(self) -> None:
        self.consumer.close()

    def _abort(self, name: str) -> None:
        """Abort, and go back to where the group is: a consumer does not do so by itself."""
        self._retry(self.producer.abort_transaction)
        self._journal.ended(name, Outcome.FAILED)
        self._early.clear()
        assigned = {(each.topic, each.partition) for each in self.consumer.assignment()}
        for place, offset in zip(self._source, self.committed(), strict=True):
            if (place.topic, place.partition) in assigned:
                self.consumer.seek(TopicPartition(place.topic, place.partition, offset))

    def _retry(self, end: Callable[[float], None]) -> None:
        while True:
            try:
                return end(_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _send(self, name: str, records: list[Message], stop_at: str | None) -> None:
        self._acknowledged.clear()
        self.producer.begin_transaction()
        for number, record in enumerate(records):
            value = f"{transformed(_text(record))}@{name}"
            partition = record.partition() or 0
            self._journal.sending(name, [(self._wanted["sink"], partition, value)])
            self.producer.produce(
                self._wanted["sink"], value, partition=partition, on_delivery=self._note_delivery
            )
            if number == 0:
                self._flush()
                self._stop("begun", stop_at)
        self._flush()
        self._stop("produced", stop_at)
        self.producer.send_offsets_to_transaction(_behind(records), self._membership, _TIMEOUT_S)
        self._stop("offsets sent", stop_at)

    def _flush(self) -> None:
        assert self.producer.flush(_TIMEOUT_S) == 0, "records were neither acknowledged nor refused"
        self._journal.acknowledged(self._acknowledged)
        self._acknowledged.clear()

    def _note_delivery(self, error: object, message: Message) -> None:
        if error is None:
            self._acknowledged.append((_text(message), message.offset() or 0))

    def _stop(self, point: str, stop_at: str | None) -> None:
        if point == stop_at:
            self._control.ask(point)

    def _is_at_end(self) -> bool:
        """A partition of which nothing has been read since it was assigned is at the committed offset."""
        for read, committed in zip(self.consumer.position(self._source), self.committed(), strict=True):
            _, end = self.consumer.get_watermark_offsets(read, _TIMEOUT_S)
            if max(read.offset, committed) < end:
                return False
        return True

    def _note_assigned(self, places: set[Place]) -> None:
        self._early = without(self._early, places)
        self._assigned_anew |= places


def _behind(records: Iterable[Message]) -> list[TopicPartition]:
    """The position behind the last record of each partition."""
    ends = {(each.topic() or "", each.partition() or 0): (each.offset() or 0) + 1 for each in records}
    return [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]


def _text(message: Message) -> str:
    value = message.value()
    assert isinstance(value, bytes)
    return value.decode()


def main() -> None:
    control = Control()
    transformer = Transformer(options(), control)
    while not (order := control.ask("ready", committed=transformer.committed())).get("finish"):
        transformer.run(order)
    transformer.close()


if __name__ == "__main__":
    main()
