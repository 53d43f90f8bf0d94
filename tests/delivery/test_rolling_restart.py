"""Brokers that are told to stop, one after the other: applications notice nothing."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.delivery.control import client_settings
from tests.delivery.replicated import WAIT_S, Replicated
from tests.delivery.workers import until

TOPIC = "rolled"
PARTITIONS = 6
PAUSE_S = 0.002


class Writing(threading.Thread):
    """A producer with acks=all that notes everything it is told."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self._servers = servers
        self.is_over = threading.Event()
        self.acknowledged: Counter[str] = Counter()
        self.failed: list[str] = []
        self.timed_out: dict[str, int] = {}
        """Requests, by broker."""

    def run(self) -> None:
        settings = client_settings(
            self._servers,
            acks="all",
            enable_idempotence=True,
            message_timeout_ms=int(WAIT_S * 1000),
            statistics_interval_ms=100,
        )
        producer = Producer({**settings, "stats_cb": self._note_statistics})
        number = 0
        while not self.is_over.wait(PAUSE_S):
            value = str(number)
            producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=self._note)
            number += 1
            producer.poll(0)
        producer.flush(WAIT_S)

    def _note(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert isinstance(value, bytes)
        if error is not None:
            self.failed.append(f"{value.decode()}: {error}")
        else:
            self.acknowledged[value.decode()] += 1

    def _note_statistics(self, text: str) -> None:
        for name, broker in json.loads(text)["brokers"].items():
            self.timed_out[name] = broker["req_timeouts"]


class Watching(threading.Thread):
    """Asks all the time who leads."""

    def __init__(self, replicated: Replicated) -> None:
        super().__init__()
        self._replicated = replicated
        self.is_over = threading.Event()
        self.leaderless: list[dict[int, int | None]] = []
        self.asked = 0

    def run(self) -> None:
        while not self.is_over.wait(PAUSE_S):
            leaders = self._replicated.leaders_at_others(TOPIC)
            if leaders is not None:
                self.asked += 1
                if None in leaders.values():
                    self.leaderless.append(leaders)


@contextmanager
def at_work(replicated: Replicated) -> Iterator[tuple[Writing, Watching]]:
    writing, watching = Writing(replicated.bootstrap_servers), Watching(replicated)
    writing.start()
    watching.start()
    try:
        yield writing, watching
    finally:
        for each in (writing, watching):
            each.is_over.set()
            each.join()


@pytest.mark.parametrize("restarted", [1, 3], ids=["one of three", "all, one after the other"])
def test_a_broker_that_is_told_to_stop_is_missed_by_nobody(tmp_path: Path, restarted: int) -> None:
    with Replicated(tmp_path, servers=1) as replicated:
        replicated.make_topic(TOPIC, PARTITIONS)
        with at_work(replicated) as (writing, watching):
            for broker in range(1, restarted + 1):
                before, asked = len(writing.acknowledged), watching.asked
                until(
                    lambda before=before: len(writing.acknowledged) > before + 100,  # type: ignore[misc]
                    "records are acknowledged",
                )
                replicated.stopping = broker
                replicated.cluster.brokers[broker].restart()
                replicated.stopping = None
                replicated.until_in_sync()
                until(lambda asked=asked: watching.asked > asked + 20, "leaders are told")  # type: ignore[misc]
        assert writing.failed == []
        assert sum(writing.timed_out.values()) == 0, writing.timed_out
        assert watching.leaderless == []
        assert _read(replicated.bootstrap_servers, sum(writing.acknowledged.values())) == writing.acknowledged
        replicated.assert_equal_files(TOPIC)
        replicated.assert_no_bugs_told()


def _read(servers: str, count: int) -> Counter[str]:
    consumer = Consumer(client_settings(servers, group_id="all", auto_offset_reset="earliest"))
    consumer.subscribe([TOPIC])
    found: Counter[str] = Counter()

    def read_some() -> bool:
        for message in consumer.consume(1000, 0.1):
            value = message.value()
            assert message.error() is None, message.error()
            assert isinstance(value, bytes)
            found[value.decode()] += 1
        return found.total() >= count

    until(read_some, "all that was acknowledged is read", WAIT_S)
    consumer.close()
    return found
