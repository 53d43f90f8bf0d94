"""Everything at once: producers of both kinds, groups of both protocols, crashes on all sides; no anomaly."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, TopicPartition

from riverlog.testing.history import (
    Ended,
    Event,
    Outcome,
    Place,
    Positioned,
    Read,
    Sent,
    check,
    describe,
    load,
)
from tests.delivery.control import client_settings
from tests.delivery.joining import GROUP_SETTINGS
from tests.delivery.reading import as_one_reader, journals, make_topics, read_all
from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.server import Server
from tests.delivery.workers import Worker, until

TOPIC = "mixed"
PARTITIONS = 4
RECORDS = int(os.environ.get("DELIVERY_RECORDS", "200000"))
SETTINGS: dict[str, dict[str, object]] = {
    "classic": {"session_timeout_ms": 2000, "heartbeat_interval_ms": 300},
    "cooperative": {
        "session_timeout_ms": 2000,
        "heartbeat_interval_ms": 300,
        "partition_assignment_strategy": "cooperative-sticky",
    },
    "consumer": {"group_protocol": "consumer"},
}


class Served(Protocol):
    """A broker, or a cluster of them."""

    @property
    def bootstrap_servers(self) -> str: ...


@dataclass(slots=True)
class Run:
    server: Served
    directory: Path
    chance: Seeded
    client: dict[str, object] = field(default_factory=dict)
    """Settings of all clients."""
    producers: list[Worker] = field(default_factory=list)
    members: dict[str, list[Worker]] = field(default_factory=lambda: {group: [] for group in SETTINGS})
    others: list[Worker] = field(default_factory=list)
    """Members that have been killed or have left."""
    leaving: list[Worker] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=lambda: iter(range(1000)))
    done: Counter[str] = field(default_factory=Counter)

    def start_producers(self) -> None:
        self.producers.append(
            Worker(
                "mixed_producers",
                name=f"p{len(self.producers)}",
                directory=str(self.directory),
                seed=self.chance.seed,
                bootstrap=self.server.bootstrap_servers,
                topic=TOPIC,
                partitions=PARTITIONS,
                client=self.client,
            )
        )
        self.producers[-1].wait_for("ready")

    def produce(self, records: int, meanwhile: Callable[[], bool]) -> None:
        """Have so many acknowledged. `meanwhile` is done once the first are, and says if they go on."""
        self.producers[-1].tell(records=records)
        self.producers[-1].wait_for("producing")
        if meanwhile():
            self.producers[-1].wait_for("produced")
            self.producers[-1].wait_for("ready")
        else:
            self.start_producers()
            self.produce(records, lambda: True)

    def join(self, group: str) -> bool:
        self.members[group].append(
            Worker(
                "mixed_member",
                name=f"{group}{next(self.names)}",
                directory=str(self.directory),
                group=group,
                settings={**SETTINGS[group], **self.client},
                bootstrap=self.server.bootstrap_servers,
                topic=TOPIC,
            )
        )
        self.done[f"joins ({group})"] += 1
        return True

    def leave(self, group: str) -> bool:
        member = self._take_oldest(group)
        member.tell(leave=True)
        self.leaving.append(member)
        self.done[f"leaves ({group})"] += 1
        return True

    def crash(self, group: str) -> bool:
        self._take_oldest(group).kill()
        self.done[f"crashes ({group})"] += 1
        return True

    def crash_producers(self) -> bool:
        self.producers[-1].kill()
        self.done["crashes of the producers"] += 1
        return False

    def crash_broker(self) -> bool:
        assert isinstance(self.server, Server)
        self.server.restart()
        self.done["crashes of the broker"] += 1
        return True

    def wait_for_groups(self, ends: dict[Place, int]) -> None:
        """Return when each group has committed all there is."""
        for group in self.members:
            consumer = Consumer(client_settings(self.server.bootstrap_servers, group_id=group))
            places = [TopicPartition(*place) for place in ends]

            def is_done(consumer: Consumer = consumer, places: list[TopicPartition] = places) -> bool:
                found = consumer.committed(places, 30)
                return all(each.offset >= ends[Place(each.topic, each.partition)] for each in found)

            until(is_done, f"{group} has committed everything")
            consumer.close()

    def close(self) -> None:
        for workers in (self.producers, self.others, *self.members.values()):
            for worker in workers:
                worker.__exit__(None, None, None)

    def _take_oldest(self, group: str) -> Worker:
        """A member that surely has partitions, or has had them."""
        member = self.members[group].pop(0)
        self.others.append(member)
        member.wait_for("assigned")
        return member


def actions(run: Run) -> list[Callable[[], bool]]:
    """In random order, but so that no group is without a member for long."""
    found: list[Callable[[], bool]] = [
        run.crash_broker,
        run.crash_broker,
        run.crash_broker,
        run.crash_producers,
    ]
    for group in run.members:
        found += [lambda group=group: run.join(group) and run.crash(group)]  # type: ignore[misc]
        found += [lambda group=group: run.join(group) and run.leave(group)]  # type: ignore[misc]
    run.chance.dice.shuffle(found)
    return found


def test_no_anomaly_in_many_records_while_everything_crashes(tmp_path: Path, chance: Seeded) -> None:
    began = time.monotonic()
    with Server(tmp_path / "broker", *GROUP_SETTINGS) as server:
        make_topics(server.bootstrap_servers, PARTITIONS, TOPIC)
        run = Run(server, tmp_path, chance)
        try:
            for group in run.members:
                run.join(group)
            run.start_producers()
            wanted = actions(run)
            for action in wanted:
                run.produce(RECORDS // len(wanted) + 1, action)
            run.producers[-1].tell(finish=True)
            run.producers[-1].wait_for("closed")
            reads = read_all(server.bootstrap_servers, TOPIC, PARTITIONS)
            run.wait_for_groups(ends_of(reads))
            for member in run.leaving:
                member.finish()
        finally:
            run.close()
        assert " ERROR " not in server.errors(), server.errors()
        assert "Traceback" not in server.errors(), server.errors()
    events = load(journals(tmp_path))
    anomalies = check([*events, *as_one_reader(reads)])
    assert not anomalies, describe(anomalies)
    assert_groups_have_read_all(events, reads)
    acknowledged = acknowledged_in(events)
    assert acknowledged >= RECORDS
    report(
        "mixed run",
        chance,
        acknowledged=acknowledged,
        events=len(events),
        done=dict(run.done),
        assignments=sum(isinstance(event, Positioned) for event in events),
        seconds=round(time.monotonic() - began),
    )


def ends_of(reads: list[Read]) -> dict[Place, int]:
    """Behind the last record of each partition."""
    return {read.place: read.offset + 1 for read in reads}


def acknowledged_in(events: list[Event]) -> int:
    committed = {
        event.transaction for event in events if isinstance(event, Ended) and event.outcome is Outcome.OK
    }
    return sum(
        event.outcome is Outcome.OK if event.transaction is None else event.transaction in committed
        for event in events
        if isinstance(event, Sent)
    )


def assert_groups_have_read_all(events: list[Event], reads: list[Read]) -> None:
    everything = {(read.place, read.offset) for read in reads}
    for group in SETTINGS:
        found = {
            (event.place, event.offset)
            for event in events
            if isinstance(event, Read) and event.client.startswith(group)
        }
        assert found == everything, f"{group} left out {len(everything - found)} records"
