"""A follower as the partition that it copies sees it: it asks for records, again and again."""

from riverlog.model.ids import NodeId
from riverlog.replication.leading.tenure import Asker
from riverlog.replication.partition import Partition
from riverlog.replication.watchers import Watched
from tests.coordinator.hosting import Cluster


class Asking:
    """A follower that asks for this partition among others."""

    def __init__(self, cluster: Cluster, node_id: NodeId) -> None:
        self.node_id = node_id
        self.hurried = 0
        self._confirmations = cluster.replicas.standing.confirmations
        self._question = self._question_before = 0

    def ask(self) -> None:
        self._question_before, self._question = self._question, self._confirmations.count()
        self._confirmations.look()

    @property
    def is_awaited(self) -> bool:
        return self._confirmations.is_awaited(self.node_id)

    def on_partition_changed(self, partition: Partition) -> None:
        pass

    def asked(self, partition: Partition) -> Asker | None:
        return Asker(self.node_id, 0.0, self._question_before)

    def may_rest(self, partition: Partition) -> bool:
        return False

    def move_to(self, watched: Watched) -> None:
        raise AssertionError("nothing rests here")

    def hurry(self) -> None:
        self.hurried += 1
