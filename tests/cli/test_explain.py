"""`riverlog explain`, one test for each reason, with real clients. `interop` runs them on Apache Kafka."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition

from riverlog.testing import Broker
from tests.cli.group_member import member
from tests.cli.running import CommandLine
from tests.waiting import eventually


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Of a broker that compacts soon."""
    if named := os.environ.get("RIVERLOG_TEST_BOOTSTRAP"):
        yield named
        return
    with Broker(log_cleaner_backoff_ms=100) as broker:
        yield broker.bootstrap_servers


def reasons(riverlog: CommandLine, *arguments: str) -> list[dict[str, str]]:
    [told] = riverlog("explain", *arguments, "-o", "json").json
    found: list[dict[str, str]] = told["reasons"]
    return found


def names(riverlog: CommandLine, *arguments: str) -> list[str]:
    return [each["reason"] for each in reasons(riverlog, *arguments)]


@pytest.fixture
def topic(riverlog: CommandLine) -> str:
    """Ten records in partition 0 of two."""
    name = riverlog.topic("--partitions", "2")
    riverlog.produce(name, *map(str, range(10)), options=("-p", "0"))
    return name


@contextmanager
def transaction(riverlog: CommandLine, topic: str, *values: str) -> Iterator[tuple[str, Producer]]:
    """Values written to partition 0 in a transaction that is open; aborted at the end."""
    name = f"tx-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": riverlog.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(20)
    yield name, producer
    producer.abort_transaction(30)


def test_a_record_that_is_there_has_no_reason_not_to_be_seen(riverlog: CommandLine, topic: str) -> None:
    assert names(riverlog, topic, "0", "3") == []
    assert "gets it" in riverlog("explain", topic, "0", "3").stdout


def test_no_such_topic_names_the_nearest(riverlog: CommandLine, topic: str) -> None:
    [reason] = reasons(riverlog, topic[:-1], "0", "3")
    assert (reason["reason"], reason["remedy"]) == ("no-topic", f"did you mean {topic}?")


def test_no_such_partition(riverlog: CommandLine, topic: str) -> None:
    [reason] = reasons(riverlog, topic, "7", "3")
    assert (reason["reason"], reason["remedy"]) == ("no-partition", "it has 0 to 1")


def test_below_the_log_start(riverlog: CommandLine, topic: str) -> None:
    riverlog("topic", "trim", topic, "--before", "5", "-p", "0", "--yes")
    [reason] = reasons(riverlog, topic, "0", "3")
    assert reason["reason"] == "below-log-start"
    assert "begins at offset 5" in reason["what"]
    assert "retention.ms=604800000" in reason["what"]
    assert "which of them, and when, is unknown" in reason["what"]
    assert "the oldest record left is of 20" in reason["what"]


def test_above_the_end(riverlog: CommandLine, topic: str) -> None:
    [reason] = reasons(riverlog, topic, "0", "10")
    assert (reason["reason"], "ends at offset 10" in reason["what"]) == ("above-end", True)


def test_above_the_last_stable_offset_names_the_transaction(riverlog: CommandLine, topic: str) -> None:
    with transaction(riverlog, topic, "open") as (name, _):
        [reason] = reasons(riverlog, topic, "0", "10")
        uncommitted = names(riverlog, topic, "0", "10", "--isolation", "read_uncommitted")
    assert reason["reason"] == "above-last-stable-offset"
    assert f"the transaction of {name} has been open" in reason["what"]
    assert f"riverlog txn abort {name}" in reason["remedy"]
    assert uncommitted == []


def test_aborted_records_and_markers(riverlog: CommandLine, topic: str) -> None:
    with transaction(riverlog, topic, "one", "two"):
        pass
    eventually(lambda: names(riverlog, topic, "0", "11") == ["aborted"], "the abort is not seen")
    uncommitted = ("--isolation", "read_uncommitted")
    assert names(riverlog, topic, "0", "11", *uncommitted) == []
    assert (
        "a record, committed or not, is there" in riverlog("explain", topic, "0", "11", *uncommitted).stdout
    )
    [marker] = reasons(riverlog, topic, "0", "12")
    assert (marker["reason"], "abort marker" in marker["what"]) == ("marker", True)
    with transaction(riverlog, topic, "three") as (_, producer):
        producer.commit_transaction(30)
        producer.begin_transaction()
    eventually(lambda: names(riverlog, topic, "0", "13") == [], "the commit is not seen")
    assert "commit marker" in reasons(riverlog, topic, "0", "14")[0]["what"]


def test_compacted_away_names_the_newer_offset(riverlog: CommandLine) -> None:
    settings = ("cleanup.policy=compact", "segment.ms=100", "min.cleanable.dirty.ratio=0.01")
    options = [word for each in settings for word in ("-s", each)]
    topic = riverlog.topic(*options, "-s", "max.compaction.lag.ms=100")
    riverlog.produce(topic, "k:old", "k:newer", options=("-K", ":"))

    def is_gone() -> bool:
        riverlog.produce(topic, "other:makes the segment roll", options=("-K", ":"))
        return names(riverlog, topic, "0", "0") == ["compacted-away"]

    eventually(is_gone, "nothing was compacted", timeout_s=60)
    [unknown] = reasons(riverlog, topic, "0", "0")
    [known] = reasons(riverlog, topic, "0", "0", "--key", "k")
    assert "is unknown without --key" in unknown["what"]
    assert "the newer record of the key has offset 1" in known["what"]


