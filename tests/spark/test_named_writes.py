"""Batch writes with a `writeId`: done once, and told apart from other writes and other names."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.client.cluster import Cluster
from riverlog.spark.sink.commit import EpochCommit, NameUsedBefore
from riverlog.spark.sink.committed import CommitCount
from riverlog.spark.sink.leftovers import abort_leftovers
from riverlog.spark.sink.options import sink_options
from riverlog.spark.sink.task_writer import write_exactly_once
from riverlog.spark.sink.tasks import Task
from riverlog.testing import Broker
from tests.spark.sink_parts import rows, values_of

_names = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=-1) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"rows-{next(_names)}"
    broker.create_topic(name, partitions=2)
    return name


def named_write(broker: Broker, name: str, run: str, batch: Any, topic: str | None = None) -> None:
    """A `df.write` with this writeId and one task."""
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "writeId": name}
    options = sink_options(given if topic is None else {**given, "topic": topic}, is_stream=False)
    told = write_exactly_once(options, Task(f"write-{name}", run, 0, 0, 0, may_be_repeated=True), [batch])
    with Cluster(options.client) as cluster:
        EpochCommit(cluster, told.identity, told.run, 0, [told], is_stream=False).commit()


@pytest.mark.parametrize("in_column", [False, True])
def test_the_name_of_a_write_to_one_topic_is_refused_for_another_topic(
    broker: Broker, topic: str, in_column: bool
) -> None:
    other = f"{topic}-other"
    broker.create_topic(other)

    def write(run: str, to: str) -> None:
        if in_column:
            named_write(broker, topic, run, rows([b"a"], topic=[to]))
        else:
            named_write(broker, topic, run, rows([b"a"]), to)

    write("run1", topic)
    with pytest.raises(
        NameUsedBefore, match=rf"rows for {topic}; this one has rows for {other}\. Nothing was"
    ):
        write("run2", other)
    write("run3", topic)
    assert values_of(broker, topic) == {b"a": 1}
    assert values_of(broker, other) == {}


def test_a_repeated_write_with_another_number_of_rows_is_warned_about(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    named_write(broker, topic, "run1", rows([b"a", b"b"]), topic)
    named_write(broker, topic, "run2", rows([b"a", b"b"]), topic)
    assert "was done before" not in caplog.text
    named_write(broker, topic, "run3", rows([b"a", b"b", b"c"]), topic)
    assert f"write write-{topic} was done before, with 2 rows; this time it has 3" in caplog.text
    assert values_of(broker, topic) == {b"a": 1, b"b": 1}


def test_a_name_that_another_name_begins_with_touches_nothing_of_that_one(broker: Broker, topic: str) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "writeId": f"{topic}/1", "topic": topic}
    options = sink_options(given, is_stream=False)
    task = Task(f"write-{topic}/1", "run1", 0, 0, 0, may_be_repeated=True)
    told = write_exactly_once(options, task, [rows([b"part"])])
    named_write(broker, topic, "run2", rows([b"whole"]), topic)
    abort_leftovers(broker.bootstrap_servers, f"write-{topic}")
    with Cluster(options.client) as cluster:
        counted = CommitCount([f"write-{topic}"])
        counted.refresh(cluster)
        EpochCommit(cluster, told.identity, told.run, 0, [told], is_stream=False).commit()
    assert counted.open_transactions == 0
    assert values_of(broker, topic) == {b"part": 1, b"whole": 1}


def test_named_writes_leave_no_files_of_names(broker: Broker, topic: str, names: Path) -> None:
    """They have one epoch, and with it nothing to hand on; a paced replay makes one each second."""
    for number in range(3):
        named_write(broker, f"{topic}-{number}", f"run{number}", rows([b"a"]), topic)
    assert list(names.iterdir()) == []
    assert values_of(broker, topic) == {b"a": 3}
