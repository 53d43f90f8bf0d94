"""How `consume` ends, and what it says of a broker or topic that is gone."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from confluent_kafka import Producer

from riverlog.testing import Broker
from tests.cli.running import EXECUTABLE, CommandLine
from tests.waiting import eventually, is_readable, looks

PROMPT_S = 20.0


@contextmanager
def consuming(riverlog: CommandLine, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [EXECUTABLE, "consume", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # A line in a buffer of ours would not be seen by `is_readable`.
        env={**os.environ, **riverlog.environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(stream: IO[bytes] | None) -> str:
    assert stream is not None
    assert is_readable(stream, PROMPT_S), "nothing came"
    return stream.readline().decode()


def members(riverlog: CommandLine, group: str) -> int:
    [found] = riverlog("group", "describe", group, "-o", "json").json
    return int(found["members"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_group(riverlog: CommandLine, number: signal.Signals) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "one")
    with consuming(riverlog, topic, "--group", f"g-{topic}", "--from", "start") as process:
        assert line_of(process.stdout) == "one\n"
        assert members(riverlog, f"g-{topic}") == 1

        process.send_signal(number)
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, output, errors) == (0, b"", b"")
    assert members(riverlog, f"g-{topic}") == 0, "its session would have lasted 45 s"
    [found] = riverlog("group", "describe", f"g-{topic}", "-o", "json").json
    assert found["lag"] == 0


@pytest.mark.parametrize("options", [(), ("--group", "g")])
def test_two_quick_interrupts_end_quietly(riverlog: CommandLine, options: tuple[str, ...]) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "one")
    named = tuple(f"{each}-{topic}" if each == "g" else each for each in options)
    with consuming(riverlog, topic, "--from", "start", *named) as process:
        assert line_of(process.stdout) == "one\n"

        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        for _ in looks(20):
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, output, errors) == (0, b"", b"")


def test_an_interrupt_before_the_wanted_number_of_records_is_no_success(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "one")
    with consuming(riverlog, topic, "--from", "start", "--count", "2") as process:
        assert line_of(process.stdout) == "one\n"

        process.send_signal(signal.SIGINT)

        assert process.wait(20) == 130


def test_a_follower_says_that_its_broker_is_gone_and_back_though_nothing_new_comes() -> None:
    with Broker() as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
        riverlog.produce(topic, "before")
        with consuming(riverlog, topic, "--from", "start") as process:
            assert line_of(process.stdout) == "before\n"

            broker.kill()
            assert "the connection is lost" in line_of(process.stderr)
            broker.restart()
            assert line_of(process.stderr) == "the broker is back\n"


@pytest.mark.parametrize("error", ["UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"])
def test_what_a_broker_or_the_client_has_not_heard_yet_of_a_new_leader_is_waited_for(error: str) -> None:
    with Broker() as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
        riverlog.produce(topic, "one")
        fault = broker.faults.error("ListOffsets", error, times=2)

        done = riverlog("consume", topic, "--from", "start", "--exit-at-end")

        assert done.stdout == "one\n"
        assert fault.hits == 2


@pytest.mark.parametrize("options", [(), ("--group", "g")])
def test_a_follower_says_that_its_topic_was_deleted_and_reads_the_new_one(
    riverlog: CommandLine, options: tuple[str, ...]
) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "first", "second")
    named = tuple(f"{each}-{topic}" if each == "g" else each for each in options)
    with consuming(riverlog, topic, "--from", "start", *named) as process:
        assert line_of(process.stdout) == "first\n"
        assert line_of(process.stdout) == "second\n"

        riverlog("topic", "delete", topic, "--yes")
        assert f"topic {topic} was deleted" in line_of(process.stderr)
        riverlog("topic", "create", topic, "--partitions", "2")
        riverlog.produce(topic, "of the new one", options=("-p", "1"))

        assert f"topic {topic} is there again" in line_of(process.stderr)
        assert line_of(process.stdout) == "of the new one\n"


def test_a_topic_that_was_replaced_between_two_looks_is_read_from_its_start(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, *"abc")
    with consuming(riverlog, topic, "--from", "start") as process:
        assert [line_of(process.stdout) for _ in range(3)] == ["a\n", "b\n", "c\n"]

        riverlog("topic", "delete", topic, "--yes")
        riverlog("topic", "create", topic)
        riverlog.produce(topic, "d")

        assert line_of(process.stdout) == "d\n"


def test_a_topic_that_is_deleted_before_its_end_is_read_is_not_found(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    with open_transaction(riverlog, topic, "held"):
        riverlog("topic", "delete", topic, "--yes")

    riverlog("consume", topic, "-e", "--timeout", "5", code=4)


@contextmanager
def open_transaction(riverlog: CommandLine, topic: str, *values: str) -> Iterator[str]:
    """The transactional id of a producer that has written the values and not ended its transaction."""
    name = f"tx-{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": riverlog.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.flush(20)
    yield name
    producer.purge()


def test_stopping_below_the_end_names_the_transaction_that_holds_it(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "committed")
    with open_transaction(riverlog, topic, "open", "open") as name:
        stopped = riverlog.consume(topic)
        in_group = riverlog.consume(topic, "--group", f"g-{topic}")
        everything = riverlog.consume(topic, "--isolation", "read_uncommitted")
        described = riverlog("topic", "describe", topic).stdout
        [document] = riverlog("topic", "describe", topic, "-o", "json").json
        riverlog("txn", "abort", name, "--yes")

    for outcome in (stopped, in_group):
        assert outcome.stdout == "committed\n"
        assert f"{topic}-0: committed records end at offset 1 of 3" in outcome.stderr
        assert f"the transaction of {name} has been open for" in outcome.stderr
        assert f"riverlog txn abort {name}" in outcome.stderr
    assert (everything.stdout.split(), everything.stderr) == (["committed", "open", "open"], "")
    assert f"the transaction of {name} has been open" in described
    assert document["partitions"][0]["last_stable_offset"] == 1
    eventually(lambda: riverlog.consume(topic).stderr == "", "the end is reached once it is aborted")


def test_a_new_group_that_is_given_nothing_says_once_where_it_begins(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "before")
    with consuming(riverlog, topic, "--group", f"g-{topic}", "--count", "2") as process:
        said = line_of(process.stderr)
        assert f"waiting for new records of {topic}: a new group begins at the end" in said
        assert f"riverlog group seek g-{topic} --to start" in said

        riverlog.produce(topic, "first", "second")
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, output, errors) == (0, b"first\nsecond\n", b"")


@pytest.mark.parametrize("begin", [("--from", "end"), ()], ids=["told", "known"])
def test_a_group_that_was_told_or_is_known_waits_in_silence(
    riverlog: CommandLine, begin: tuple[str, ...]
) -> None:
    topic = riverlog.topic()
    group = f"g-{topic}"
    if not begin:
        riverlog("consume", topic, "--group", group, "--exit-at-end", "--timeout", "5")
    with consuming(riverlog, topic, "--group", group, *begin) as process:
        assert process.stderr is not None
        assert not is_readable(process.stderr, 4.0)


def test_the_help_s_example_of_a_group_works_for_a_new_one(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, *map(str, range(100)))
    lines = riverlog("consume", "--help").stdout.splitlines()
    [example] = [line.split() for line in lines if "--group billing" in line]
    options = [word.replace("billing", f"g-{topic}") for word in example[3:]]

    assert len(riverlog("consume", topic, *options).stdout.splitlines()) == 100
