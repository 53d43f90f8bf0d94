"""Which role the metadata gives this node in a partition, and whether the log that it has allows that.

A broker takes a partition only from a controller that knows of its present registration, and neither leads
nor follows with a log that goes beyond the metadata (`logs_ahead`). Not here: the partitions (`replica_set`),
and what a role does to one (`partition`).
"""

from riverlog.metadata.image import PartitionImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicPartition
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.leading.standing import Standing
from riverlog.replication.logs_ahead import LogsAhead
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.storage.log.closed_log import LogFacts
from riverlog.storage.log.log import Log


class AssignedRoles:
    __slots__ = ("_is_alone", "_let_go", "_node_id", "_standing", "ahead")

    def __init__(self, node_id: NodeId, standing: Standing, *, is_alone: bool) -> None:
        """`is_alone` as for the `ReplicaSet`; who has the metadata to itself leads whatever is in the log."""
        self._node_id = node_id
        self._standing = standing
        self._is_alone = is_alone
        self.ahead = LogsAhead()
        self._let_go: dict[TopicPartition, LeaderEpoch] = {}
        """Of closed logs with other replicas that this node has led: under which epoch."""

    def of(self, image: PartitionImage) -> Role:
        """As the metadata says, whatever is in the log."""
        if image.leader != self._node_id:
            return Follower(image.leader_epoch, image.leader)
        if self._is_alone or self._is_elected(image):
            return Leader(image.leader_epoch)
        return Follower(image.leader_epoch, None)

    def with_log(self, log: Log, image: PartitionImage, *, is_opened: bool = False) -> Role:
        """`is_opened`: it was closed before."""
        role, latest = self.of(image), log.state.epochs.latest
        # A leader has not written anything under its epoch before its log is opened for the first time in it.
        was_led = is_opened and self._let_go.pop(log.topic_partition, None) == image.leader_epoch
        is_new = is_opened and isinstance(role, Leader) and len(image.replicas) > 1 and not was_led
        known_epoch = image.leader_epoch - 1 if is_new else image.leader_epoch
        is_noted = self.ahead.is_noted(log.topic_partition, image.leader_epoch)
        if latest is None or self._is_alone or not (latest > known_epoch or is_noted):
            self.ahead.forget(log.topic_partition)
            return role
        self.ahead.note(log.topic_partition, latest, image.leader_epoch)
        return Follower(image.leader_epoch, None)

    def with_failed_directory(self, image: PartitionImage) -> Offline:
        """Clients go to the leader, where that is another broker by now."""
        is_led_elsewhere = image.leader is not None and image.leader != self._node_id
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_led_elsewhere else ErrorCode.KAFKA_STORAGE_ERROR
        return Offline(image.leader_epoch, error)

    def in_sync(self, image: PartitionImage) -> InSyncReplicas:
        return InSyncReplicas(
            self._node_id,
            image.isr,
            image.replicas,
            has_eligible=bool(image.elr),
            partition_epoch=image.partition_epoch,
        )

    def goes_beyond(self, facts: LogFacts, image: PartitionImage) -> bool:
        """Whether a closed log does."""
        return bool(facts.epochs) and facts.epochs[-1][0] > image.leader_epoch and not self._is_alone

    def note_ahead(self, log: Log, image: PartitionImage) -> bool:
        """Its leader was found to have another history under the same epoch; whether that counts."""
        latest = log.state.epochs.latest
        if latest is None or self._is_alone:
            return False
        self.ahead.note(log.topic_partition, latest, image.leader_epoch)
        return True

    def note_let_go(self, topic_partition: TopicPartition, led_under: LeaderEpoch) -> None:
        """The log of a partition with other replicas is closed, which this node leads."""
        self._let_go[topic_partition] = led_under

    def forget(self, topic_partition: TopicPartition) -> None:
        """It is not here any more."""
        self.ahead.forget(topic_partition)
        self._let_go.pop(topic_partition, None)

    def _is_elected(self, image: PartitionImage) -> bool:
        """Whether this broker became the leader since it is registered as it is now."""
        me = self._standing.brokers.get(self._node_id)
        return me is not None and me.epoch == image.leader_broker_epoch
