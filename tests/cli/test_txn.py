"""`riverlog txn`, with real producers that leave their transactions open."""

import os
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from riverlog.cli.printing.durations import human_duration
from riverlog.client.broker_connection import BrokerConnection
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.cli.running import CommandLine


@pytest.fixture
def topic(riverlog: CommandLine) -> str:
    return riverlog.topic("--partitions", "2")


def transactional(bootstrap: str, prefix: str = "txn-", /, **settings: str | int) -> tuple[str, Producer]:
    name = f"{prefix}{uuid.uuid4().hex[:12]}"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, **settings})
    producer.init_transactions(20)
    return name, producer


def left_open(riverlog: CommandLine, topic: str, prefix: str = "txn-") -> tuple[str, Producer]:
    name, producer = transactional(riverlog.bootstrap, prefix)
    producer.begin_transaction()
    producer.produce(topic, b"never seen", partition=1)
    producer.flush(20)
    return name, producer


def test_list_shows_the_age_of_an_open_transaction(riverlog: CommandLine, topic: str) -> None:
    name, producer = left_open(riverlog, topic)
    idle, _ = transactional(riverlog.bootstrap)
    rows = {each["transactional_id"]: each for each in riverlog("txn", "list", "-o", "json").json}
    assert (rows[name]["state"], rows[name]["partitions"], rows[name]["timeout_ms"]) == ("Ongoing", 1, 60_000)
    assert 0 <= rows[name]["age_ms"] < 60_000
    assert (rows[idle]["state"], rows[idle]["age_ms"]) == ("Empty", None)
    shown = riverlog("txn", "list", "txn-*", "--open")
    assert name in shown.stdout
    assert idle not in shown.stdout
    assert shown.stderr == ""
    producer.abort_transaction(20)
    assert name not in riverlog("txn", "list", "--open").stdout


def test_describe_shows_where_a_transaction_begins(riverlog: CommandLine, topic: str) -> None:
    riverlog.produce(topic, "before", "before", options=("-p", "1"))
    name, producer = left_open(riverlog, topic)
    [found] = riverlog("txn", "describe", name, "-o", "json").json
    assert found["state"] == "Ongoing"
    assert found["partitions"] == [{"topic": topic, "partition": 1, "start_offset": 2}]
    assert topic in riverlog("txn", "describe", name).stdout
    producer.abort_transaction(20)


def test_abort_ends_an_orphan_and_fences_its_producer(riverlog: CommandLine, topic: str) -> None:
    name, producer = left_open(riverlog, topic)
    asked = riverlog("txn", "abort", name, code=2)
    assert "--yes" in asked.stderr
    done = riverlog("txn", "abort", name, "--yes")
    assert (done.stdout, done.stderr) == ("", f"aborted the transaction of {name}\n")
    [found] = riverlog("txn", "describe", name, "-o", "json").json
    assert (found["state"], found["partitions"]) == ("Empty", [])
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    committed = riverlog.consume(topic, "-X", "isolation.level=read_committed")
    assert "never seen" not in committed.stdout


def test_abort_refuses_where_nothing_is_open(riverlog: CommandLine) -> None:
    name, _ = transactional(riverlog.bootstrap)
    refused = riverlog("txn", "abort", name, "--yes", code=1)
    assert "has no open transaction; its state is Empty" in refused.stderr


def test_an_id_that_is_not_there_is_not_found(riverlog: CommandLine) -> None:
    for command in ("describe", "abort"):
        missing = riverlog("txn", command, "nobody-at-all", code=4)
        assert "TRANSACTIONAL_ID_NOT_FOUND" in missing.stderr


def test_the_executable_keeps_the_conventions(riverlog: CommandLine) -> None:
    unreachable = riverlog.execute("txn", "list", "-b", "127.0.0.1:1")
    assert (unreachable.code, unreachable.stdout) == (5, "")
    secured = riverlog("txn", "list", "-X", "security.protocol=ssl", code=1)
    assert "over ssl" in secured.stderr


@pytest.fixture
def two_phase(riverlog: CommandLine, topic: str) -> str:
    """An open transaction of an outside two-phase commit (KIP-939), which Apache Kafka does not have."""
    if "RIVERLOG_TEST_BOOTSTRAP" in os.environ:
        pytest.skip("another broker has no two-phase commit")
    transactional(riverlog.bootstrap)  # It waits for the coordinator; what follows asks once.
    name = f"txn-{uuid.uuid4().hex[:12]}"
    host, _, port = riverlog.bootstrap.rpartition(":")
    begun = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000, enable2_pc=True)
    with BrokerConnection(Address(host, int(port)), timeout_s=20, client_id="test") as broker:
        producer = broker.ask(ApiKey.INIT_PRODUCER_ID, begun)
        assert producer.error_code == ErrorCode.NONE
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0, 1])],
        )
        broker.ask(ApiKey.ADD_PARTITIONS_TO_TXN, added, version_max=3)
    return name


def test_an_orphan_of_a_two_phase_commit_is_shown_and_ended(riverlog: CommandLine, two_phase: str) -> None:
    [row] = riverlog("txn", "list", two_phase, "-o", "json").json
    assert (row["state"], row["timeout_ms"], row["partitions"]) == ("Ongoing", None, 2)
    assert "never" in riverlog("txn", "describe", two_phase).stdout
    riverlog("txn", "abort", two_phase, "--yes")
    assert riverlog("txn", "list", two_phase, "--open", "-o", "json").json == []


@pytest.fixture
def impatient() -> Iterator[Broker]:
    with Broker({"riverlog.2pc.warn.ms": 1}) as broker:
        yield broker


def test_list_warns_of_transactions_that_have_been_open_for_too_long(impatient: Broker) -> None:
    command = CommandLine(impatient.bootstrap_servers)
    topic = command.topic("--partitions", "2")
    name, producer = left_open(command, topic)
    shown = command("txn", "list", "-o", "json")
    assert f"warning: the transaction of {name} has been open for" in shown.stderr
    assert f"riverlog txn abort {name}" in shown.stderr
    assert [each["transactional_id"] for each in shown.json] == [name]
    producer.abort_transaction(20)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (90_061_000, "1d 1h"),
        (86_400_000 + 60_000, "1d"),
    ],
)
def test_durations_are_told_in_their_two_largest_units(duration_ms: int, text: str) -> None:
    assert human_duration(duration_ms) == text


@pytest.mark.parametrize("prefix", ["riverlog-spark/query/", "riverlog-spark-driver/"])
def test_what_a_spark_query_has_left_is_ended_by_the_command_that_knows_what_is_decided(
    impatient: Broker, prefix: str
) -> None:
    command = CommandLine(impatient.bootstrap_servers)
    topic = command.topic("--partitions", "2")
    name, producer = left_open(command, topic, prefix)
    remedy = f"`riverlog pipeline abort-leftovers {name}`"
    assert remedy in command("txn", "list").stderr
    assert remedy in command.consume(topic).stderr
    aborted = command("txn", "abort", name, "--yes")
    assert f"warning: {name} is of a Spark query" in aborted.stderr
    assert remedy in aborted.stderr
    producer.purge()
