"""The slices that other layers are given."""

import pytest

from riverlog.model.config.parse import load
from riverlog.model.config.slices import (
    CleanupPolicy,
    CompressionType,
    Listener,
    LogConfig,
    SecurityProtocol,
    ServerConfig,
    TimestampType,
)
from riverlog.model.errors import ConfigError
from riverlog.model.network import Address


def test_a_slice_without_settings_is_the_slice_with_its_defaults() -> None:
    assert LogConfig.from_settings(load()) == LogConfig()
    assert ServerConfig.from_settings(load()) == ServerConfig()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["log.retention.hours=2"], 2 * 3_600_000),
        (["log.retention.hours=2", "log.retention.minutes=3"], 3 * 60_000),
        (["log.retention.hours=2", "log.retention.minutes=3", "log.retention.ms=4"], 4),
        (["log.retention.hours=-1"], None),
        (["log.retention.ms=-1"], None),
    ],
)
def test_the_finest_unit_of_retention_counts(flags: list[str], expected: int | None) -> None:
    assert LogConfig.from_settings(load(flags=flags)).retention_ms == expected


def test_a_topic_beats_its_broker_which_beats_all_brokers_which_beat_the_file() -> None:
    settings = load(flags=["log.retention.ms=1", "message.max.bytes=1", "log.segment.bytes=1048577"])
    config = LogConfig.from_settings(
        settings,
        dynamic_default={"log.retention.ms": "2", "message.max.bytes": "2", "log.roll.ms": "2"},
        dynamic_broker={"log.retention.ms": "3", "message.max.bytes": "3"},
        topic_overrides={"retention.ms": "4"},
    )
    assert config.retention_ms == 4
    assert config.max_message_bytes == 3
    assert config.segment_ms == 2
    assert config.segment_bytes == 1048577


def test_a_topics_overrides_become_typed_fields() -> None:
    config = LogConfig().with_overrides(
        {
            "cleanup.policy": "compact, delete",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "message.timestamp.type": "LogAppendTime",
            "flush.ms": "5",
            "retention.bytes": "-1",
            "riverlog.acks.fsync": "TRUE",
            "min.cleanable.dirty.ratio": "0.1",
        }
    )
    assert config.cleanup_policies == {CleanupPolicy.COMPACT, CleanupPolicy.DELETE}
    assert config.is_compacted
    assert config.compression_type is CompressionType.ZSTD
    assert config.compression_level == 7
    assert config.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert config.flush_ms == 5
    assert config.retention_bytes is None
    assert config.acks_fsync
    assert config.min_cleanable_dirty_ratio == 0.1


def test_a_topic_with_an_empty_cleanup_policy_keeps_everything() -> None:
    config = LogConfig().with_overrides({"cleanup.policy": ""})
    assert not config.is_compacted
    assert not config.deletes_old_segments


def test_the_key_for_tests_makes_small_segments() -> None:
    config = LogConfig().with_overrides({"segment.bytes": "1048576", "internal.segment.bytes": "1000"})
    assert config.segment_bytes == 1000


def test_no_overrides_share_one_object() -> None:
    config = LogConfig()
    assert config.with_overrides({}) is config


def test_flush_of_a_broker_comes_from_its_scheduler_when_it_has_no_interval() -> None:
    assert LogConfig.from_settings(load(flags=["log.flush.scheduler.interval.ms=7"])).flush_ms == 7


