"""The settings of the brokers of `serve --brokers N`."""

import pytest

from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.errors import ConfigError
from riverlog.node.processes.members import members


def settings(**given: object) -> Settings:
    return combine([from_mapping({name.replace("_", "."): value for name, value in given.items()}, "test")])


def test_numbers_ports_and_directories_are_in_a_row() -> None:
    given = settings(
        node_id=5,
        log_dirs="/a,/b",
        listeners="IN://127.0.0.1:9000,OUT://127.0.0.1:9100",
        listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT",
        advertised_listeners="OUT://broker.example:19100",
    )
    one, two = members(given, 2)
    assert (one.node_id, two.node_id) == (5, 6)
    assert one.overrides["log.dirs"] == "/a/broker-5,/b/broker-5"
    assert two.overrides["listeners"] == "IN://127.0.0.1:9001,OUT://127.0.0.1:9101"
    assert two.overrides["advertised.listeners"] == "OUT://broker.example:19101"
    assert two.overrides["riverlog.shared.metadata.dir"] == "/a/metadata"
    assert combine([from_mapping(two.overrides | {"listener.security.protocol.map": "IN:PLAINTEXT"}, "x")])


def test_port_0_stays_and_internal_topics_are_replicated_as_is_set() -> None:
    given = settings(listeners="PLAINTEXT://127.0.0.1:0", offsets_topic_replication_factor=3)
    [_, two] = members(given, 2)
    assert two.overrides["listeners"] == "PLAINTEXT://127.0.0.1:0"
    assert "offsets.topic.replication.factor" not in two.overrides
    assert two.overrides["transaction.state.log.replication.factor"] == "2"
    assert "advertised.listeners" not in two.overrides


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_internal_topics_have_as_many_replicas_as_fit_but_three_at_most(
    brokers: int, replicas: int, in_sync: int
) -> None:
    overrides = members(settings(), brokers)[-1].overrides
    assert overrides["offsets.topic.replication.factor"] == str(replicas)
    assert overrides["transaction.state.log.replication.factor"] == str(replicas)
    assert overrides["transaction.state.log.min.isr"] == str(in_sync)


@pytest.mark.parametrize(
    ("listeners", "complaint"),
    [
        ("A://127.0.0.1:9092,B://127.0.0.1:9093", "overlap"),
        ("A://127.0.0.1:65534", "the last one"),
    ],
)
def test_ports_that_do_not_go_in_a_row_are_refused(listeners: str, complaint: str) -> None:
    given = settings(listeners=listeners, listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT")
    with pytest.raises(ConfigError, match=complaint):
        members(given, 3)


def test_with_zookeeper_nothing_is_shared_in_a_directory() -> None:
    [one] = members(settings(zookeeper_connect="127.0.0.1:2181"), 1)
    assert "riverlog.shared.metadata.dir" not in one.overrides
