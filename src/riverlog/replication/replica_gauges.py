"""What a leader shows of its partitions: how many lack replicas, and how far their followers are behind."""

from collections.abc import Iterator

from riverlog.model.metrics import Metrics
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Leader


def measure_replicas(metrics: Metrics, replicas: ReplicaSet) -> None:
    """Of the partitions that this node leads and has opened."""

    def led() -> Iterator[Partition]:
        return (each for each in replicas if isinstance(each.role, Leader))

    metrics.gauge(
        "riverlog_under_replicated_partitions",
        lambda: sum(len(each.in_sync.isr) < len(each.in_sync.replicas) for each in led()),
    )
    metrics.gauge(
        "riverlog_under_min_isr_partitions", lambda: sum(not each.has_enough_replicas for each in led())
    )
    metrics.gauge(
        "riverlog_follower_lag_records_max", lambda: max((each.follower_lag for each in led()), default=0)
    )
