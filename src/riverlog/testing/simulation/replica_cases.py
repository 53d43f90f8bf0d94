"""What a seed of the profile `replicas` draws beside what all draw: a cluster whose partitions have replicas.

Three nodes, or five in some seeds; factors from 2 to the number of nodes; sizes and times small enough that
followers fall behind, segments roll and sessions end within a run.
"""

import random
from typing import Any, Final, NamedTuple

from riverlog.testing.simulation import faults

_FIVE_NODES_SHARE: Final = 0.12
_UNCLEAN_SHARE: Final = 0.2
TAKES_DATA: Final = ("power_cut", "power_cut_of_all", "lost_disk")
"""After these a replica leaves all ISRs, so that others may be the only ones that may lead."""


class ReplicaPlan(NamedTuple):
    nodes: int
    session_timeout_s: float
    store_answer_s: float
    settings: dict[str, str]
    replication: dict[str, int]
    topic_settings: dict[str, str]


def draw_plan(chance: random.Random, topics: list[str]) -> ReplicaPlan:
    nodes = 5 if chance.random() < _FIVE_NODES_SHARE else 3
    session_timeout_s = float(chance.choice([2, 4, 6]))
    lag_ms = chance.choice([500, 2000, 8000])
    factors = [chance.randint(2, nodes) for _ in range(2)]
    settings = {
        "zookeeper.session.timeout.ms": str(int(session_timeout_s * 1000)),
        "min.insync.replicas": str(chance.choice([1, 1, 2, 2, 3])),
        "offsets.topic.replication.factor": str(factors[0]),
        "transaction.state.log.replication.factor": str(factors[1]),
        "transaction.state.log.min.isr": str(chance.choice([1, 2])),
        "replica.lag.time.max.ms": str(lag_ms),
        "replica.fetch.wait.max.ms": str(chance.choice([100, 500]) if lag_ms > 500 else 100),
        "replica.fetch.backoff.ms": str(chance.choice([100, 1000])),
        "replica.fetch.max.bytes": str(chance.choice([300, 4096, 1024 * 1024])),
        "replica.fetch.response.max.bytes": str(chance.choice([1000, 64 * 1024, 10 * 1024 * 1024])),
        "replica.socket.timeout.ms": str(chance.choice([1000, 5000])),
        "unclean.leader.election.enable": str(chance.random() < _UNCLEAN_SHARE).lower(),
        "auto.leader.rebalance.enable": chance.choice(["true", "false"]),
        "leader.imbalance.check.interval.seconds": str(chance.choice([2, 10])),
    }
    topic_settings = {}
    if chance.random() < 0.6:
        topic_settings["internal.segment.bytes"] = str(chance.choice([600, 4096]))
    replication = {topic: chance.randint(2, nodes) for topic in topics}
    store_answer_s = chance.choice([0.0, 0.005, 0.1])
    return ReplicaPlan(nodes, session_timeout_s, store_answer_s, settings, replication, topic_settings)


def draw_core(chance: random.Random, plan: ReplicaPlan) -> ReplicaPlan:
    """The same, such that a majority of the nodes can do without the others: each has all partitions, nothing
    is committed that fewer than two have."""
    enough = {
        "min.insync.replicas": "2",
        "transaction.state.log.min.isr": "2",
        "offsets.topic.replication.factor": str(plan.nodes),
        "transaction.state.log.replication.factor": str(plan.nodes),
        "unclean.leader.election.enable": "false",
        "riverlog.acks.fsync": "true",
    }
    everywhere = dict.fromkeys(plan.replication, plan.nodes)
    return plan._replace(settings={**plan.settings, **enough}, replication=everywhere)


def draw_lost_nodes(chance: random.Random, nodes: int, chaos_s: float) -> list[dict[str, Any]]:
    """A minority."""
    return [
        {
            "at_s": round(chance.uniform(0, chaos_s * 0.9), 3),
            "fault": "lost_node",
            "how": chance.choice(faults.WAYS_TO_LOSE_A_NODE),
            "way": chance.choice(["to", "from", "both"]),
            "node": node,
            "lasts": True,
            "hosts": [],
        }
        for node in chance.sample(range(nodes), chance.randint(1, (nodes - 1) // 2))
    ]


def draw_kinds(chance: random.Random, *, isolates: bool) -> list[str]:
    """Faults that need others who have what one loses. Where nodes are cut off for ever none is isolated for
    a while, since the end of that would end the other cut as well."""
    if isolates:
        return chance.sample(faults.OF_REPLICAS, chance.randint(0, 3))
    return chance.sample([each for each in faults.OF_REPLICAS if each != "isolated"], chance.randint(0, 2))
