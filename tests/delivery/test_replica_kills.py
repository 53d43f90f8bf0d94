"""Leaders, coordinators, controller and ZooKeeper's servers killed under load; ZooKeeper away for a while.

A leader that is stopped for longer than a session is among them: it wakes up and takes itself for the leader.

Three replicas of everything on real processes, idempotent and transactional producers with acks=all, groups
of all protocols. Nothing acknowledged is lost, doubled, torn or out of order, and all replicas are the same
in the end, byte by byte.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from riverlog.testing.history import check, describe, load
from tests.delivery.joining import GROUP_SETTINGS
from tests.delivery.reading import as_one_reader, journals, read_all
from tests.delivery.replicated import SESSION_MS, Replicated
from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.test_mixed_run import (
    PARTITIONS,
    TOPIC,
    Run,
    acknowledged_in,
    assert_groups_have_read_all,
    ends_of,
)

RECORDS = int(os.environ.get("DELIVERY_REPLICA_RECORDS", "20000"))
KILLS = int(os.environ.get("DELIVERY_REPLICA_KILLS", "1"))
"""Of each kind."""
AWAY_S = float(os.environ.get("DELIVERY_ZOOKEEPER_AWAY_S", str(SESSION_MS / 1000 + 2)))
"""At least, and longer than a session."""
_LOOKS_WHILE_AWAY = 10

CLIENT: dict[str, object] = {"socket_timeout_ms": 10_000}
"""A broker that is stopped keeps its connections, and clients wait for it for a minute by default."""


@dataclass(slots=True)
class Kills:
    replicated: Replicated
    chance: Seeded
    produce: Callable[[], None]
    """Have some more records acknowledged."""

    def leader(self) -> None:
        index = self.chance.dice.randrange(PARTITIONS)
        self._kill(self.replicated.cluster.leaders(TOPIC)[index], "leader")

    def coordinator(self) -> None:
        topic, key = self.chance.dice.choice(
            [("__transaction_state", "mixed-0"), ("__transaction_state", "mixed-1")]
            + [("__consumer_offsets", group) for group in ("classic", "cooperative", "consumer")]
        )
        self._kill(self.replicated.coordinator_of(topic, key), "coordinator")

    def controller(self) -> None:
        self._kill(self.replicated.cluster.controller, "controller")

    def all_brokers(self) -> None:
        """At once. What they have written is in the machine's memory, and is found again."""
        brokers = list(self.replicated.cluster.brokers)
        for broker in brokers:
            self.replicated.kill(broker, "all brokers at once")
        self.chance.dice.shuffle(brokers)
        for broker in brokers:
            self.replicated.restart(broker)
        self.produce()
        self.replicated.until_in_sync()

    def zookeeper_server(self) -> None:
        ensemble = self.replicated.ensemble
        server = self.chance.dice.choice(ensemble.numbers)
        ensemble.kill(server)
        self.replicated.killed["ZooKeeper server"] += 1
        self.produce()
        ensemble.start(server)

    def all_of_zookeeper(self) -> None:
        """What is acknowledged by all replicas goes on without it, and topics are not made meanwhile."""
        self.replicated.ensemble.kill()
        self.replicated.killed["all of ZooKeeper"] += 1
        until_s = time.monotonic() + AWAY_S
        refusal = self.replicated.admin_refusal(2.0)
        assert "TIMED_OUT" in refusal, refusal
        self.produce()
        while time.monotonic() < until_s:
            self.produce()
            time.sleep(AWAY_S / _LOOKS_WHILE_AWAY)  # So that a long outage does not mean millions of records.
        self.replicated.ensemble.start()

    def stopped_leader(self) -> None:
        """It goes on as if it led, until it hears that another one does."""
        index = self.chance.dice.randrange(PARTITIONS)
        broker = self.replicated.cluster.leaders(TOPIC)[index]
        assert broker is not None
        self.replicated.cluster.pause(broker)
        self.replicated.killed["leader stopped (SIGSTOP)"] += 1
        self.replicated.until_led(TOPIC, without=broker)
        self.produce()
        self.replicated.cluster.resume(broker)
        self.produce()
        self.replicated.until_in_sync()

    def _kill(self, broker: int | None, why: str) -> None:
        """Start it again before it is missed, or when another leads what it led."""
        assert broker is not None
        replicated = self.replicated
        replicated.kill(broker, why)
        if self.chance.dice.random() < 0.5:
            replicated.until_led(TOPIC, without=broker)
            self.produce()
        replicated.restart(broker)
        self.produce()
        # Two of three have to be there for the next one.
        replicated.until_in_sync()


@pytest.mark.timeout(300 + 30 * 5 * KILLS + 2 * AWAY_S)
def test_nothing_acknowledged_is_lost_doubled_or_torn_when_anything_is_killed(
    tmp_path: Path, chance: Seeded
) -> None:
    began = time.monotonic()
    with Replicated(tmp_path, *GROUP_SETTINGS) as replicated:
        replicated.make_topic(TOPIC, PARTITIONS)
        run = Run(replicated, tmp_path, chance, CLIENT)
        steps = 5 * KILLS + 2
        kills = Kills(replicated, chance, lambda: run.produce(RECORDS // (2 * steps) + 1, lambda: True))
        wanted = [kills.leader, kills.coordinator, kills.controller, kills.zookeeper_server] * KILLS
        wanted += [kills.stopped_leader] * (KILLS // 4 + 1)  # Clients wait for long each time.
        wanted += [kills.all_of_zookeeper, kills.all_brokers]
        chance.dice.shuffle(wanted)
        try:
            for group in run.members:
                run.join(group)
                run.join(group)
            run.start_producers()
            kills.produce()  # Without faults first.
            for number, kill in enumerate(wanted):
                print(f"{time.monotonic() - began:6.1f} s {number} {kill.__name__}", flush=True)  # noqa: T201
                kill()
                kills.produce()
            while acknowledged_in(load(journals(tmp_path))) < RECORDS:
                kills.produce()
            run.producers[-1].tell(finish=True)
            run.producers[-1].wait_for("closed")
            replicated.until_in_sync()
            replicated.make_topic("after-all", 1)
            reads = read_all(replicated.bootstrap_servers, TOPIC, PARTITIONS)
            run.wait_for_groups(ends_of(reads))
        finally:
            run.close()
        replicated.until_in_sync()
        replicated.verify_against_each_other()
        compared = replicated.assert_equal_files(TOPIC)
        replicated.assert_no_bugs_told()
    events = load(journals(tmp_path))
    anomalies = check([*events, *as_one_reader(reads)])
    assert not anomalies, describe(anomalies)
    assert_groups_have_read_all(events, reads)
    acknowledged = acknowledged_in(events)
    assert acknowledged >= RECORDS
    report(
        "replicas, everything killed",
        chance,
        acknowledged=acknowledged,
        events=len(events),
        killed=dict(replicated.killed),
        bytes_compared=compared,
        zookeeper_away_s=round(AWAY_S),
        seconds=round(time.monotonic() - began),
    )
