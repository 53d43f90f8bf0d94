"""A data directory that cannot be opened at the start: the others are served, and nothing is begun anew."""

from pathlib import Path

import pytest

from riverlog.model.errors import ErrorCode, FormatError, StorageError
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.raw_client import RawClient

PARTITIONS = range(4)


def broker_on(tmp_path: Path) -> Broker:
    return Broker({"log.dirs": f"{tmp_path}/a,{tmp_path}/b"})


@pytest.fixture
def lost(tmp_path: Path) -> list[int]:
    """The partitions in the second of two directories, which then becomes a file."""
    with broker_on(tmp_path) as broker, RawClient(broker) as client:
        client.create_topic("orders", partitions=len(PARTITIONS))
        for partition in PARTITIONS:
            assert client.produce("orders", partition=partition).error_code == ErrorCode.NONE
    found = [number for number in PARTITIONS if (tmp_path / "b" / f"orders-{number}").is_dir()]
    assert found
    assert len(found) < len(PARTITIONS)
    (tmp_path / "b").rename(tmp_path / "kept")
    (tmp_path / "b").write_bytes(b"")
    return found


def test_the_other_directories_are_served_and_the_lost_partitions_refused(
    tmp_path: Path, lost: list[int]
) -> None:
    with broker_on(tmp_path) as broker, RawClient(broker) as client:
        for partition in PARTITIONS:
            expected = ErrorCode.KAFKA_STORAGE_ERROR if partition in lost else ErrorCode.NONE
            assert client.produce("orders", partition=partition).error_code == expected
            assert client.fetch("orders", 0, partition=partition).error_code == expected
        described = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None)).results
        assert {each.log_dir: ErrorCode(each.error_code) for each in described} == {
            f"{tmp_path}/a": ErrorCode.NONE,
            f"{tmp_path}/b": ErrorCode.KAFKA_STORAGE_ERROR,
        }
        assert broker.node.metrics.value("riverlog_log_directories_offline") == 1  # type: ignore[attr-defined]


def test_a_topic_that_is_new_or_made_again_begins_in_a_directory_that_works(
    tmp_path: Path, lost: list[int]
) -> None:
    with broker_on(tmp_path) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("fresh")
        client.delete_topic("orders")
        client.create_topic("orders", partitions=len(PARTITIONS))
        for partition in PARTITIONS:
            assert client.produce("orders", partition=partition).base_offset == 0


def test_once_the_directory_is_back_its_records_are(tmp_path: Path, lost: list[int]) -> None:
    with broker_on(tmp_path) as broker, RawClient(broker) as client:
        assert client.produce("orders", partition=lost[0]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (tmp_path / "b").unlink()
    (tmp_path / "kept").rename(tmp_path / "b")
    with broker_on(tmp_path) as broker, RawClient(broker) as client:
        for partition in PARTITIONS:
            assert client.fetch("orders", 0, partition=partition).high_watermark == 1
            assert client.produce("orders", partition=partition).base_offset == 1


def test_without_the_first_directory_there_is_no_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be used"):
        broker_on(tmp_path).start()


def test_a_directory_of_another_node_is_no_unusable_one(tmp_path: Path) -> None:
    with Broker({"node.id": "7"}, data_dir=f"{tmp_path}/b"):
        pass
    with pytest.raises(FormatError):
        broker_on(tmp_path).start()
