"""A case: everything about a run that is not the seed's further chance, as a value that can be kept as JSON.

A seed draws one: settings of the broker, quality of the network, clients, and a schedule of faults. Shrinking
leaves parts out; what is left is a case too, and runs the same way.
"""

import json
import random
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from riverlog.replication.idle_logs import INTERVAL_MS
from riverlog.testing.simulation import failover_cases, faults
from riverlog.testing.simulation.own_faults import draw_own_faults
from riverlog.testing.simulation.replica_cases import (
    TAKES_DATA,
    ReplicaPlan,
    draw_core,
    draw_kinds,
    draw_lost_nodes,
    draw_plan,
)
from riverlog.testing.simulation.schedules import ScheduleError, check_clients, check_fault, check_links

VERSION: Final = 1
FORM_S: Final = 5.0
OPERATIONS_MIN: Final = 600
PROFILES: Final = ("standard", "liveness", "cluster", "replicas", "core", "failovers")
"""One node; one node, with faults of some clients that stay for ever; three nodes on one ensemble; the same,
with replicas, or five; the same, with some nodes that are lost for ever; with replicas, and leaders that move
all the time."""
CLUSTERS: Final = ("cluster", "replicas", "core", "failovers")
REPLICATED: Final = ("replicas", "core", "failovers")
CLUSTER_NODES: Final = 3
TOPICS: Final = {"plain": 2, "compacted": 1, "transactional": 2, "trimmed": 1, "scratch": 1}
"""How many partitions they have."""

_SHORTER: Final = 0.6
"""Nodes that copy from each other have more to do in the same time."""
_EVERYTHING_BUT_DISK: Final = (
    "kill",
    "restart",
    "pause",
    "stall",
    "cut",
    "reset",
    "half_open",
    "slow_link",
    "stopped_client",
    "killed_client",
    "short_writes",
    "slow_disk",
    "cold",
    "clock_jump",
    "clock_drift",
    "slow_store",
    "late_watches",
    "unwritable_store",
)
_DISK: Final = ("power_cut", "eio_read", "eio_write", "eio_sync", "full_disk")


@dataclass(frozen=True, slots=True)
class Case:
    seed: int
    profile: str = "standard"
    chaos_s: float = 20.0
    settings: dict[str, str] = field(default_factory=dict)
    links: dict[str, float] = field(default_factory=dict)
    clients: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    nodes: int = 1
    session_timeout_s: float = 6.0
    """Of the nodes' sessions with the ensemble that they share."""
    store_answer_s: float = 0.0
    """Up to how long after it has taken effect a write to that ensemble is answered."""
    replication: dict[str, int] = field(default_factory=dict)
    """Replication factors of topics, where they are not 1."""
    topic_settings: dict[str, str] = field(default_factory=dict)
    """Of all topics that the clients use."""
    operations_min: int = 0
    """How many operations the clients complete at least."""
    idle_looks_ms: int = INTERVAL_MS
    """How often brokers look for logs that nobody uses."""
    version: int = VERSION

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def check(case: Case) -> None:
    """Raises `ScheduleError`."""
    if case.profile not in PROFILES:
        raise ScheduleError(f"unknown profile {case.profile!r}; the profiles are {', '.join(PROFILES)}")
    if case.nodes < 1:
        raise ScheduleError(f"a case has nodes, not {case.nodes}")
    check_links(case.links)
    check_clients(case.clients, TOPICS)
    directories = case.settings.get("log.dirs", "/data").split(",")
    for fault in case.faults:
        check_fault(fault, chaos_s=case.chaos_s, nodes=case.nodes, directories=directories)


