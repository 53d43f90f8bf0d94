"""What there is to know of the replicas of a cluster beyond its metadata: who may lead, and who lags.

Asked of partitions that lack something; the lag of all, as long as these are not too many.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.eligible_leaders import Eligible, eligible_leaders
from riverlog.cli.asking.overview import Overview, PartitionView
from riverlog.cli.asking.replica_lag import Lags, Replicated, replica_lags
from riverlog.cli.asking.without_controller import settings_of_topics

_PARTITIONS_MAX: Final = 5000
"""Of so many the lag of each replica is asked for."""
_MIN_ISR: Final = "min.insync.replicas"


class ReplicaStates(NamedTuple):
    eligible: dict[Place, Eligible]
    lags: dict[Place, Lags]
    min_isr: dict[str, int]
    """By topic, of those that have partitions which lack something."""

    def is_under_min_isr(self, partition: PartitionView) -> bool:
        """No more can be in sync than there are replicas."""
        least = min(self.min_isr.get(partition.topic, 1), len(partition.replicas))
        return len(partition.in_sync) < least

    @property
    def max_lag(self) -> int | None:
        """None where no replica was asked."""
        return max(
            (lag for lags in self.lags.values() for lag in lags.values() if lag is not None), default=None
        )


def replica_states(connection: Connection, found: Overview) -> ReplicaStates:
    lacking = found.lacking
    topics = {each.topic for each in lacking}
    replicated = [each for each in found.partitions if len(each.replicas) > 1]
    asked = replicated if len(replicated) <= _PARTITIONS_MAX else lacking
    return ReplicaStates(
        eligible_leaders(connection, topics, found.silent),
        replica_lags(
            connection,
            [Replicated(each.place, each.leader, each.replicas) for each in asked],
            found.silent,
        ),
        _least_in_sync(connection, topics, found.silent),
    )


def _least_in_sync(connection: Connection, topics: Iterable[str], silent: Collection[int]) -> dict[str, int]:
    return {
        topic: next((int(each.value) for each in entries if each.name == _MIN_ISR and each.value), 1)
        for topic, entries in settings_of_topics(connection, topics, silent).items()
    }
