"""Who holds the event loop is seen, in the metrics and in the log; and so are many open logs."""

import pytest

from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.node.processes.loop_watch import LONG_TURN_S, MANY_LOGS, LoopWatch
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient, one_record
from tests.storage.logs import ManualClock
from tests.virtual_time import elapse, run_virtually

LONGEST = "riverlog_loop_longest_turn_seconds"


def test_a_turn_that_is_longer_than_a_look_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    clock, metrics = ManualClock(), InMemoryMetrics()

    async def main() -> None:
        watch = LoopWatch(clock, metrics, lambda: 0)
        watch.start()
        clock.now_ms += 800  # As if the turn that begins now took so long.
        await elapse(0.25)
        watch.stop()

    run_virtually(main)
    assert metrics.value(LONGEST) == pytest.approx(0.8 - 0.25)
    assert "the event loop stood still for" in caplog.text


def test_the_longest_turn_is_that_of_the_last_minutes() -> None:
    clock, metrics = ManualClock(), InMemoryMetrics()
    watch = LoopWatch(clock, metrics, lambda: 0)
    for held_s, expected_s in ((0.01, 0.01), (0.05, 0.05), (0.02, 0.05)):
        watch.note_turn(held_s)
        assert metrics.value(LONGEST) == expected_s
    clock.now_ms += 61_000
    watch.note_turn(0.001)
    assert metrics.value(LONGEST) == 0.05
    clock.now_ms += 61_000
    watch.note_turn(0.002)
    assert metrics.value(LONGEST) == 0.002


def test_long_turns_and_many_logs_are_told_but_not_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch(ManualClock(), InMemoryMetrics(), lambda: 0)
    watch.note_turn(LONG_TURN_S)
    watch.note_open_logs(MANY_LOGS)
    assert caplog.messages == []
    for _ in range(200):
        watch.note_turn(0.35)
        watch.note_open_logs(MANY_LOGS + 1)
    assert sum("stood still for 0.35 s" in each for each in caplog.messages) == 1
    assert sum("logs are open" in each for each in caplog.messages) == 1
    assert len(caplog.messages) == 2
    watch.note_open_logs(3 * MANY_LOGS)
    assert sum("logs are open" in each for each in caplog.messages) == 2


def test_the_number_of_open_logs_is_a_metric(riverlog_broker: Broker) -> None:
    with RawClient(riverlog_broker) as client:
        client.create_topic("orders", partitions=10)
        before = riverlog_broker.node.metrics.value("riverlog_open_logs")  # type: ignore[attr-defined]
        client.produce("orders", one_record(), partition=3)
        after = riverlog_broker.node.metrics.value("riverlog_open_logs")  # type: ignore[attr-defined]
        assert after == before + 1 == riverlog_broker.node.open_logs