def draw(seed: int, profile: str = "standard") -> Case:
    """The case of a seed."""
    chance = random.Random(f"case {profile} {seed}")
    clients = _draw_clients(chance)
    chaos_s = round(chance.uniform(20, 60) * (_SHORTER if profile in REPLICATED else 1), 1)
    kinds = chance.sample(_EVERYTHING_BUT_DISK, chance.randint(3, 8)) + chance.sample(
        _DISK, chance.randint(0, 3)
    )
    is_cluster = profile in CLUSTERS
    plan = None
    if is_cluster:
        kinds += chance.sample(faults.OF_A_CLUSTER, chance.randint(2, 4))
    if profile in REPLICATED:
        plan = draw_plan(chance, list(TOPICS))
        kinds += draw_kinds(chance, isolates=profile != "core")
    if plan is not None and profile == "core":
        plan = draw_core(chance, plan)
        kinds = [each for each in kinds if each not in TAKES_DATA]
    nodes = 1 if not is_cluster else CLUSTER_NODES if plan is None else plan.nodes
    count = chance.randint(5, 25)
    hosts = [each["name"] for each in clients]
    drawn = [
        {
            "at_s": round(chance.uniform(0, chaos_s * 0.9), 3),
            **_draw_fault(chance, chance.choice(kinds), hosts),
        }
        for _ in range(count)
    ]
    if is_cluster:
        drawn = [{**each, "node": chance.randrange(nodes)} for each in drawn]
    if profile == "liveness":
        drawn += _draw_lasting(chance, chaos_s, [each for each in hosts if each != "admin"])
    if profile == "core":
        drawn += draw_lost_nodes(chance, nodes, chaos_s)
    own = draw_own_faults(seed, profile, chaos_s, hosts)
    drawn += own.faults
    case = Case(
        seed,
        profile,
        chaos_s,
        {**_draw_settings(chance), **own.settings},
        _draw_links(chance),
        clients,
        sorted(drawn, key=lambda each: each["at_s"]),
        nodes,
        operations_min=OPERATIONS_MIN if plan is None else OPERATIONS_MIN // 2,
        idle_looks_ms=own.idle_looks_ms,
    )
    if plan is not None:
        case = replace(
            case,
            settings={**case.settings, **plan.settings},
            session_timeout_s=plan.session_timeout_s,
            store_answer_s=plan.store_answer_s,
            replication=plan.replication,
            topic_settings=plan.topic_settings,
        )
    if plan is not None and profile == "failovers":
        case = _with_failovers(case, plan)
    check(case)
    return case


def _with_failovers(case: Case, plan: ReplicaPlan) -> Case:
    """With other clients and faults, one right after the other."""
    chance = random.Random(f"failovers {case.seed}")
    plan = failover_cases.draw_plan(chance, plan)
    clients = failover_cases.draw_clients(chance)
    about = failover_cases.about(case.seed)
    if about is failover_cases.About.GROUPS:
        plan, clients = failover_cases.about_groups(plan, clients)
    chaos_s = round(chance.uniform(*failover_cases.CHAOS_S), 1)
    hosts = [each["name"] for each in clients]
    drawn = failover_cases.draw_faults(chance, plan.nodes, chaos_s, hosts)
    if about is failover_cases.About.STORE:
        drawn += failover_cases.draw_store_faults(chance, plan.nodes, chaos_s)
    return replace(
        case,
        chaos_s=chaos_s,
        settings={**case.settings, **plan.settings},
        session_timeout_s=plan.session_timeout_s,
        store_answer_s=plan.store_answer_s,
        topic_settings=plan.topic_settings,
        clients=clients,
        faults=sorted(drawn, key=lambda each: each["at_s"]),
        operations_min=failover_cases.OPERATIONS_MIN,
    )


def _draw_settings(chance: random.Random) -> dict[str, str]:
    settings = {
        "offsets.topic.num.partitions": str(chance.choice([1, 2])),
        "transaction.state.log.num.partitions": str(chance.choice([1, 2])),
        "group.initial.rebalance.delay.ms": str(chance.choice([0, 100, 1000])),
        "log.roll.ms": str(chance.choice([1000, 3000, 10_000])),
        "log.cleaner.backoff.ms": str(chance.choice([200, 1000])),
        "log.cleaner.min.cleanable.ratio": str(chance.choice([0.01, 0.1, 0.5])),
        "log.cleaner.dedupe.buffer.size": str(1024 * 1024),
        "log.retention.check.interval.ms": "2000",
        "log.segment.delete.delay.ms": str(chance.choice([0, 1000, 60_000])),
        "replica.high.watermark.checkpoint.interval.ms": str(chance.choice([500, 5000])),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "log.index.interval.bytes": str(chance.choice([64, 512, 4096])),
        "riverlog.acks.fsync": chance.choice(["true", "false"]),
    }
    if chance.random() < 0.3:
        settings["log.flush.interval.messages"] = str(chance.choice([1, 20]))
    if chance.random() < 0.3:
        settings["log.dirs"] = "/data,/more"
    return settings


