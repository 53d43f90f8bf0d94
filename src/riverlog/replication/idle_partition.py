"""A partition on this node whose log is not open: what questions are answered from, and who waits for it.

Where there are other replicas, all that is in the log is known to be committed; what a leader knows of its
followers is elsewhere (`resting`). It shows the moment in which it was made, and is used by requests until
something changes; the first write makes a `Partition`, which takes over those who wait. Used from the event
loop only.
"""

from uuid import UUID

from riverlog.model.ids import TopicPartition
from riverlog.replication.roles import Role, RoleHolder
from riverlog.replication.waiting import Reader, WaitingReaders
from riverlog.storage.log.closed_log import ClosedLog


class IdleReaders:
    """Those who wait for partitions whose logs are not open."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, WaitingReaders] = {}
        """Of the partitions that somebody waits for."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, topic_partition: TopicPartition, reader: Reader) -> WaitingReaders:
        """From now on it waits, among these."""
        readers = self._waiting.get(topic_partition)
        if readers is None:
            readers = self._waiting[topic_partition] = WaitingReaders()
        readers.add(reader)
        return readers

    def discard(self, topic_partition: TopicPartition, reader: Reader, readers: WaitingReaders) -> None:
        """It waits no more among these, wherever they are by now."""
        readers.discard(reader)
        if not readers and self._waiting.get(topic_partition) is readers:
            del self._waiting[topic_partition]

    def take(self, topic_partition: TopicPartition) -> WaitingReaders | None:
        return self._waiting.pop(topic_partition, None)

    def put(self, topic_partition: TopicPartition, readers: WaitingReaders) -> None:
        """Who waits for a partition whose log is closed now."""
        self._waiting[topic_partition] = readers

    def disturb(self, topic_partition: TopicPartition) -> None:
        """The partition has changed hands or gone: look again."""
        if (readers := self._waiting.get(topic_partition)) is not None:
            readers.disturb()

    def disturb_all(self) -> None:
        for readers in list(self._waiting.values()):
            readers.disturb()


class IdlePartition(RoleHolder):
    __slots__ = ("_idle", "_readers", "log", "topic_id", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, topic_id: UUID, role: Role, log: ClosedLog, idle: IdleReaders
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self._role = role
        self._idle = idle
        self._readers: WaitingReaders | None = None

    def watch(self, reader: Reader) -> None:
        self._readers = self._idle.add(self.topic_partition, reader)

    def unwatch(self, reader: Reader) -> None:
        """Also when a `Partition` has taken the readers over since."""
        if self._readers is not None:
            self._idle.discard(self.topic_partition, reader, self._readers)