def test_a_group_that_has_committed_beyond_it(riverlog: CommandLine, topic: str) -> None:
    group = f"g-{topic}"
    riverlog("group", "seek", group, "--topic", topic, "--to", "5")
    beyond, nobody = reasons(riverlog, topic, "0", "3", "--group", group)
    assert beyond["reason"] == "group-committed-beyond"
    assert f"riverlog group seek {group} --topic {topic} -p 0 --to 3" in beyond["remedy"]
    assert nobody["reason"] == "no-members"
    assert names(riverlog, topic, "0", "3", "--group", f"not-{group}") == ["no-group"]


def test_a_group_without_members_that_has_read_other_topics(riverlog: CommandLine, topic: str) -> None:
    group, other = f"g-{topic}", riverlog.topic()
    riverlog("group", "seek", group, "--topic", other, "--to", "start")
    nobody, elsewhere = reasons(riverlog, topic, "0", "3", "--group", group)
    assert (nobody["reason"], elsewhere["reason"]) == ("no-members", "read-other-topics")
    assert f"has never committed in {topic}, only in {other}" in elsewhere["what"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_owner_and_how_long_it_has_been_silent(riverlog: CommandLine, topic: str, protocol: str) -> None:
    group = f"g-{protocol}-{topic}"
    with member(riverlog, group, topic, group_protocol=protocol) as consumer:
        never, _ = reasons(riverlog, topic, "0", "3", "--group", group)
        consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
        silent, owner = reasons(riverlog, topic, "0", "3", "--group", group)
    assert "committed nothing here" in never["what"]
    assert silent["reason"] == "member-silent"
    assert "last committed here at 20" in silent["what"]
    assert "when it last polled is unknown" in silent["what"]
    assert owner["reason"] == "owned-by"
    assert "client the-client" in owner["what"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_have_subscribed_to_another_topic(
    riverlog: CommandLine, topic: str, protocol: str
) -> None:
    group, other = f"g-{protocol}-{topic}", riverlog.topic()
    with member(riverlog, group, other, group_protocol=protocol):
        [reason] = reasons(riverlog, topic, "0", "3", "--group", group)
    assert reason["reason"] == "subscribed-elsewhere"
    assert f"only to {other}" in reason["what"]


def test_a_key_that_is_hashed_to_another_partition(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "10")
    for partition in range(10):
        riverlog.produce(topic, "x", options=("-p", str(partition)))
    # Of ten, "k1" goes to 7 by murmur2 and to 3 by CRC32.
    by_partition = {each: names(riverlog, topic, str(each), "0", "--key", "k1") for each in range(10)}
    assert sorted(by_partition.values()) == [["hashed-elsewhere"]] * 8 + [
        ["placed-by-crc32"],
        ["placed-by-murmur2"],
    ]
    producer = Producer({"bootstrap.servers": riverlog.bootstrap})
    producer.produce(topic, "by librdkafka", key="k1")
    producer.flush(20)
    riverlog.produce(topic, "k1:by murmur2", options=("-K", ":"))
    told = riverlog("explain", topic, "--key", "k1", "--since", "10m", "-o", "json").json
    assert {each["reasons"][0]["reason"] for each in told} == {"placed-by-crc32", "placed-by-murmur2"}


def test_a_key_without_records_is_said_to_have_none(riverlog: CommandLine, topic: str) -> None:
    [reason] = reasons(riverlog, topic, "--key", "nobody", "--since", "1h")
    assert reason["reason"] == "no-record-of-key"
    assert "by murmur2 (Java)" in reason["what"]
    assert "by CRC32 (librdkafka)" in reason["what"]


def test_later_reasons_follow_the_first(riverlog: CommandLine, topic: str) -> None:
    riverlog("topic", "trim", topic, "--before", "5", "-p", "0", "--yes")
    riverlog("group", "seek", f"g-{topic}", "--topic", topic, "--to", "8")
    shown = riverlog("explain", topic, "0", "3", "--group", f"g-{topic}").stdout
    assert [
        line.split(":")[0].strip()
        for line in shown.splitlines()
        if line.startswith("  ") and ". " in line[:6]
    ] == [
        "1. below-log-start",
        "2. group-committed-beyond",
        "3. no-members",
    ]


@pytest.mark.parametrize("arguments", [("t",), ("t", "0"), ("t", "--key", "k"), ("t", "--since", "1h")])
def test_what_to_explain_must_be_said(riverlog: CommandLine, arguments: tuple[str, ...]) -> None:
    assert "--key K --since 10m" in riverlog("explain", *arguments, code=2).stderr
