"""Kafka's Java consumer in groups of both protocols, and `kafka-consumer-groups` on them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread
from typing import IO

import pytest

from interop.conftest import KAFKA, Server, Tool

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ASSIGNORS = {"classic": "range", "consumer": "uniform"}
RECORDS = [f"record {number}" for number in range(20)]
DEADLINE_S = 60


@pytest.mark.parametrize("protocol", ASSIGNORS)
def test_kafka_consumer_groups_sees_changes_and_deletes_a_group(
    server: Server, tool: Tool, protocol: str
) -> None:
    topic, group = f"grouped-{protocol}", f"group-{protocol}"
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", topic, "--partitions", "1")
    tool(PRODUCER, *at, "--topic", topic, stdin="\n".join(RECORDS) + "\n")
    with _reading(server, topic, group, protocol) as lines:
        assert [lines.get(timeout=DEADLINE_S) for _ in RECORDS] == RECORDS
        _describe_while_it_reads(tool, server, topic, group, protocol)
    of_group = (GROUPS, *at, "--group", group)
    assert _rows(tool(*of_group, "--describe")) == [
        {"GROUP": group, "TOPIC": topic, "PARTITION": "0", "CURRENT-OFFSET": "20", "LOG-END-OFFSET": "20",
         "LAG": "0", "CONSUMER-ID": "-", "HOST": "-", "CLIENT-ID": "-"}
    ]  # fmt: skip
    tried = tool(*of_group, "--reset-offsets", "--topic", topic, "--to-earliest", "--dry-run")
    assert _rows(tried)[0]["NEW-OFFSET"] == "0"
    assert _rows(tool(*of_group, "--describe"))[0]["CURRENT-OFFSET"] == "20", "only tried"
    tool(*of_group, "--reset-offsets", "--all-topics", "--shift-by", "-3", "--execute")
    assert _rows(tool(*of_group, "--describe"))[0]["LAG"] == "3"
    with _reading(server, topic, group, protocol) as lines:
        assert [lines.get(timeout=DEADLINE_S) for _ in range(3)] == RECORDS[-3:], "from where it was set to"
    assert "Successful" in tool(*of_group, "--delete-offsets", "--topic", topic)
    assert _rows(tool(*of_group, "--describe")) == []
    assert "was successful" in tool(*of_group, "--delete")
    assert group not in tool(GROUPS, *at, "--list").split()


def _describe_while_it_reads(tool: Tool, server: Server, topic: str, group: str, protocol: str) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    listed = {row["GROUP"]: row["STATE"] for row in _rows(tool(GROUPS, *at, "--list", "--state"))}
    assert listed[group] == "Stable"
    of_group = (GROUPS, *at, "--group", group, "--describe")
    (state,) = _rows(tool(*of_group, "--state"))
    assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
    assert state["ASSIGNMENT-STRATEGY"] == ASSIGNORS[protocol]
    (member,) = _rows(tool(*of_group, "--members", "--verbose"))
    assert (member["CLIENT-ID"], member["#PARTITIONS"]) == ("console-consumer", "1")
    assert member["CURRENT-ASSIGNMENT"] == f"{topic}:0"
    (partition,) = _rows(tool(*of_group, "--offsets"))
    assert partition["CONSUMER-ID"] == member["CONSUMER-ID"]
    assert partition["LOG-END-OFFSET"] == "20"


@contextmanager
def _reading(server: Server, topic: str, group: str, protocol: str) -> "Iterator[Queue[str]]":
    """A Java consumer in a group; it commits and leaves at the end."""
    process = subprocess.Popen(
        [str(KAFKA), "run", CONSUMER, "--bootstrap-server", server.bootstrap, "--topic", topic,
         "--group", group, "--from-beginning", "--command-property", f"group.protocol={protocol}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines: Queue[str] = Queue()
    feeder = Thread(target=_feed, args=(process.stdout, lines))
    feeder.start()
    try:
        yield lines
    finally:
        process.terminate()
        feeder.join(DEADLINE_S)
        with process:
            assert process.stderr is not None
            errors = process.stderr.read()
    assert "ERROR" not in errors
    assert "Exception" not in errors, errors


def _feed(output: IO[str], lines: "Queue[str]") -> None:
    for line in output:
        lines.put(line.rstrip("\n"))


def _rows(table: str) -> list[dict[str, str]]:
    """The rows of the tool's table; blanks part its columns, and only names here hold none."""
    lines = [line.replace("COORDINATOR (ID)", "COORDINATOR ID").split() for line in table.splitlines()]
    heads = [number for number, line in enumerate(lines) if line[:1] == ["GROUP"]]
    if not heads:
        return []
    head = lines[heads[0]]
    return [dict(zip(head, line, strict=True)) for line in lines[heads[0] + 1 :] if line]
