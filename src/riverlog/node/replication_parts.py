"""What a broker of a cluster does for the replicas of its partitions. A node that is alone has none of it."""

from collections.abc import Callable

from riverlog.metadata import layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.isr_writes import write_isr
from riverlog.model.clock import Clock
from riverlog.model.config.slices import ServerConfig
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.metrics import Metrics
from riverlog.node.duties import Duties, Duty
from riverlog.replication.isr_keeper import IsrKeeper
from riverlog.replication.leading.isr import IsrRules
from riverlog.replication.leading.lease import Lease
from riverlog.replication.replica_gauges import ReplicaGauges
from riverlog.replication.replica_set import ReplicaSet

_LOOK_MS_MAX = 1_000
"""Where records are counted as well, which can be too many within moments."""


class ReplicationParts:
    def __init__(
        self,
        config: ServerConfig,
        store: MetadataStore,
        follower: MetadataFollower,
        replicas: ReplicaSet,
        clock: Clock,
        jitter: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        messages_max = config.replica_lag_messages_max
        look_ms = max(config.replica_lag_max_ms // 2, 1)
        self._look_ms = look_ms if messages_max is None else min(look_ms, _LOOK_MS_MAX)
        self._duties = Duties()
        self._keeper = IsrKeeper(
            replicas,
            lambda write: write_isr(store, write, jitter),
            lambda partition: follower.refresh([layout.partition_state(*partition.topic_partition)]),
            IsrRules(config.replica_lag_max_ms / 1000, messages_max),
            clock=clock,
            jitter=jitter,
            metrics=metrics,
        )
        follower.subscribe(self._keeper.apply)
        timeout_s = config.zookeeper_session_timeout_ms / 1000
        self._lease = Lease(store, replicas.standing, config.node_id, clock, timeout_s)
        if config.is_lease_strict:
            replicas.standing.lease = self._lease
        follower.subscribe(ReplicaGauges(metrics, replicas).apply)
        metrics.gauge("riverlog_lease_remaining_seconds", lambda: self._lease.remaining_s)
        metrics.gauge("riverlog_store_lag_seconds", lambda: follower.lag_s)

    def start(self) -> None:
        self._duties.start(Duty("keeping ISRs", self._look_ms, self._keeper.look))

    async def close(self) -> None:
        await self._duties.stop()
        await self._keeper.close()
        self._lease.close()
