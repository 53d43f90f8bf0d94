"""Ages of transactions, by the clocks that began them."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.cli.asking.broker_time import AGREE_WITHIN_MS, ahead_ms, now_ms
from riverlog.cli.asking.connection import Connection
from riverlog.testing import Broker
from tests.cli.running import CommandLine
from tests.cli.test_txn import transactional

DAY_MS = 86_400_000
SECOND_MS = 1000


@given(st.integers(0, 400 * DAY_MS), st.integers(-400 * DAY_MS, 400 * DAY_MS))
def test_another_clock_is_found_within_a_second(age_ms: int, true_ahead_ms: int) -> None:
    """`age_ms` is by the other clock, as a transaction never begins in its future."""
    asked: list[int] = []

    def is_older(duration_ms: int) -> bool:
        asked.append(duration_ms)
        return age_ms > duration_ms

    found = ahead_ms(is_older, lambda: age_ms - true_ahead_ms)
    assert abs(found - true_ahead_ms) <= AGREE_WITHIN_MS + 1
    assert all(each >= 0 for each in asked)
    assert len(asked) <= (2 if found == 0 == true_ahead_ms else 100)


def test_a_broker_that_does_not_know_the_question_is_taken_to_agree() -> None:
    assert ahead_ms(lambda _: True, lambda: 5000) == 0


@pytest.fixture
def ahead() -> Iterator[Broker]:
    with Broker() as broker:
        broker.clock.advance(days=2, transactions=True)
        yield broker


def test_ages_are_those_of_a_broker_whose_clock_is_ahead(ahead: Broker) -> None:
    riverlog = CommandLine(ahead.bootstrap_servers)
    riverlog("topic", "create", "orders")
    name, producer = transactional(ahead.bootstrap_servers, **{"transaction.timeout.ms": 900_000})
    producer.begin_transaction()
    producer.produce("orders", b"never seen")
    producer.flush(20)
    [began] = riverlog("txn", "list", "--open", "-o", "json").json
    assert began["age_ms"] < 120 * SECOND_MS
    ahead.clock.advance(minutes=10, transactions=True)

    [listed] = riverlog("txn", "list", "--open", "-o", "json").json
    [described] = riverlog("txn", "describe", name, "-o", "json").json
    shown = riverlog("topic", "describe", "orders").stdout

    for age_ms in (listed["age_ms"], described["age_ms"]):
        assert 598 * SECOND_MS < age_ms < 720 * SECOND_MS
    assert f"the transaction of {name} has been open for 10m" in shown
    producer.abort_transaction(20)


@pytest.fixture
def two_ages(ahead: Broker) -> CommandLine:
    """Of a broker ahead of us: a record of its two hours ago, and one of now."""
    riverlog = CommandLine(ahead.bootstrap_servers)
    riverlog("topic", "create", "times", "--set", "message.timestamp.type=LogAppendTime")
    riverlog.produce("times", "old", options=("--key", "k"))
    ahead.clock.advance(hours=2, transactions=True)
    riverlog.produce("times", "new", options=("--key", "k"))
    return riverlog


def test_so_long_ago_is_by_the_clock_of_the_broker(two_ages: CommandLine) -> None:
    assert two_ages("consume", "times", "--from", "@-1h", "-e").stdout.split() == ["new"]
    assert two_ages("consume", "times", "--from", "@-3h", "--to", "@-1h").stdout.split() == ["old"]


def test_since_is_by_the_clock_of_the_broker(two_ages: CommandLine) -> None:
    told = two_ages("explain", "times", "--key", "k", "--since", "10m", "-o", "json").json
    assert [each["offset"] for each in told] == [1]
    told = two_ages("explain", "times", "--key", "k", "--since", "3h", "-o", "json").json
    assert [each["offset"] for each in told] == [0, 1]


def test_a_group_is_moved_and_a_topic_trimmed_by_the_clock_of_the_broker(two_ages: CommandLine) -> None:
    [moved] = two_ages("group", "seek", "g", "--topic", "times", "--to", "@-1h", "-o", "json").json
    [trimmed] = two_ages("topic", "trim", "times", "--before", "@-1h", "--yes", "-o", "json").json
    assert (moved["to"], trimmed["start"]) == (1, 1)


def test_where_brokers_cannot_be_asked_directly_it_is_our_own_clock() -> None:
    with Broker() as broker:
        connection = Connection(broker.bootstrap_servers, 10, {"security.protocol": "ssl"})
        assert abs(now_ms(connection) - time.time() * SECOND_MS) < 60 * SECOND_MS
