"""A partition is moved between the data directories of a running broker, while clients use it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from riverlog.client.broker_connection import BrokerConnection
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.waiting import eventually

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pytest.fixture
def broker(paths: list[str]) -> Iterator[Broker]:
    with _broker(paths) as running:
        running.create_topic("moved", config={"internal.segment.bytes": 100_000})
        yield running


def _broker(paths: list[str], **settings: object) -> Broker:
    return Broker(
        {"log.dirs": ",".join(paths), "log.segment.delete.delay.ms": 0, **settings}, data_dir=paths[0]
    )


def ask(broker: Broker, key: ApiKey, request: object) -> object:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with BrokerConnection(Address(host, int(port)), timeout_s=10, client_id="test") as connection:
        return connection.ask(key, request)  # type: ignore[arg-type]


def move(broker: Broker, path: str) -> ErrorCode:
    topic = AlterReplicaLogDirTopic(name="moved", partitions=[0])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
    answer = ask(broker, ApiKey.ALTER_REPLICA_LOG_DIRS, request)
    return ErrorCode(answer.results[0].partitions[0].error_code)  # type: ignore[attr-defined]


def places(broker: Broker) -> dict[tuple[str, bool], int]:
    """Lag of the partition, and of a copy of it, by directory."""
    answer = ask(broker, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
    return {
        (directory.log_dir, partition.is_future_key): partition.offset_lag
        for directory in answer.results  # type: ignore[attr-defined]
        for topic in directory.topics
        for partition in topic.partitions
        if topic.name == "moved"
    }


def slow_down(broker: Broker, bytes_per_second: int) -> None:
    config = AlterableConfig(name=RATE, config_operation=0, value=str(bytes_per_second))
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]))


class Writing:
    """A producer in a thread, and what of its records was acknowledged."""

    def __init__(self, broker: Broker, **config: object) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "batch.size": 50_000,
                "linger.ms": 1,
                "log_level": 0,
                **config,
            }
        )
        self.acknowledged: dict[int, bytes] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Writing":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(30) == 0

    def send(self, count: int) -> "Writing":
        for number in range(count):
            self._producer.produce("moved", b"first %d " % number + b"x" * 1000, on_delivery=self._note)
        assert self._producer.flush(30) == 0
        return self

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._producer.produce("moved", b"%d" % number, on_delivery=self._note)
            self._producer.poll(0.001)
            number += 1

    def _note(self, error: object, message: Message) -> None:
        assert error is None, error
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert value is not None
        assert offset not in self.acknowledged
        self.acknowledged[offset] = bytes(value)


def read(broker: Broker, *, up_to: int | None = None) -> dict[int, bytes]:
    """So many records, or all up to the end."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused", "enable.partition.eof": True}
    )
    found: dict[int, bytes] = {}
    try:
        consumer.assign([TopicPartition("moved", 0, OFFSET_BEGINNING)])
        while up_to is None or len(found) < up_to:
            message = consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                return found
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            found[offset] = bytes(value)
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("fsync", ["false", "true"])
def test_a_partition_moves_while_it_is_written_and_read(paths: list[str], fsync: str) -> None:
    with _broker(paths, **{"riverlog.acks.fsync": fsync}) as broker:
        broker.create_topic("moved", config={"internal.segment.bytes": 100_000})
        writing = Writing(broker, **{"enable.idempotence": True}).send(1000)
        (home,) = [path for path, _ in places(broker)]
        there = next(path for path in paths if path != home)
        with writing:
            for path in (there, home, there):
                assert move(broker, path) is ErrorCode.NONE
                eventually(lambda path=path: list(places(broker)) == [(path, False)], timeout_s=30)  # type: ignore[misc]
                assert list(read(broker, up_to=1000)) == list(range(1000))
        assert read(broker) == writing.acknowledged
        broker.kill()
        broker.start()
        assert read(broker) == writing.acknowledged
        assert list(places(broker)) == [(there, False)]


def test_a_copy_on_its_way_is_shown_with_its_lag_and_can_be_called_off(
    broker: Broker, paths: list[str]
) -> None:
    writing = Writing(broker).send(1000)
    (home,) = [path for path, _ in places(broker)]
    there = next(path for path in paths if path != home)
    slow_down(broker, 100_000)
    assert move(broker, there) is ErrorCode.NONE
    assert move(broker, there) is ErrorCode.NONE, "it is on its way there"
    eventually(lambda: 0 < places(broker).get((there, True), 0) < 1000)
    assert places(broker)[home, False] == 0
    assert list(Path(there).glob("moved-0.*-future"))
    assert move(broker, home) is ErrorCode.NONE
    assert list(places(broker)) == [(home, False)]
    assert not list(Path(there).glob("*-future"))
    assert read(broker) == writing.acknowledged


@pytest.mark.parametrize("clean", [True, False])
def test_a_move_that_a_restart_interrupts_goes_on(broker: Broker, paths: list[str], clean: bool) -> None:
    writing = Writing(broker).send(1000)
    (home,) = [path for path, _ in places(broker)]
    there = next(path for path in paths if path != home)
    slow_down(broker, 100_000)
    move(broker, there)
    eventually(lambda: 0 < places(broker).get((there, True), 0) < 1000)
    if clean:
        broker.stop()
    else:
        broker.kill()
    broker.start()
    assert (there, True) in places(broker)
    slow_down(broker, 2**60)
    eventually(lambda: list(places(broker)) == [(there, False)], timeout_s=30)
    assert read(broker) == writing.acknowledged


def test_deleting_the_topic_takes_the_copy_away_too(broker: Broker, paths: list[str]) -> None:
    Writing(broker).send(1000)
    (home,) = [path for path, _ in places(broker)]
    slow_down(broker, 100_000)
    move(broker, next(path for path in paths if path != home))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["moved"])["moved"].result(10)
    eventually(lambda: places(broker) == {})
    eventually(lambda: not [each for path in paths for each in Path(path).glob("moved-0*-future")])


def test_a_directory_that_there_is_not_is_refused(broker: Broker) -> None:
    assert move(broker, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