def _draw_links(chance: random.Random) -> dict[str, float]:
    return {
        "latency_s": chance.choice([0.0001, 0.001, 0.01]),
        "spread_s": chance.choice([0.0005, 0.005, 0.03]),
        "buffer_bytes": chance.choice([2048, 16 * 1024, 128 * 1024]),
        "cut_chance": chance.choice([0.0, 0.05, 0.3]),
    }


def _draw_clients(chance: random.Random) -> list[dict[str, Any]]:
    clients: list[dict[str, Any]] = [
        {"name": "admin", "kind": "admin"},
        {"name": "idempotent", "kind": "producer", "topic": "plain", "is_idempotent": True, "acks": -1},
        {"name": "keyed", "kind": "producer", "topic": "compacted", "is_idempotent": True, "keys": 8},
        {"name": "reader", "kind": "consumer", "topic": "plain"},
        {"name": "transactor", "kind": "transactor", "is_newer": chance.random() < 0.5},
        {"name": "committed", "kind": "consumer", "topic": "transactional", "is_committed_only": True},
    ]
    others: list[dict[str, Any]] = [
        {"name": "plain1", "kind": "producer", "topic": "trimmed", "is_idempotent": False, "acks": 1},
        {"name": "plain0", "kind": "producer", "topic": "trimmed", "is_idempotent": False, "acks": 0},
        {"name": "scratch", "kind": "producer", "topic": "scratch", "is_idempotent": False, "acks": -1},
        {"name": "transactor2", "kind": "transactor", "is_newer": chance.random() < 0.5},
        {"name": "trimmed", "kind": "consumer", "topic": "trimmed"},
        {"name": "keys", "kind": "consumer", "topic": "compacted"},
        {"name": "uncommitted", "kind": "consumer", "topic": "transactional"},
    ]
    clients += chance.sample(others, chance.randint(2, 4))
    if chance.random() < 0.7:
        clients += [{"name": f"classic{each}", "kind": "classic"} for each in range(chance.choice([2, 3]))]
    if chance.random() < 0.7:
        clients += [{"name": f"member{each}", "kind": "member"} for each in range(chance.choice([2, 3]))]
    for client in clients:
        client["pause_s"] = round(chance.uniform(0.2, 1.0), 2)
        if client["kind"] == "producer" and chance.random() < 0.3:
            client["codec"] = chance.choice([1, 2, 3, 4])
    return clients


def _draw_fault(chance: random.Random, kind: str, hosts: list[str]) -> dict[str, Any]:
    some = chance.sample(hosts, chance.randint(1, len(hosts)))
    values: dict[str, Any] = {
        "for_s": round(chance.choice([chance.uniform(0.1, 1), chance.uniform(1, 8)]), 3),
        "hosts": some,
        "way": chance.choice(faults.WAYS),
        "chance": chance.randrange(1 << 30),
        "after": chance.choice([0, chance.randrange(20), chance.randrange(200)]),
        "room_bytes": chance.choice([0, chance.randrange(200), chance.randrange(5000)]),
        "delay_s": round(chance.uniform(0.05, 1.0), 3),
        "ms": chance.choice([-3_600_000, -5000, 5000, 60_000, 3_600_000]),
        "rate": chance.choice([0.99, 1.0, 1.01]),
    }
    if kind in faults.OF_A_CLUSTER:
        values["count"] = chance.randint(1, 3)
    _, needs = faults.FAULTS[kind]
    return {"fault": kind, **{each: values[each] for each in needs}}


def _draw_lasting(chance: random.Random, chaos_s: float, hosts: list[str]) -> list[dict[str, Any]]:
    """Up to half of the clients are cut off or stopped for good; what is left is the healthy core."""
    outside = chance.sample(hosts, chance.randint(1, len(hosts) // 2))
    split = chance.randint(0, len(outside))
    at_s = [round(chance.uniform(0, chaos_s * 0.9), 3) for _ in range(2)]
    cut = {
        "fault": "cut",
        "for_s": 0.0,
        "hosts": outside[:split],
        "way": chance.choice(faults.WAYS),
        "lasts": True,
    }
    stopped = {"fault": "stopped_client", "for_s": 0.0, "hosts": outside[split:], "lasts": True}
    return [{"at_s": at, **fault} for at, fault in zip(at_s, (cut, stopped), strict=True) if fault["hosts"]]
