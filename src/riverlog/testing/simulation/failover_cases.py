"""What a seed of the profile `failovers` draws beside what `replicas` draws: leaders that move all the time.

Sessions of a second or two, faults that take a leader away one right after the other, small segments and
fetches, clients that write in quick succession, also with acks=1, and unclean elections in most seeds. What
needs two failovers in a row, an answer on its way across one, or a client that does not wait, is met in few
seeds here, and hardly ever with the other profiles.
"""

import random
from enum import Enum
from typing import Any, Final

from riverlog.testing.simulation.replica_cases import ReplicaPlan

CHAOS_S: Final = (8.0, 16.0)
OPERATIONS_MIN: Final = 150
_UNCLEAN_SHARE: Final = 0.7
_LONG_SHARE: Final = 0.3
_PAUSES_S: Final = (0.1, 0.4)
_GAPS_S: Final = (0.1, 1.2)
KINDS: Final = (
    *("kill", "restart", "pause", "isolated", "isolated", "expired_session", "kill_all"),
    *("cut_nodes", "cut_store", "lost_answers", "stale_reads", "slow_store", "late_watches", "slow_link"),
    *("slow_disk", "killed_client"),
)
_LONG: Final = frozenset({"stale_reads", "slow_store", "late_watches", "slow_link", "slow_disk"})
"""These take no leader away; they are there while others do."""


class About(Enum):
    """What a seed has more of than the others."""

    NOTHING = "nothing"
    GROUPS = (
        "nothing is lost by unclean elections, and members of groups look where to go on before they commit"
    )
    STORE = "the store is slow and loses answers most of the time"


def about(seed: int) -> About:
    return (About.NOTHING, About.GROUPS, About.NOTHING, About.STORE)[seed % 4]


def about_groups(
    plan: ReplicaPlan, clients: list[dict[str, Any]]
) -> tuple[ReplicaPlan, list[dict[str, Any]]]:
    settings = {**plan.settings, "unclean.leader.election.enable": "false"}
    looking = [{**each, "looks_first": True} if each["kind"] == "classic" else each for each in clients]
    return plan._replace(settings=settings), looking


def draw_plan(chance: random.Random, plan: ReplicaPlan) -> ReplicaPlan:
    session_timeout_s = float(chance.choice([1, 1, 2]))
    settings = {
        "zookeeper.session.timeout.ms": str(int(session_timeout_s * 1000)),
        "min.insync.replicas": str(chance.choice([1, 1, 2])),
        "transaction.state.log.min.isr": "1",
        "replica.lag.time.max.ms": str(chance.choice([500, 1000])),
        "replica.fetch.wait.max.ms": "100",
        "replica.fetch.backoff.ms": "100",
        "replica.fetch.max.bytes": str(chance.choice([300, 1024, 4096])),
        "replica.socket.timeout.ms": "1000",
        "unclean.leader.election.enable": str(chance.random() < _UNCLEAN_SHARE).lower(),
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": "1",
        "riverlog.acks.fsync": "false",
        "log.segment.delete.delay.ms": "0",
        "offsets.load.buffer.size": str(chance.choice([100, 5_000_000])),
        "transaction.state.log.load.buffer.size": str(chance.choice([100, 5_000_000])),
    }
    return plan._replace(
        session_timeout_s=session_timeout_s,
        store_answer_s=chance.choice([0.0, 0.02, 0.2]),
        settings={**plan.settings, **settings},
        topic_settings={"internal.segment.bytes": str(chance.choice([400, 600, 4096]))},
    )


def draw_clients(chance: random.Random) -> list[dict[str, Any]]:
    clients: list[dict[str, Any]] = [
        {"name": "admin", "kind": "admin"},
        {"name": "idempotent", "kind": "producer", "topic": "plain", "is_idempotent": True, "acks": -1},
        {"name": "hasty", "kind": "producer", "topic": "plain", "is_idempotent": False, "acks": 1},
        {"name": "scratch", "kind": "producer", "topic": "scratch", "is_idempotent": False, "acks": 1},
        {"name": "reader", "kind": "consumer", "topic": "plain"},
        {"name": "older", "kind": "transactor", "is_newer": False, "hasty_chance": 0.4},
        {"name": "newer", "kind": "transactor", "is_newer": True, "hasty_chance": 0.2},
        {"name": "committed", "kind": "consumer", "topic": "transactional", "is_committed_only": True},
        *({"name": f"classic{each}", "kind": "classic"} for each in range(2)),
    ]
    for client in clients:
        client["pause_s"] = round(chance.uniform(*_PAUSES_S), 2)
    return clients


def draw_faults(chance: random.Random, nodes: int, chaos_s: float, hosts: list[str]) -> list[dict[str, Any]]:
    """One right after the other, each at another node than the last more often than not."""
    faults: list[dict[str, Any]] = []
    at_s = chance.uniform(0, 1)
    while at_s < chaos_s - 1:
        kind = chance.choice(KINDS)
        is_long = kind in _LONG or chance.random() < _LONG_SHARE
        for_s = chance.uniform(1, 5) if is_long else chance.uniform(0.05, 1)
        faults.append(
            {
                "at_s": round(at_s, 3),
                "fault": kind,
                "node": chance.randrange(nodes),
                "for_s": round(for_s, 3),
                "way": chance.choice(["to", "from", "both"]),
                "hosts": [chance.choice(hosts)] if kind == "killed_client" else [],
                "count": chance.randint(1, 2),
                "delay_s": round(chance.uniform(0.05, 0.5), 3),
            }
        )
        if kind == "slow_link":
            faults[-1]["hosts"] = [f"broker{chance.randrange(nodes)}"]
        at_s += chance.uniform(*_GAPS_S)
    return faults


def draw_store_faults(chance: random.Random, nodes: int, chaos_s: float) -> list[dict[str, Any]]:
    """A store that is slow, tells of changes late, and leaves some writes that it carries out unanswered."""
    faults: list[dict[str, Any]] = []
    at_s = 0.0
    while at_s < chaos_s - 1:
        for_s = round(chance.uniform(1, 3), 3)
        delay_s = round(chance.uniform(0.05, 0.3), 3)
        slow = {"at_s": round(at_s, 3), "for_s": for_s, "delay_s": delay_s}
        faults += [{"fault": "slow_store", **slow}, {"fault": "late_watches", **slow}]
        for _ in range(3):
            lost_s = round(chance.uniform(at_s, min(at_s + for_s, chaos_s)), 3)
            faults.append({"at_s": lost_s, "fault": "lost_answers", "count": 1})
        at_s += for_s
    return [{**each, "node": chance.randrange(nodes)} for each in faults]
