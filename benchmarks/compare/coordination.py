"""Transactions, and groups that form: what the coordinators do."""

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, Plain, Tools, cpu_of, drop, fresh, per, topic
from benchmarks.compare.throughput import CONSUMER
from benchmarks.members import Member, hear_of_rebalance, settle

MEMBERS = 50
TRANSACTIONS_S = 1.5
RECORDS = 100


@dataclass(frozen=True, slots=True)
class Transactions(Plain):
    name: str = "transactions"
    words: str = f"transactions of {RECORDS} records of 100 B, one client"
    seconds: float = TRANSACTIONS_S + 1.5
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        properties = {"transactional.id": fresh("bench"), "linger.ms": "0"}
        with topic(target, "paid", 1) as name, cpu_of(target) as spent:
            done = tools.driver.run(
                "transactions",
                properties,
                brokers=target.bootstrap,
                topic=name,
                batch=RECORDS,
                seconds=TRANSACTIONS_S * max(0.3, tools.scale),
            )
        # The driver warms up for 0.3 s, which the broker's time holds as well.
        share = done["seconds"] / (done["seconds"] + 0.3)
        return {"transactions_s": done["transactions"] / done["seconds"]} | per(
            spent, done["transactions"] / share, "broker_cpu_ms", 1e3
        )


@dataclass(frozen=True, slots=True)
class GroupJoin(Plain):
    """On plain sockets: one member more joins a settled group, until all of them are synced again."""

    name: str = f"group-join-{MEMBERS}"
    words: str = f"the {MEMBERS}th member joins a group, until all {MEMBERS} have partitions"
    seconds: float = 1.5
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        group = fresh("group")
        with ExitStack() as stack:
            every = [stack.enter_context(closing(Member(target.address, group))) for _ in range(MEMBERS)]
            first, *others, last = every
            join(group_of=[first], new=[])
            join(group_of=[first], new=others)
            started_s = time.perf_counter()
            with cpu_of(target) as spent:
                join(group_of=[first, *others], new=[last])
            join_ms = (time.perf_counter() - started_s) * 1e3
            for member in every:
                member.leave()
        return {"join_ms": join_ms} | per(spent, 1, "broker_cpu_ms", 1e3)


def join(*, group_of: list[Member], new: list[Member]) -> None:
    """With no member in `new`, the first ones join an empty group."""
    if not new:
        for member in group_of:
            member.take_id()
        settle(group_of)
        return
    for member in new:
        member.take_id()
    for member in new:
        member.send_join()
    hear_of_rebalance(group_of)
    settle([*group_of, *new], already_asked=new)


@dataclass(frozen=True, slots=True)
class ConsumerJoin:
    """As a user sees it: a new consumer of a new group, from subscribing to its partitions."""

    name: str = "group-join-consumer"
    words: str = "a consumer subscribes, until it has partitions"
    seconds: float = 0.4
    limit: str | None = None
    _held: dict[str, str] = field(default_factory=dict, compare=False)

    def prepare(self, target: Target, tools: Tools) -> None:
        self._held[target.name] = fresh("joined")
        topics.create(target.address, self._held[target.name], 4)
        self.measure(target, tools)  # The first group of all makes the broker create its own topic.

    def measure(self, target: Target, tools: Tools) -> Metrics:
        name = self._held[target.name]
        done = tools.driver.run(
            "join", CONSUMER, brokers=target.bootstrap, topic=name, group=fresh("group"), threads=1
        )
        return {"join_ms": done["seconds"] * 1e3}

    def clean_up(self, target: Target, tools: Tools) -> None:
        drop(target, self._held.pop(target.name))
