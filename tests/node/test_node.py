"""A node as a whole: listeners, directories, limits taken from the settings."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from riverlog.model.errors import ConfigError, ErrorCode, FormatError, RiverlogError
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest
from tests.broker.raw_client import RawClient, one_record, produce_request
from tests.node.faulty_disk import FaultyDisk
from tests.waiting import eventually


class At:
    """Somewhere to connect to."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers


def told_address(at: str) -> str:
    with RawClient(At(at)) as client:
        [broker] = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[])).brokers
        return f"{broker.host}:{broker.port}"


def test_metadata_names_the_listener_that_was_asked() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,THIRD://127.0.0.1:0",
        "advertised.listeners": "OUTSIDE://broker.example.org:19092,THIRD://broker.example.org:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,THIRD:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with Broker(settings) as broker:
        bound = {name: str(address) for name, address in broker.node.addresses.items()}
        assert told_address(bound["INSIDE"]) == bound["INSIDE"]
        assert told_address(bound["OUTSIDE"]) == "broker.example.org:19092"
        assert told_address(bound["THIRD"]) == f"broker.example.org:{bound['THIRD'].rsplit(':', 1)[1]}"


def test_a_listener_beyond_loopback_is_refused_without_being_told() -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        Broker(listeners="PLAINTEXT://0.0.0.0:0").start()


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
def test_a_listener_on_every_interface_advertises_an_address_that_clients_can_connect_to(host: str) -> None:
    with Broker(listeners=f"PLAINTEXT://{host}:0", riverlog_insecure=True) as broker:
        port = broker.node.addresses["PLAINTEXT"].port
        told = told_address(f"127.0.0.1:{port}")
        assert told.rsplit(":", 1)[0] not in ("", "0.0.0.0", "[::]", "::")
        assert told_address(told) == told


def test_partitions_are_spread_over_several_directories_and_found_again(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("a", "b", "c")]
    settings = {"log.dirs": ",".join(directories)}
    with Broker(settings) as broker, RawClient(broker) as client:
        client.create_topic("wide", partitions=6)
        for partition in range(6):
            assert client.produce("wide", partition=partition).base_offset == 0
        held = [[name for name in os.listdir(path) if name.startswith("wide-")] for path in directories]
        assert [len(names) for names in held] == [2, 2, 2]
        broker.restart()
        with RawClient(broker) as again:
            for partition in range(6):
                assert again.produce("wide", partition=partition).base_offset == 1


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path), node_id=1):
        pass
    with pytest.raises(FormatError):
        Broker(data_dir=str(tmp_path), node_id=2).start()


def test_a_newer_format_is_refused_with_a_clear_error(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)):
        pass
    meta = tmp_path / "meta.properties"
    meta.write_text(meta.read_text().replace("riverlog.format.version=1", "riverlog.format.version=99"))
    with pytest.raises(RiverlogError, match="99"):
        Broker(data_dir=str(tmp_path)).start()


