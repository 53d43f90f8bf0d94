"""Topics that come while `consume` reads by a pattern."""

import signal
import uuid

import pytest
from confluent_kafka import Consumer

from tests.cli.running import CommandLine
from tests.cli.test_consume_ends import consuming, line_of
from tests.waiting import eventually


@pytest.fixture
def prefix() -> str:
    return f"later-{uuid.uuid4().hex[:8]}"


def add(riverlog: CommandLine, topic: str, *values: str) -> None:
    riverlog("topic", "create", topic, "--partitions", "2")
    riverlog.produce(topic, *values)


def lags(riverlog: CommandLine, group: str) -> dict[str, int]:
    """Of what is committed, by topic; it is committed every five seconds."""
    found: dict[str, int] = {}
    for each in riverlog("group", "describe", group, "-o", "json").json[0]["partitions"]:
        found[each["topic"]] = found.get(each["topic"], 0) + each["lag"]
    return found


@pytest.mark.parametrize("grouped", [False, True])
def test_a_topic_that_comes_later_is_read_from_its_start(
    riverlog: CommandLine, prefix: str, grouped: bool
) -> None:
    add(riverlog, f"{prefix}-a", "old")
    group = ("--group", prefix) if grouped else ()
    with consuming(riverlog, f"{prefix}-*", "--from", "start", "-f", "%t=%s\n", *group) as process:
        assert line_of(process.stdout) == f"{prefix}-a=old\n"
        add(riverlog, f"{prefix}-b", "first")
        assert line_of(process.stdout) == f"{prefix}-b=first\n"
        assert f"topic {prefix}-b is new" in line_of(process.stderr)
        riverlog.produce(f"{prefix}-a", "still read")
        assert line_of(process.stdout) == f"{prefix}-a=still read\n"
        add(riverlog, f"other-{prefix}", "not meant")
        add(riverlog, f"{prefix}-c", "last")
        assert line_of(process.stdout) == f"{prefix}-c=last\n"
        if grouped:
            eventually(lambda: lags(riverlog, prefix) == {f"{prefix}-{letter}": 0 for letter in "abc"})
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize("grouped", [False, True])
def test_a_pattern_that_nothing_matches_yet_waits(riverlog: CommandLine, prefix: str, grouped: bool) -> None:
    group = ("--group", prefix) if grouped else ()
    with consuming(riverlog, f"{prefix}-*", "-n", "1", *group) as process:
        assert f"no topic matches '{prefix}-*' yet" in line_of(process.stderr)
        add(riverlog, f"{prefix}-a", "here")
        assert line_of(process.stdout) == "here\n"
        assert process.wait(20) == 0


def test_a_topic_is_taken_in_while_records_of_another_keep_coming(riverlog: CommandLine, prefix: str) -> None:
    """librdkafka does so too."""
    add(riverlog, f"{prefix}-a", *(f"{number}" for number in range(5)))
    consumer = Consumer(
        {
            "bootstrap.servers": riverlog.bootstrap,
            "group.id": prefix,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    seen: set[str] = set()

    def read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            seen.add(message.topic() or "")
        return len(seen) == 2

    consumer.subscribe([f"^{prefix}-.*"])
    with consuming(riverlog, f"{prefix}-*", "--from", "start", "-f", "%t\n") as process:
        assert line_of(process.stdout) == f"{prefix}-a\n"
        add(riverlog, f"{prefix}-b", "x")

        def comes() -> bool:
            riverlog.produce(f"{prefix}-a", "more")
            return line_of(process.stdout) == f"{prefix}-b\n"

        eventually(comes, timeout_s=40)
    eventually(read, timeout_s=40)
    consumer.close()
