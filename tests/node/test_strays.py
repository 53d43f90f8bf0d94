"""Logs that no partition claims at a start: moved aside, not deleted, and many are a reason not to start."""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from riverlog.model.errors import FormatError
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.directory.strays import strays_in
from riverlog.testing import Broker
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.raw_client import RawClient
from tests.cli.running import CommandLine
from tests.storage.logs import ManualClock

ASIDE = re.compile(r"([a-z]+-[0-9]+)\.[0-9a-f]{32}-stray")


def aside(data_dir: str) -> dict[str, str]:
    """The directories of strays, by the partition that they were of."""
    found = [ASIDE.fullmatch(name) for name in os.listdir(data_dir)]
    return {match[1]: f"{data_dir}/{match[0]}" for match in found if match is not None}


def content(directory: str) -> bytes:
    return (Path(directory) / f"{0:020d}.log").read_bytes()


def test_a_log_of_no_topic_is_moved_aside_under_kafkas_name_and_shown_to_nobody(tmp_path: Path) -> None:
    """Apache Kafka 4.3.1 renames it the same way and leaves it out of DescribeLogDirs."""
    with Broker(data_dir=str(tmp_path)) as broker:
        with RawClient(broker) as client:
            for topic in ("kept", "also", "too"):
                client.produce_to_new_topic(topic)
        broker.stop()
        kept = content(f"{broker.data_dir}/kept-0")
        shutil.copytree(f"{broker.data_dir}/kept-0", f"{broker.data_dir}/other-3")
        shutil.copytree(f"{broker.data_dir}/kept-0", f"{broker.data_dir}/kept-7")
        broker.start()
        found = aside(broker.data_dir)
        assert found.keys() == {"other-3", "kept-7"}
        assert [content(directory) for directory in found.values()] == [kept, kept]
        with RawClient(broker) as client:
            (described,) = client.ask(
                ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None)
            ).results
            assert {topic.name for topic in described.topics} == {"kept", "also", "too"}
            assert client.fetch("kept", 0).high_watermark == 1
        broker.restart()
        assert aside(broker.data_dir) == found, "they stay as they are"


def test_a_log_of_an_older_topic_of_the_same_name_is_kept_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        with RawClient(broker) as client:
            client.produce_to_new_topic("again")
            old = content(f"{broker.data_dir}/again-0")
            with monkeypatch.context() as patched:
                patched.setattr(DataDirectories, "delete_log", lambda self, topic_partition: None)
                client.delete_topic("again")
                client.create_topic("again")
                broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            assert client.produce("again").base_offset == 0
        assert [content(directory) for directory in aside(broker.data_dir).values()] == [old]


@pytest.fixture
def without_topics(tmp_path: Path) -> Path:
    """A data directory with the logs of three topics, of which its metadata, an old copy, has one."""
    data_dir = tmp_path / "data"
    with Broker(data_dir=str(data_dir)) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("first")
        broker.stop()
        copies = [path for path in data_dir.iterdir() if path.name.startswith("riverlog-metadata")]
        assert copies
        for path in copies:
            shutil.copy(path, tmp_path / path.name)
        broker.start()
        with RawClient(broker) as later:
            later.produce_to_new_topic("second")
            later.produce_to_new_topic("third")
    for path in data_dir.glob("riverlog-metadata*"):
        path.unlink()
    for path in copies:
        shutil.copy(tmp_path / path.name, data_dir / path.name)
    return data_dir


def test_a_start_that_would_move_most_logs_aside_is_refused(without_topics: Path) -> None:
    with pytest.raises(FormatError, match=r"2 of 3 logs.*riverlog\.strays\.accept=true"):
        Broker(data_dir=str(without_topics)).start()
    assert {"first-0", "second-0", "third-0"} <= set(os.listdir(without_topics))
    with Broker({"riverlog.strays.accept": "true"}, data_dir=str(without_topics)) as broker:
        assert aside(broker.data_dir).keys() == {"second-0", "third-0"}
        with RawClient(broker) as client:
            assert client.fetch("first", 0).high_watermark == 1


def test_strays_are_listed_and_removed_by_a_command(without_topics: Path) -> None:
    line = CommandLine("127.0.0.1:1")
    with Broker({"riverlog.strays.accept": "true"}, data_dir=str(without_topics)):
        listed = line("log", "strays", str(without_topics), "-o", "json").json
        assert [(row["topic"], row["partition"]) for row in listed] == [("second", 0), ("third", 0)]
        assert all(row["size_bytes"] > 0 and row["topic_id"] for row in listed)
        refused = line("log", "strays", str(without_topics), "--remove", code=2)
        assert "--yes" in refused.stderr
        assert aside(str(without_topics))
        line("log", "strays", str(without_topics), "--remove", "--yes")
        assert not aside(str(without_topics))
        assert (without_topics / "first-0").is_dir()


LONG = TopicPartition("t" * 249, 12)


@pytest.mark.parametrize("partition", [TopicPartition("orders", 3), LONG])
def test_a_power_cut_leaves_a_log_that_is_moved_aside_under_one_of_its_names(
    partition: TopicPartition,
) -> None:
    for changes in range(4):
        disk = SimulatedDisk()
        directory = open_directory(disk)
        directory.create(partition, None)
        log = directory.get(partition)
        assert log is not None
        directory.close()
        directory = open_directory(disk)
        disk.power_off_after = disk.operations + changes
        is_done = False
        with suppress(PowerOff):
            directory.set_aside(partition)
            is_done = True
        disk.crash(changes)
        (name,) = [each for each in disk.list("/data") if each.startswith(partition.topic[:5])]
        strays = strays_in(disk, "/data")
        assert len(strays) == (name != str(partition))
        assert strays or not is_done, "what is said to be done is on disk"
        if strays:
            assert len(name) <= 255
            assert strays[0].topic_partition.partition == partition.partition
    assert is_done


def open_directory(disk: SimulatedDisk) -> LogDirectory:
    return LogDirectory.open(
        "/data", disk=disk, clock=ManualClock(), node_id=NodeId(1), cluster_id=None, new_uuid=uuid4
    )
