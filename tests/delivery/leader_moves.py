"""Leaders that move all the time under idempotent producers: nothing is lost, doubled or out of order.

A broker is restarted or killed, so that others lead what it led; when it is in sync again, the preferred
replicas are elected, and leadership goes back while everybody is alive. As a program, `python -m
tests.delivery.leader_moves`, it makes as many moves as are wanted, and gives either answer to a produce that
waits when leadership goes: the product's, or Apache Kafka's (ADR 20).
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from riverlog.broker.produce import delayed_produce
from riverlog.broker.produce.delayed_produce import DelayedProduce, Unacknowledged
from riverlog.broker.produce.handler import ProduceHandler
from riverlog.broker.shared.leader_hints import LeaderHints
from riverlog.client import cluster as client
from riverlog.model.errors import ErrorCode
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower
from riverlog.replication.waiting import PendingAck
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.produce import ProduceResponse
from tests.delivery.numbered_writers import AT_ONCE, WRITERS, Written
from tests.waiting import eventually

TOPIC: Final = "numbers"
BROKERS: Final = (1, 2, 3)
WAIT_S: Final = 120.0
KILLS: Final = 0.25
"""This part of the brokers' ends is without a farewell."""


@dataclass(slots=True)
class Outcome:
    moves: int = 0
    restarts: int = 0
    kills: int = 0
    elections: int = 0
    bounced: int = 0
    """Produces that waited for their acknowledgement when their leader lost the partition."""
    acknowledged: int = 0
    failed: list[str] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    doubled: list[tuple[int, int]] = field(default_factory=list)
    reordered: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.failed or self.lost or self.doubled or self.reordered)

    def __str__(self) -> str:
        faults = {name: getattr(self, name) for name in ("failed", "lost", "doubled", "reordered")}
        counts = (
            f"{self.moves} moves of leaders ({self.restarts} restarts, {self.kills} kills, {self.elections} "
            f"elections), {self.bounced} produces bounced, {self.acknowledged} records acknowledged"
        )
        told = ", ".join(f"{len(found)} {name} {found[:5] or ''}" for name, found in faults.items())
        return f"{counts}: {told}"


class Mover:
    """Moves the leaders of one topic, whose partitions are on all brokers."""

    def __init__(self, cluster: Cluster, partitions: int, dice: random.Random, outcome: Outcome) -> None:
        self._cluster, self._partitions, self._dice, self._outcome = cluster, partitions, dice, outcome
        self._bootstrap = tuple(address_of(each) for each in cluster.bootstrap_servers.split(","))
        self._leaders = self.settle()

    def turn(self) -> None:
        """One broker goes and comes, then the leaders go back to where they belong."""
        broker = self._dice.choice(BROKERS)
        if self._dice.random() < KILLS:
            self._cluster.kill(broker)
            self._outcome.kills += 1
        else:
            self._outcome.restarts += 1
        self._cluster.restart(broker)
        self._count()
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=int(WAIT_S * 1000))
        reply: ElectLeadersResponse = self._ask(ApiKey.ELECT_LEADERS, request)
        assert not reply.error_code, ErrorCode(reply.error_code).name
        self._outcome.elections += 1
        self._count()

    def _count(self) -> None:
        before, self._leaders = self._leaders, self.settle()
        self._outcome.moves += sum(before[index] != leader for index, leader in self._leaders.items())

    def settle(self) -> dict[int, int]:
        """The leaders, once every partition has one and all replicas in sync."""
        found: dict[int, int] = {}
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)

        def is_settled() -> bool:
            reply: MetadataResponse = self._ask(ApiKey.METADATA, request)
            partitions = reply.topics[0].partitions
            found.update({each.partition_index: each.leader_id for each in partitions})
            return all(each.leader_id >= 0 and len(each.isr_nodes) == len(BROKERS) for each in partitions)

        eventually(is_settled, "the replicas did not get in sync", WAIT_S)
        return found

    def _ask(self, api: ApiKey, request: Any) -> Any:
        with client.Cluster(client.ClientSettings(self._bootstrap, "mover", WAIT_S, WAIT_S)) as cluster:
            return cluster.ask_any(api, request)


