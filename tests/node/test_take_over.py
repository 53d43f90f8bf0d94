"""A single node's directory becomes that of the first of several brokers, whatever interrupts it."""

import asyncio
import os
from pathlib import Path
from uuid import uuid4

import pytest

from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.errors import DirectoryInUseError, FormatError
from riverlog.model.ids import NodeId
from riverlog.node.node import Node
from riverlog.node.processes.cluster_directory import prepared_directories
from riverlog.node.processes.members import members
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files.meta_properties import MetaProperties, write_meta_properties
from riverlog.testing import Broker

RECORDS = ["a", "b", "c"]


class Interrupted(BaseException):
    """As a process that is killed: nobody handles it."""


def settings(directory: Path, **given: object) -> Settings:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return combine([from_mapping({"log.dirs": f"{directory}/a,{directory}/b", **named}, "test")])


def make_single_node(directory: Path) -> None:
    """With topics in both directories, one of which looks like the directory of a broker."""
    broker = Broker({"log.dirs": f"{directory}/a,{directory}/b"}, data_dir=directory / "a")
    with broker:
        for topic in ("orders", "broker"):
            broker.create_topic(topic, partitions=4)
            broker.produce(topic, *RECORDS, partition=1)


def prepare(directory: Path, count: int = 2, **given: object) -> None:
    chosen = settings(directory, **given)
    with prepared_directories(chosen, members(chosen, count)):
        pass


def read_as_first_broker(directory: Path) -> None:
    """All records are there for the first broker of the cluster."""
    first = members(settings(directory), 2)[0]
    broker = Broker(
        {**first.overrides, "listeners": "PLAINTEXT://127.0.0.1:0"}, data_dir=directory / "a" / "broker-1"
    )
    with broker:
        for topic in ("orders", "broker"):
            assert [each.value for each in broker.consume(topic)] == [each.encode() for each in RECORDS]


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_start_that_was_refused_binds_nobody_to_its_number(tmp_path: Path, is_opened: bool) -> None:
    for number in (1, 2, 3):
        make_broker(tmp_path / "a", number, f"of-{number}" if is_opened else "")
    prepare(tmp_path)

    (tmp_path / "a" / "broker-3" / "orders-0").mkdir()
    with pytest.raises(FormatError, match="partitions of 3 would have no leader"):
        prepare(tmp_path)


def make_broker(path: Path, number: int, cluster_id: str) -> None:
    """The directory of a broker without logs; an empty one without the id of a cluster."""
    directory = path / f"broker-{number}"
    directory.mkdir(parents=True)
    if cluster_id:
        meta = MetaProperties(NodeId(number), cluster_id, uuid4())
        write_meta_properties(LocalDisk(), str(directory), meta)


@pytest.mark.parametrize("number", [1, 2])
def test_the_directory_of_one_of_several_brokers_is_no_single_node_s(tmp_path: Path, number: int) -> None:
    given = combine([from_mapping({"log.dirs": str(tmp_path)}, "test")])
    for member in members(given, 3):
        own = {**member.overrides, "listeners": "PLAINTEXT://127.0.0.1:0"}
        with Broker(own, data_dir=tmp_path / f"broker-{member.node_id}"):
            pass
    path = tmp_path / f"broker-{number}"
    before = sorted(os.listdir(path))

    with pytest.raises(FormatError, match=rf"riverlog serve --brokers 3 --data-dir {tmp_path}`"):
        asyncio.run(Node(combine([from_mapping({"log.dirs": str(path)}, "test")])).start())

    assert sorted(os.listdir(path)) == before


def test_the_records_are_those_of_the_first_broker(tmp_path: Path) -> None:
    make_single_node(tmp_path)
    prepare(tmp_path)
    read_as_first_broker(tmp_path)
    prepare(tmp_path, count=3)
    assert sorted(os.listdir(tmp_path / "a")) == [".lock", "broker-1", "metadata"]


@pytest.mark.parametrize("step", [0, 1, 2, 5, 9, 12])
def test_interrupted_at_a_step_it_is_whole_or_starts_no_single_node_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    make_single_node(tmp_path)
    really_rename, left = os.rename, step

    def rename(source: str, target: str) -> None:
        nonlocal left
        if left == 0:
            raise Interrupted
        left -= 1
        really_rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(Interrupted):
            prepare(tmp_path)
    if step > 0:
        with pytest.raises(FormatError, match="not a data directory"):
            asyncio.run(Node(settings(tmp_path, listeners="PLAINTEXT://127.0.0.1:0")).start())
    prepare(tmp_path)
    read_as_first_broker(tmp_path)


def test_a_node_that_is_none_of_the_brokers_is_refused_and_left_alone(tmp_path: Path) -> None:
    make_single_node(tmp_path)
    before = sorted(os.listdir(tmp_path / "a"))
    with pytest.raises(FormatError, match=r"--set node\.id=1"):
        prepare(tmp_path, node_id=7)
    with pytest.raises(FormatError, match="riverlog metadata import"):
        prepare(tmp_path, zookeeper_connect="127.0.0.1:2181")
    assert sorted(os.listdir(tmp_path / "a")) == before


def test_a_node_that_runs_is_left_alone(tmp_path: Path) -> None:
    with (
        Broker({"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}, data_dir=tmp_path / "a"),
        pytest.raises(DirectoryInUseError, match=r"Another process uses .*Stop it"),
    ):
        prepare(tmp_path)


def test_brokers_that_outlive_their_supervisor_are_waited_for_by_none(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    first = members(chosen, 1)[0]
    ports = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    with Broker({**first.overrides, **ports}, data_dir=tmp_path / "a" / "broker-1"):
        with pytest.raises(DirectoryInUseError, match="broker 1 still runs"):
            prepare(tmp_path)
        assert sorted(os.listdir(tmp_path / "a")) == [".lock", "broker-1", "metadata"]
    prepare(tmp_path)


def test_fewer_brokers_than_there_are_directories_are_refused_with_the_command(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        make_broker(tmp_path / "a", number, "of-all")
    with pytest.raises(FormatError, match="--brokers 3"):
        prepare(tmp_path, count=2)
    with pytest.raises(FormatError, match=r"--brokers 3 .*--set node\.id=1"):
        prepare(tmp_path, count=3, node_id=2)
    prepare(tmp_path, count=4)


def test_a_directory_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").touch()
    with pytest.raises(FormatError, match=r"notes\.txt"):
        prepare(tmp_path)


def test_a_single_node_does_not_start_in_the_directory_of_several(tmp_path: Path) -> None:
    for name in ("broker-1", "broker-2", "metadata"):
        (tmp_path / "a" / name).mkdir(parents=True)
    with pytest.raises(FormatError, match="riverlog serve --brokers 2 --data-dir"):
        asyncio.run(Node(settings(tmp_path, listeners="PLAINTEXT://127.0.0.1:0")).start())
