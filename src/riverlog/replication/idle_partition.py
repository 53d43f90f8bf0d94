"""A partition on this node whose log is not open: what questions are answered from, and who waits for it.

Where there are other replicas, all that is in the log is known to be committed; what a leader knows of its
followers is elsewhere (`resting`). It shows the moment in which it was made, and is used by requests until
something changes; the first write makes a `Partition`, which takes over those who wait. Used from the event
loop only.
"""

from typing import Final

from riverlog.model.ids import TopicId, TopicPartition
from riverlog.replication.roles import Role, RoleHolder
from riverlog.replication.waiting import Reader, WaitingReaders
from riverlog.storage.log.closed_log import ClosedLog

_LOOKED_AT_MAX: Final = 4_096


class IdleReaders:
    """Those who wait for partitions whose logs are not open."""

    __slots__ = ("_waiting", "round")

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, WaitingReaders] = {}
        self.round = 0
        """Another number whenever somebody's readers are not kept here any more."""

    def __len__(self) -> int:
        """Of how many partitions somebody waits."""
        return sum(1 for readers in self._waiting.values() if readers)

    def of(self, topic_partition: TopicPartition) -> WaitingReaders:
        """Those of a partition, kept here until `take`, or `forget` while there are none."""
        readers = self._waiting.get(topic_partition)
        if readers is None:
            readers = self._waiting[topic_partition] = WaitingReaders()
        return readers

    def forget(self, topic_partition: TopicPartition, readers: WaitingReaders) -> None:
        """Let go of these, unless they are elsewhere by now."""
        if self._waiting.get(topic_partition) is readers:
            self.round += 1
            del self._waiting[topic_partition]

    def take(self, topic_partition: TopicPartition) -> WaitingReaders | None:
        self.round += 1
        return self._waiting.pop(topic_partition, None)

    def put(self, topic_partition: TopicPartition, readers: WaitingReaders) -> None:
        """Who waits for a partition whose log is closed now."""
        self._waiting[topic_partition] = readers

    def disturb(self, topic_partition: TopicPartition) -> None:
        """The partition has changed hands or gone: look again."""
        if (readers := self._waiting.get(topic_partition)) is not None:
            readers.disturb()

    def drop(self, topic_partition: TopicPartition) -> None:
        """The partition has gone for good: look again, and one of its name has readers of its own."""
        if (readers := self.take(topic_partition)) is not None:
            readers.disturb()

    def disturb_all(self) -> None:
        for readers in list(self._waiting.values()):
            readers.disturb()


class IdlePartition(RoleHolder):
    __slots__ = ("_idle", "_is_kept", "_readers", "_round", "log", "topic_id", "topic_partition")

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        role: Role,
        log: ClosedLog,
        idle: IdleReaders,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._role = role
        self._idle = idle
        self._readers: WaitingReaders | None = None
        self._round = -1
        self._is_kept = True

    def watch(self, reader: Reader) -> None:
        readers = self._readers
        if readers is None or self._round != self._idle.round:
            readers = self._readers = self._idle.of(self.topic_partition)
            self._round = self._idle.round
        readers.add(reader)

    def unwatch(self, reader: Reader) -> None:
        """Also when a `Partition` has taken the readers over since."""
        readers = self._readers
        if readers is not None:
            readers.discard(reader)
            if not self._is_kept and not readers:
                self._idle.forget(self.topic_partition, readers)

    def let_go(self) -> None:
        """Nobody else is given this one: its readers are kept as long as there are any."""
        self._is_kept = False
        if self._readers is not None and not self._readers:
            self._idle.forget(self.topic_partition, self._readers)


class LookedAt:
    """Those that requests were given, while the image and what is known of all logs are the same."""

    __slots__ = ("changes", "kept")

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], IdlePartition] = {}
        self.changes = 0
        """`Logs.changes` when they were made."""

    def make_room(self, changes: int) -> None:
        """Before another one is kept."""
        if changes != self.changes:
            self.changes = changes
            self.forget_all()
        elif len(self.kept) >= _LOOKED_AT_MAX:
            self.kept.pop(next(iter(self.kept))).let_go()

    def forget_all(self) -> None:
        for idle in self.kept.values():
            idle.let_go()
        self.kept.clear()
