"""What a broker shows of the partitions that it has replicas of: how many lack some, how far followers are
behind, how often leaders changed.

What lacks replicas is counted by the image, also where a log is not open, and once for each image.
"""

from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage
from riverlog.model.metrics import Metrics
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Leader


class ReplicaGauges:
    def __init__(self, metrics: Metrics, replicas: ReplicaSet) -> None:
        self._replicas = replicas
        self._image: ClusterImage | None = None
        self._lacking = (0, 0)
        self._epochs = metrics.counter("riverlog_leader_epoch_changes_total")
        metrics.gauge("riverlog_under_replicated_partitions", lambda: self._counted()[0])
        metrics.gauge("riverlog_under_min_isr_partitions", lambda: self._counted()[1])
        metrics.gauge("riverlog_follower_lag_records_max", self._lag_max)

    def apply(self, delta: ImageDelta) -> None:
        """Of partitions that are here, how many have another leader, or the same one anew."""
        node_id = self._replicas.node_id
        for changes in delta.partitions.values():
            for _, before, after in changes:
                is_another = before is not None and before.leader_epoch != after.leader_epoch
                if is_another and node_id in after.replicas:
                    self._epochs.add()

    def _lag_max(self) -> int:
        """Of the partitions that this node leads and has opened."""
        led = (each.led.lag(each.log) for each in self._replicas if isinstance(each.role, Leader))
        return max(led, default=0)

    def _counted(self) -> tuple[int, int]:
        """Partitions that this node leads: those that lack replicas, and those that lack too many."""
        image = self._replicas.image
        if image is not self._image:
            self._image, self._lacking = image, self._count(image)
        return self._lacking

    def _count(self, image: ClusterImage) -> tuple[int, int]:
        node_id = self._replicas.node_id
        under_replicated = under_min_isr = 0
        for name, topic in image.topics.items():
            for each in topic.partitions:
                if each.leader != node_id or len(each.isr) >= len(each.replicas):
                    continue
                under_replicated += 1
                least = min(self._replicas.config_of(name).min_insync_replicas, len(each.replicas))
                under_min_isr += len(each.isr) < least
        return under_replicated, under_min_isr