class Hinting(DelayedProduce):
    """Tells who leads now, as Apache Kafka does with NOT_LEADER_OR_FOLLOWER."""

    __slots__ = ("hints",)
    hints: LeaderHints

    def make(self) -> object:
        made = super().make()
        if isinstance(made, ProduceResponse):
            self.hints.on_produce(made, "PLAINTEXT")
        return made


@contextmanager
def answering(code: ErrorCode, outcome: Outcome) -> Iterator[None]:
    """Have produces that wait when leadership goes answered so, and counted; in this process."""
    original = delayed_produce._error

    def error(pending: PendingAck, partition: Partition) -> ErrorCode | None:
        given = original(pending, partition)
        if pending.is_committed is False and isinstance(partition.role, Follower):
            outcome.bounced += 1
            return code
        return given

    def when_acknowledged(
        self: ProduceHandler, response: ProduceResponse, waiting: list[Unacknowledged], timeout_ms: int
    ) -> ProduceResponse | DelayedProduce:
        if not waiting:
            return response
        delayed = Hinting(response, waiting, timeout_ms / 1000, self._turn)
        assert self._hints is not None
        delayed.hints = self._hints
        return delayed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delayed_produce, "_error", error)
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            patch.setattr(ProduceHandler, "_when_acknowledged", when_acknowledged)
        yield


def written_while_leaders_move(
    client: str,
    moves: int,
    dice: random.Random,
    *,
    partitions: int = 12,
    at_once: int = AT_ONCE,
    answer: ErrorCode = ErrorCode.REQUEST_TIMED_OUT,
) -> Outcome:
    outcome = Outcome()
    settings = {"default.replication.factor": 3, "min.insync.replicas": 2}
    with answering(answer, outcome), Cluster(len(BROKERS), settings) as cluster:
        cluster.create_topic(TOPIC, partitions)
        writer = WRITERS[client](cluster.bootstrap_servers, TOPIC, partitions, at_once)
        mover = Mover(cluster, partitions, dice, outcome)
        writer.start()
        try:
            while outcome.moves < moves:
                mover.turn()
        finally:
            writer.end()
        check(writer.written, stored(cluster.bootstrap_servers, partitions), outcome)
    return outcome


def check(written: Written, stored: dict[int, list[int]], outcome: Outcome) -> None:
    """Find what the log has too little, too much, or at the wrong place."""
    outcome.failed = written.failed
    for partition, numbers in stored.items():
        acknowledged = written.acknowledged[partition]
        outcome.acknowledged += len(acknowledged)
        counts = Counter(numbers)
        outcome.lost += [(partition, number) for number in acknowledged if not counts[number]]
        outcome.doubled += [(partition, number) for number, count in counts.items() if count > 1]
        firsts = list(counts)  # In the order in which each was met first.
        outcome.reordered += [(partition, after) for before, after in pairwise(firsts) if after < before]


def stored(servers: str, partitions: int) -> dict[int, list[int]]:
    """The numbers of each partition, as its log has them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "check", "enable.auto.commit": False})
    places = [TopicPartition(TOPIC, index, 0) for index in range(partitions)]
    left = {each.partition: consumer.get_watermark_offsets(each, timeout=WAIT_S)[1] for each in places}
    consumer.assign(places)
    found: dict[int, list[int]] = {index: [] for index in range(partitions)}
    deadline = time.monotonic() + WAIT_S
    while any(len(found[index]) < end for index, end in left.items()):
        assert time.monotonic() < deadline, f"not all could be read: {left}"
        for message in consumer.consume(1000, timeout=0.5):
            assert message.error() is None, message.error()
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            found[partition].append(int(value))
    consumer.close()
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("client", choices=WRITERS)
    options.add_argument("--moves", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--partitions", type=int, default=12)
    options.add_argument("--at-once", type=int, default=AT_ONCE)
    options.add_argument("--answer", choices=["REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER"])
    asked = options.parse_args()
    answer = ErrorCode[asked.answer or "REQUEST_TIMED_OUT"]
    outcome = written_while_leaders_move(
        asked.client,
        asked.moves,
        random.Random(asked.seed),
        partitions=asked.partitions,
        at_once=asked.at_once,
        answer=answer,
    )
    sys.stdout.write(f"{asked.client}, {answer.name}: {outcome}\n")
    return 0 if outcome.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
