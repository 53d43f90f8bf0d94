"""`riverlog log verify --against`: files of a replica and what a broker has of it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from riverlog.cli.records.replica_comparison import (
    Batch,
    Difference,
    between,
    differences,
    differences_by_key,
)
from riverlog.records.batch import read_header
from riverlog.records.builder import build_batch
from riverlog.testing import Broker, Cluster
from riverlog.testing.cluster_broker import ClusterBroker
from tests.cli.running import CommandLine
from tests.cli.test_txn import transactional

FIRST = "00000000000000000000.log"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def broker(data: Path) -> Iterator[Broker]:
    with Broker(data_dir=data, log_segment_bytes=1024 * 1024) as broker:
        yield broker


@pytest.fixture
def riverlog(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap_servers)


@pytest.fixture
def topic(riverlog: CommandLine) -> str:
    name = riverlog.topic("--partitions", "2")
    for number in range(5):
        for partition in ("0", "1"):
            riverlog.produce(name, f"v{number}", options=("-p", partition))
    return name


def copied(data: Path, tmp_path: Path, topic: str) -> Path:
    for directory in data.glob(f"{topic}-*"):
        shutil.copytree(directory, tmp_path / directory.name)
    return tmp_path


def test_replicas_that_are_the_same(
    riverlog: CommandLine, broker: Broker, data: Path, topic: str, tmp_path: Path
) -> None:
    copy = copied(data, tmp_path, topic)
    told = riverlog("log", "verify", str(copy), "--against", broker.bootstrap_servers, "-o", "json")
    assert told.json == []
    assert "2 replicas compared with" in told.stderr
    assert "10 offsets, 0 differences" in told.stderr


def test_one_that_is_behind_is_compared_as_far_as_it_goes(
    riverlog: CommandLine, broker: Broker, data: Path, topic: str, tmp_path: Path
) -> None:
    copy = copied(data, tmp_path, topic)
    riverlog.produce(topic, "later", options=("-p", "0"))
    riverlog("topic", "trim", topic, "--before", "2", "-p", "1", "--yes")
    told = riverlog("log", "verify", str(copy), "--against", broker.bootstrap_servers)
    assert "8 offsets, 0 differences" in told.stderr


def test_a_byte_that_differs_is_found(
    riverlog: CommandLine, broker: Broker, data: Path, topic: str, tmp_path: Path
) -> None:
    copy = copied(data, tmp_path, topic)
    log = copy / f"{topic}-1" / FIRST
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    address = broker.bootstrap_servers
    [row] = riverlog("log", "verify", str(copy), "--against", address, "-o", "json", code=1).json
    assert (row["topic"], row["partition"], row["offset"]) == (topic, 1, 4)
    assert row["problem"] == "the bytes of the batch 4 to 4 differ"
    riverlog("log", "verify", str(copy / f"{topic}-0"), "--against", address)


def test_compacted_ones_agree_on_the_newest_record_of_each_key(
    riverlog: CommandLine, broker: Broker, data: Path, tmp_path: Path
) -> None:
    topic = riverlog.topic("-s", "cleanup.policy=compact")
    _, producer = transactional(broker.bootstrap_servers)
    for key, value, commits in (
        (b"a", b"1", True),
        (b"a", b"2", True),
        (b"a", b"3", False),
        (b"b", b"1", True),
    ):
        producer.begin_transaction()
        producer.produce(topic, value, key, partition=0)
        producer.flush(20)
        producer.commit_transaction(20) if commits else producer.abort_transaction(20)
    copy = copied(data, tmp_path, topic)
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    plain.produce(topic, b"new", b"c", partition=0)
    plain.flush(20)
    told = riverlog("log", "verify", str(copy), "--against", broker.bootstrap_servers)
    assert "1 of them by the newest record of each key" in told.stderr
    assert "0 differences" in told.stderr


def test_what_cannot_be_compared_is_told(
    riverlog: CommandLine, broker: Broker, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere-0").mkdir()
    address = broker.bootstrap_servers
    assert (
        "is not in the cluster"
        in riverlog("log", "verify", str(tmp_path), "--against", address, code=1).stderr
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no logs in" in riverlog("log", "verify", str(empty), "--against", address, code=4).stderr
    both = f"{address},{address}"
    assert "names one broker" in riverlog("log", "verify", str(tmp_path), "--against", both, code=2).stderr


def batch(offset: int, *pairs: tuple[bytes | None, bytes | None]) -> Batch:
    data = bytes(build_batch([(0, key, value, ()) for key, value in pairs], base_offset=offset))
    return Batch(read_header(data, 0), data)


A0, A1, B1 = batch(0, (b"a", b"0")), batch(1, (b"a", b"1")), batch(1, (b"b", b"1"))


def test_batches_are_compared_in_order() -> None:
    both = batch(0, (b"a", b"0"), (b"a", b"1"))
    assert list(differences([A0, A1], [A0, A1])) == []
    assert list(differences([A0, A1], [A0, B1])) == [Difference(1, "the bytes of the batch 1 to 1 differ")]
    assert list(differences([A0], [A0, A1])) == [Difference(1, "there is a batch that is missing here")]
    assert list(differences([A0, A1], [A0])) == [Difference(1, "here is a batch that is missing there")]
    assert [each.offset for each in differences([both], [A0, A1])] == [0, 1]
    assert list(between([A0, A1, batch(2, (b"x", b"y"))], 1, 2)) == [A1]


def test_newest_records_are_compared_by_key() -> None:
    gone = batch(2, (b"a", None))
    assert list(differences_by_key([A0, A1], [A1])) == []
    assert list(differences_by_key([A0, A1, gone], [])) == []
    assert [each.offset for each in differences_by_key([A0, A1], [A0, B1])] == [0, 1]
    [differs] = differences_by_key([A0, A1], [A0, A1, gone])
    assert differs.what == "the newest records of a key differ: at offset 1 here and none there"


def test_the_directory_of_a_broker_is_not_taken_for_that_of_a_partition(
    riverlog: CommandLine, broker: Broker, data: Path, topic: str, tmp_path: Path
) -> None:
    one_of_several = tmp_path / "broker-1"
    one_of_several.mkdir()
    copied(data, one_of_several, topic)
    shutil.copy(data / "meta.properties", one_of_several)
    told = riverlog("log", "verify", str(one_of_several), "--against", broker.bootstrap_servers)
    assert "2 replicas compared with" in told.stderr


@pytest.fixture(scope="module")
def sparse() -> Iterator[Cluster]:
    """Each broker has the only replica of one partition."""
    with Cluster(3) as cluster:
        cluster.create_topic("orders", partitions=3)
        for partition in range(3):
            cluster.produce("orders", "an order", partition=partition)
        yield cluster


def test_partitions_of_which_the_broker_has_no_replica_are_one_line(sparse: Cluster, tmp_path: Path) -> None:
    """Logs of all brokers against the first one."""
    riverlog = CommandLine(sparse.bootstrap_servers)
    led = sparse.leaders("orders")
    for index, leader in led.items():
        assert leader is not None
        shutil.copytree(data_of(sparse, leader) / f"orders-{index}", tmp_path / f"orders-{index}")
    others = sorted(f"orders-{index}" for index, leader in led.items() if leader != 1)
    address = sparse.brokers[1].bootstrap_servers
    told = riverlog("log", "verify", str(tmp_path), "--against", address)
    expected = f"warning: {address} has no replica of {', '.join(others)}: not compared"
    assert [line for line in told.stderr.splitlines() if line.startswith("warning")] == [expected]
    assert "1 replica compared" in told.stderr
    none = riverlog("log", "verify", str(tmp_path / others[0]), "--against", address, code=1)
    assert none.stderr.splitlines()[0] == f"warning: {address} has no replica of {others[0]}: not compared"


@pytest.mark.parametrize("is_compared", [False, True])
def test_the_directory_of_several_brokers_is_none_that_can_be_verified(
    sparse: Cluster, tmp_path: Path, *, is_compared: bool
) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"broker-{number}").mkdir()
        shutil.copy(data_of(sparse, 1) / "meta.properties", tmp_path / f"broker-{number}")
    (tmp_path / "metadata").mkdir()
    options = ("--against", sparse.brokers[1].bootstrap_servers) if is_compared else ()
    told = CommandLine(sparse.bootstrap_servers)("log", "verify", str(tmp_path), *options, code=2)
    assert f"{tmp_path} is the directory of several brokers and holds no logs itself" in told.stderr
    assert f"{tmp_path}/broker-1 {tmp_path}/broker-2 {tmp_path}/broker-10" in told.stderr


def data_of(cluster: Cluster, node_id: int) -> Path:
    broker = cluster.brokers[node_id]
    assert isinstance(broker, ClusterBroker)
    return Path(broker.data_dir)
