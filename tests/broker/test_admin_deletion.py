"""A deleted topic stays deleted, whatever moment the broker dies at."""

import os
from pathlib import Path

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.raw_client import RawClient
from tests.processes import ServedProcess


def delete(client: RawClient, topic: str) -> int:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    code: int = client.ask(ApiKey.DELETE_TOPICS, 5, request).responses[0].error_code
    return code


def error_of(client: RawClient, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    code: int = client.ask(ApiKey.METADATA, 12, request).topics[0].error_code
    return code


def directories(broker: Broker, topic: str) -> list[str]:
    return [name for name in os.listdir(broker.data_dir) if name.startswith(topic) and name[-1].isdigit()]


def test_a_deleted_topic_is_gone_for_clients_and_its_directories_are_renamed() -> None:
    with Broker() as broker, RawClient(broker) as client:
        client.produce_to_new_topic("gone")
        assert directories(broker, "gone") == ["gone-0"]
        assert delete(client, "gone") == ErrorCode.NONE
        assert directories(broker, "gone") == []
        assert error_of(client, "gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        client.produce_to_new_topic("gone")


def test_a_crash_after_the_deletion_was_decided_leaves_no_topic_and_no_stray_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Broker() as broker:
        with RawClient(broker) as client:
            client.produce_to_new_topic("gone")
            client.produce_to_new_topic("kept")
            with monkeypatch.context() as patched:
                patched.setattr(DataDirectories, "delete_log", lambda self, topic_partition: None)
                assert delete(client, "gone") == ErrorCode.NONE
                assert directories(broker, "gone") == ["gone-0"]
                broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            assert directories(broker, "gone") == []
            assert directories(broker, "kept") == ["kept-0"]
            assert error_of(client, "gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert client.fetch("kept", 0).high_watermark == 1


def test_a_topic_made_again_after_such_a_crash_starts_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        with RawClient(broker) as client:
            client.produce_to_new_topic("again")
            with monkeypatch.context() as patched:
                patched.setattr(DataDirectories, "delete_log", lambda self, topic_partition: None)
                assert delete(client, "again") == ErrorCode.NONE
                client.create_topic("again")
                broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            assert client.fetch("again", 0).high_watermark == 0
            assert client.produce("again").base_offset == 0


def test_kill_9_right_after_the_answer_cannot_bring_a_deleted_topic_back(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with ServedProcess(data_dir) as served, RawClient(served) as client:
        for number in range(5):
            client.create_topic(f"gone{number}", 20)
            client.produce(f"gone{number}")
        client.create_topic("kept", 3)
        for number in range(5):
            assert delete(client, f"gone{number}") == ErrorCode.NONE
        served.kill()
    with Broker(data_dir=str(data_dir)) as broker, RawClient(broker) as client:
        assert directories(broker, "gone") == []
        assert error_of(client, "kept") == ErrorCode.NONE
        for number in range(5):
            assert error_of(client, f"gone{number}") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
