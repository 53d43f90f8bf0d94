"""What the sink has committed for a query, as the cluster that is written to knows it: for people to see.

Reads only, and takes over nobody's transactional id: a decision that is just being taken is seen the next
time. A decision of which a later one is there already is not seen at all, as only the newest is kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from riverlog.client.cluster import Cluster
from riverlog.spark.sink.decisions import decision_log
from riverlog.spark.sink.slots import open_tasks


@dataclass(slots=True)
class CommitCount:
    """Of one query: all of them if it is asked after each batch, and fewer if it is asked late."""

    identities: Iterable[str]
    """The query's id, or one for each `ForeachBatchWriter` of it."""
    transactions: int = 0
    open_transactions: int = 0
    _counted: dict[str, int] = field(default_factory=dict)
    """By identity, the newest epoch that is counted."""

    def refresh(self, cluster: Cluster) -> None:
        self.open_transactions = 0
        for identity in self.identities:
            self.open_transactions += len(open_tasks(cluster, identity))
            log = decision_log(cluster, identity)
            decision = None if log is None else log.refresh()
            if decision is not None and decision.epoch > self._counted.get(identity, -1):
                self._counted[identity] = decision.epoch
                self.transactions += len(decision.transactions)