def test_listeners_have_names_addresses_and_protocols() -> None:
    flags = [
        "listeners=PLAINTEXT://127.0.0.1:0,inner://[::1]:9093,CONTROLLER://127.0.0.1:9094",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names=CONTROLLER",
        "advertised.listeners=INNER://broker.example:19093",
    ]
    config = ServerConfig.from_settings(load(flags=flags))
    assert config.listeners == (
        Listener("PLAINTEXT", Address("127.0.0.1", 0)),
        Listener("INNER", Address("::1", 9093)),
    )
    assert config.advertised_listeners == (Listener("INNER", Address("broker.example", 19093)),)
    assert config.listeners[0].protocol is SecurityProtocol.PLAINTEXT
    assert config.inter_broker_listener == "PLAINTEXT"
    named = ServerConfig.from_settings(load(flags=[*flags, "inter.broker.listener.name=inner"]))
    assert named.inter_broker_listener == "INNER"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["listeners=PLAINTEXT://127.0.0.1"], "is not NAME://host:port"),
        (["listeners=PLAINTEXT://127.0.0.1:70000"], "is not NAME://host:port"),
        (["listeners=127.0.0.1:9092"], "is not NAME://host:port"),
        (["listeners="], "names none that clients can use"),
        (["listeners=A://127.0.0.1:1"], "Add A:PLAINTEXT to listener.security.protocol.map"),
        (["listeners=SSL://127.0.0.1:1"], "asks for SSL, which is not served yet"),
        (["listeners=PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2"], "two listeners PLAINTEXT"),
        (
            [
                "listeners=PLAINTEXT://127.0.0.1:1,B://127.0.0.1:1",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            ],
            "PLAINTEXT and B both want port 1",
        ),
        (["listener.security.protocol.map=PLAINTEXT"], "is not NAME:PROTOCOL"),
        (["listener.security.protocol.map=PLAINTEXT:TELNET"], "is not NAME:PROTOCOL"),
        (["advertised.listeners=OTHER://h:1"], "has no security protocol"),
        (["advertised.listeners=SSL://h:1"], "names SSL, which listeners does not"),
        (["advertised.listeners=PLAINTEXT://0.0.0.0:1"], "cannot connect to"),
        (["inter.broker.listener.name=INNER"], "there is no listener INNER"),
        (["listeners=PLAINTEXT://:9092"], "--insecure"),
        (["listeners=PLAINTEXT://0.0.0.0:9092"], "--insecure"),
        (["listeners=PLAINTEXT://192.0.2.1:9092"], "--insecure"),
        (["listeners=PLAINTEXT://[2001:db8::1]:9092"], "--insecure"),
        (["node.id=1", "broker.id=2"], "broker.id and node.id differ"),
        (["broker.id=-1"], "Give node.id instead"),
        (["log.dirs="], "Name at least one directory"),
        (["max.connections.per.ip.overrides=a"], "is not address:count"),
    ],
)
def test_settings_that_cannot_be_served_are_refused(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerConfig.from_settings(load(flags=flags))
    assert message in str(caught.value)


def test_every_interface_is_allowed_when_the_person_says_so() -> None:
    flags = ["listeners=PLAINTEXT://:9092", "riverlog.insecure=true"]
    assert ServerConfig.from_settings(load(flags=flags)).listeners[0].address == Address("", 9092)


def test_one_port_serves_both_families() -> None:
    flags = [
        "listeners=PLAINTEXT://127.0.0.1:1,B://[::1]:1",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
    ]
    assert len(ServerConfig.from_settings(load(flags=flags)).listeners) == 2


def test_either_name_gives_the_number_of_the_node() -> None:
    assert ServerConfig.from_settings(load(flags=["broker.id=7"])).node_id == 7
    assert load(flags=["broker.id=7"]).static == {"broker.id": "7", "node.id": "7"}
    assert load().static == {"node.id": "1"}


def test_sentinels_become_none() -> None:
    flags = ["connections.max.idle.ms=-1", "socket.send.buffer.bytes=-1"]
    config = ServerConfig.from_settings(load(flags=flags))
    assert config.connections_max_idle_ms is None
    assert config.socket_send_buffer_bytes is None
    assert config.flush_scheduler_interval_ms is None


def test_log_dirs_go_before_log_dir_and_addresses_have_bounds_of_their_own() -> None:
    flags = ["log.dir=x", "log.dirs=a, b", "max.connections.per.ip.overrides=10.0.0.1:5,[::1]:6"]
    config = ServerConfig.from_settings(load(flags=flags))
    assert config.log_dirs == ("a", "b")
    assert config.max_connections_per_ip_overrides == {"10.0.0.1": 5, "::1": 6}


def test_bounds_on_connections_follow_what_was_altered() -> None:
    settings = load(flags=["max.connections=5", "max.connections.per.ip=5"])
    config = ServerConfig.from_settings(
        settings,
        dynamic_default={"max.connections": "6", "max.connections.per.ip": "6", "num.partitions": "9"},
        dynamic_broker={"max.connections": "7"},
    )
    assert (config.max_connections, config.max_connections_per_ip, config.num_partitions) == (7, 6, 1)
