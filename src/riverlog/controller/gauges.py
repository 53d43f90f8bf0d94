"""What a controller shows: that it is one, and how many partitions of the cluster have no leader."""

from collections.abc import Callable

from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.metrics import Metrics


class ControllerGauges:
    def __init__(self, metrics: Metrics, follower: MetadataFollower, is_active: Callable[[], bool]) -> None:
        """Who is not the controller shows none, so that a sum over all brokers is right."""
        self._follower = follower
        self._is_active = is_active
        self._image: ClusterImage | None = None
        self._offline_count = 0
        metrics.gauge("riverlog_controller_active", is_active)
        metrics.gauge("riverlog_offline_partitions", self._offline)

    def _offline(self) -> int:
        if not self._is_active():
            return 0
        image = self._follower.image
        if image is not self._image:
            self._image = image
            self._offline_count = sum(
                each.leader is None for topic in image.topics.values() for each in topic.partitions
            )
        return self._offline_count