def test_a_first_start_that_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)):
        pass
    for name in os.listdir(tmp_path):
        if name.startswith("riverlog-metadata"):
            os.unlink(tmp_path / name)
    with Broker(data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")


def test_data_whose_metadata_is_gone_is_not_taken_for_an_empty_directory(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
    for name in os.listdir(tmp_path):
        if name.startswith("riverlog-metadata"):
            os.unlink(tmp_path / name)
    with pytest.raises(FormatError, match="metadata"):
        Broker(data_dir=str(tmp_path)).start()
    assert (tmp_path / "orders-0").is_dir()


def test_the_limits_of_the_settings_are_in_force() -> None:
    with Broker(socket_request_max_bytes=5000, max_connections=2) as broker:
        with RawClient(broker) as client:
            client.socket.sendall(struct.pack(">i", 5001))
            assert client.is_closed()
        with RawClient(broker) as first, RawClient(broker) as second:
            for client in (first, second):
                client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
            with RawClient(broker) as third:
                assert third.is_closed()


def test_idle_connections_are_closed_after_their_time() -> None:
    with Broker(connections_max_idle_ms=300) as broker, RawClient(broker) as idle, RawClient(broker) as busy:
        busy.create_topic("quiet")
        busy.send_long_poll("quiet")
        assert idle.is_closed()
        with RawClient(broker) as client:
            client.produce("quiet")
        assert busy.receive(ApiKey.FETCH, 12).responses[0].partitions[0].high_watermark == 1


def test_requests_wait_for_memory_instead_of_taking_more_than_the_budget() -> None:
    with Broker(queued_max_request_bytes=200_000) as broker:
        with RawClient(broker) as client:
            client.create_topic("orders")
        clients = [RawClient(broker) for _ in range(8)]
        request = produce_request("orders", one_record(b"v" * 150_000), acks=1)
        try:
            for client in clients:
                client.send(ApiKey.PRODUCE, 9, request)
            replies = [client.receive(ApiKey.PRODUCE, 9) for client in clients]
        finally:
            for client in clients:
                client.socket.close()
        offsets = [reply.responses[0].partition_responses[0].base_offset for reply in replies]
        assert sorted(offsets) == list(range(8))


def test_an_idle_node_writes_no_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    begin = LogDirectory.begin_checkpoint_of_noted

    def counted(directory: LogDirectory) -> Callable[[], None]:
        nonlocal looks
        looks += 1
        return begin(directory)

    monkeypatch.setattr(LogDirectory, "begin_checkpoint_of_noted", counted)
    checkpoint = tmp_path / "replication-offset-checkpoint"
    settings = {"replica.high.watermark.checkpoint.interval.ms": 20}
    with Broker(settings, data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
        eventually(lambda: checkpoint.exists() and "orders 0 1" in checkpoint.read_text())
        written_ns = checkpoint.stat().st_mtime_ns
        seen = looks
        eventually(lambda: looks >= seen + 5)
        assert checkpoint.stat().st_mtime_ns == written_ns
        client.produce("orders")
        eventually(lambda: "orders 0 2" in checkpoint.read_text())


def test_requests_and_connections_are_counted() -> None:
    with Broker() as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
        metrics = broker.node.metrics
        assert metrics.value("riverlog_connections") == 1  # type: ignore[attr-defined]
        assert metrics.value("riverlog_requests_total", api="Produce") == 1  # type: ignore[attr-defined]
        assert metrics.value("riverlog_produced_bytes_total") > 0  # type: ignore[attr-defined]


def test_the_state_of_the_disks_is_measured(tmp_path: Path) -> None:
    disk = FaultyDisk()
    settings = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b", "riverlog.open.files.max": 16}
    with Broker(settings, disk=disk) as broker, RawClient(broker) as client:

        def value(name: str) -> float:
            return broker.node.metrics.value(f"riverlog_{name}")  # type: ignore[attr-defined, no-any-return]

        client.create_topic("wide", partitions=30)
        for partition in range(30):
            assert client.produce("wide", partition=partition).base_offset == 0
        assert value("partitions_on_disk") == 30
        assert 0 < value("open_files") <= 16
        assert (value("log_directories_offline"), value("disk_full_errors")) == (0, 0)
        disk.is_full = True
        assert client.produce("wide").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.is_full = False
        assert (value("log_directories_offline"), value("disk_full_errors")) == (0, 1)
        disk.broken = str(tmp_path)
        assert client.produce("wide").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert value("log_directories_offline") == 1
        disk.broken = None


def test_a_topic_created_again_after_its_deletion_begins_empty() -> None:
    with Broker() as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
        client.delete_topic("orders")
        client.produce_to_new_topic("orders")
        broker.kill()
        broker.restart()
        with RawClient(broker) as again:
            assert again.fetch("orders", 0).high_watermark == 1


def test_a_first_start_that_failed_half_way_does_not_keep_the_next_from_starting(tmp_path: Path) -> None:
    (tmp_path / "meta.properties.tmp").write_text("version=1")
    with Broker(data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
    assert not (tmp_path / "meta.properties.tmp").exists()
