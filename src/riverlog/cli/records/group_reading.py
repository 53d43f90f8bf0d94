"""Reading as a member of a group: where it begins, and what is committed.

What has been written is committed. The first position in every partition is committed as well, before a
record of it is read: a group that has stopped after a few records goes on with all of its partitions, also
those of which it has read nothing. A partition without a commit of a group that has others is new, and is
read from its start.
"""

import time
from typing import TYPE_CHECKING, Final

from riverlog.cli.asking.cluster import Place, partitions_of
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.consumer_groups import committed_offsets
from riverlog.cli.asking.positions import End, Settled, Start, resolve
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.printing.output import remark
from riverlog.cli.records.reading import Run, closing, settings
from riverlog.cli.records.wanted import Wanted

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_QUIET_S: Final = 2.0
"""After so long without a record a new group that begins at the end says what it waits for."""
_SHOWN: Final = 3


def read_as_group(connection: Connection, wanted: Wanted, group: str, start: str | None) -> None:
    """Read as a member of a group. `start` is where a new group begins: start, or end (also by default)."""
    from confluent_kafka import TopicPartition

    partitions = {topic: partitions_of(connection, topic) for topic in wanted.topics}
    own = {
        "group.id": group,
        # Never asked for, as every partition has a commit before it is read.
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
        "enable.auto.commit": True,
        "topic.metadata.refresh.interval.ms": 5000,
    }
    consumer = connection.consumer(settings(wanted.isolation, own))
    with closing(consumer):
        for one in wanted.topics[:1]:
            _find_coordinator(connection, consumer, TopicPartition(one, partitions[one][0]), group)
        known = {topic for topic, _ in committed_offsets(connection, group)}
        if start is not None and not known.isdisjoint(wanted.topics):
            remark(f"group {group} goes on where it stopped; `riverlog group seek {group} --to …` moves it")
        positions: dict[str, Settled] = {
            topic: Start() if topic in known or start == "start" else End() for topic in wanted.topics
        }
        run = _GroupRun(connection, consumer, wanted, positions)
        if start is None and not wanted.limits.exit_at_end:
            run.explain_silence(group, [topic for topic in wanted.topics if topic not in known])
        run.read()


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


class _GroupRun(Run):
    def __init__(
        self,
        connection: Connection,
        consumer: "Consumer",
        wanted: Wanted,
        positions: dict[str, Settled],
    ) -> None:
        super().__init__(connection, consumer, wanted)
        self._positions = positions
        self._failure_of_callback: CommandError | None = None
        self._explanation = ""
        self._given_at: float | None = None
        self._subscribe()

    def explain_silence(self, group: str, topics: list[str]) -> None:
        """If nothing comes, say once that these topics are read from their ends only."""
        if topics:
            shown = ", ".join(topics[:_SHOWN]) + (", …" if len(topics) > _SHOWN else "")
            self._explanation = (
                f"waiting for new records of {shown}: a new group begins at the end without --from start; "
                f"once this is stopped, `riverlog group seek {group} --to start` goes back to the start"
            )

    def _note_silence(self) -> None:
        super()._note_silence()
        if not self._explanation or self._given_at is None:
            return
        if self._written:
            self._explanation = ""
        elif time.monotonic() - self._given_at > _QUIET_S:
            remark(self._explanation)
            self._explanation = ""

    def _is_at_end(self) -> bool:
        if self._failure_of_callback is not None:
            raise self._failure_of_callback
        assigned = self._assigned()
        return bool(assigned) and self._remaining.is_at_end(assigned)

    def _missing(self) -> list[Place]:
        assigned = self._assigned()
        if not assigned:
            raise CommandError(
                "the group has given this member no partitions",
                remedy="it may have members enough; otherwise allow more time with --timeout",
                code=ExitCode.CONNECTION,
            )
        return [place for place in assigned if place not in self._remaining.ends]

    def _begin(self, topic: str) -> None:
        self._positions[topic] = Start()
        self._subscribe()

    def _begin_anew(self, topic: str) -> None:
        """The client looks for topics rarely, and at once when it subscribes."""
        self._positions[topic] = Start()
        self._consumer.unsubscribe()
        self._subscribe()

    def _subscribe(self) -> None:
        if self._positions:
            self._consumer.subscribe(list(self._positions), on_assign=self._on_assign)

    def _keep(self, written: "list[Message]") -> None:
        for message in written:
            self._consumer.store_offsets(message=message)

    def _assigned(self) -> list[Place]:
        return [(each.topic, each.partition) for each in self._consumer.assignment()]

    def _on_assign(self, consumer: "Consumer", assigned: "list[TopicPartition]") -> None:
        """Called within a poll, where nothing may be raised."""
        try:
            self._commit_first_positions(consumer, assigned)
        except CommandError as failure:
            self._failure_of_callback = failure
        if assigned and self._given_at is None:
            self._given_at = time.monotonic()

    def _commit_first_positions(self, consumer: "Consumer", assigned: "list[TopicPartition]") -> None:
        from confluent_kafka import KafkaException, TopicPartition

        try:
            known = consumer.committed(assigned, timeout=self._connection.timeout_s)
            for topic, position in self._positions.items():
                unread = [each.partition for each in known if each.topic == topic and each.offset < 0]
                if not unread:
                    continue
                readings = resolve(self._connection, topic, unread, position)
                first = [TopicPartition(topic, each.partition, each.first_offset) for each in readings]
                consumer.commit(offsets=first, asynchronous=False)
        except KafkaException as error:
            raise self._connection.failure(error.args[0], "the first offsets were not committed") from None
