"""Transactions over a socket: what restarts keep, time-outs, verification, and two-phase commit."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.transaction_client import TransactionClient
from tests.waiting import eventually

TIMEOUT_CHECK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 20}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=TIMEOUT_CHECK) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{uuid4().hex[:8]}"
    broker.create_topic(name, partitions=2)
    return name


def fresh_name() -> str:
    return f"payments-{uuid4().hex[:8]}"


@pytest.mark.parametrize("version", [3, 9, 10])
def test_up_to_produce_10_a_partition_that_was_not_added_is_refused(
    broker: Broker, topic: str, version: int
) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        me = client.identity()
        assert client.write(me, topic, 0, b"a", version=version) is ErrorCode.INVALID_TXN_STATE
        client.add(me, topic, 0)
        assert client.write(me, topic, 0, b"a", version=version) is ErrorCode.NONE
        assert client.write(me, topic, 0, b"a", partition=1, version=version) is ErrorCode.INVALID_TXN_STATE
        assert client.ends(topic, 1) == (0, 0)


def test_produce_11_is_told_to_abort(broker: Broker, topic: str) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        me = client.identity()
        assert client.write(me, topic, 0, b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE


def test_from_produce_12_on_the_broker_adds_the_partition(broker: Broker, topic: str) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        me = client.identity()
        assert client.write(me, topic, 0, b"a", version=12) is ErrorCode.NONE
        assert client.state() == "Ongoing"
        assert client.ends(topic) == (0, 1)
        assert client.end(me, commit=True) == (me[0], me[1] + 1)
        assert client.ends(topic) == (2, 2)
        assert client.write(me, topic, 1, b"late") is ErrorCode.INVALID_PRODUCER_EPOCH


def test_from_produce_12_on_a_producer_begins_at_sequence_0_in_each_partition(
    broker: Broker, topic: str
) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        me = client.identity()
        assert client.write(me, topic, 1, b"second") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert client.write(me, topic, 0, b"first") is ErrorCode.NONE
        assert client.write(me, topic, 1, b"second") is ErrorCode.NONE


def test_verification_can_be_switched_off(topic: str) -> None:
    with Broker(config={"transaction.partition.verification.enable": False}) as broker:
        broker.create_topic(topic)
        with TransactionClient(broker, "careless") as client:
            assert client.write(client.identity(), topic, 0, b"a", version=11) is ErrorCode.NONE


def test_verification_can_be_switched_off_while_the_broker_runs(topic: str) -> None:
    with Broker() as broker:
        broker.create_topic(topic)
        with TransactionClient(broker, "careful") as client:
            me = client.identity()
            assert client.write(me, topic, 0, b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE
            switch = AlterableConfig(name="transaction.partition.verification.enable", value="false")
            resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[switch])
            request = IncrementalAlterConfigsRequest(resources=[resource])
            reply = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
            assert reply.responses[0].error_code == ErrorCode.NONE
            assert client.write(me, topic, 0, b"a", version=11) is ErrorCode.NONE


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_written_and_not_ended_can_be_ended_after_a_kill(commit: bool) -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        with TransactionClient(broker, "payments") as client:
            me = client.identity()
            client.write(me, "orders", 0, b"a")
            client.write(me, "orders", 0, b"b", partition=1)
            client.commit_offset(me, "readers", "orders", 7)
        broker.kill()
        broker.restart()
        with TransactionClient(broker, "payments") as client:
            assert client.state() == "Ongoing"
            assert client.write(me, "orders", 1, b"c") is ErrorCode.NONE
            assert client.end(me, commit=commit) == (me[0], me[1] + 1)
            assert client.end(me, commit=commit) == (me[0], me[1] + 1), "a repetition after the restart"
            assert client.ends("orders") == (3, 3)
            found = client.fetch("orders", 0, isolation_level=1)
            aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or []]
            assert aborted == ([] if commit else [(me[0], 0)])
        broker.kill()
        broker.restart()
        with TransactionClient(broker, "payments") as client:
            assert client.state() == ("CompleteCommit" if commit else "CompleteAbort")
            assert client.ends("orders") == (3, 3)


def test_a_transaction_that_runs_out_of_time_is_aborted_and_its_producer_fenced(
    broker: Broker, topic: str
) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        me = client.identity(timeout_ms=50)
        client.write(me, topic, 0, b"too slow")
        eventually(lambda: client.state() == "CompleteAbort")
        assert client.ends(topic) == (2, 2)
        assert client.end(me, commit=True, version=4) is ErrorCode.PRODUCER_FENCED
        assert client.end(me, commit=True) is ErrorCode.INVALID_TXN_STATE
        assert client.write(me, topic, 1, b"zombie") is ErrorCode.INVALID_PRODUCER_EPOCH


def test_time_runs_out_after_a_restart_as_well() -> None:
    with Broker(config=TIMEOUT_CHECK) as broker:
        broker.create_topic("orders")
        with TransactionClient(broker, "payments") as client:
            client.write(client.identity(timeout_ms=400), "orders", 0, b"a")
        broker.kill()
        broker.restart()
        with TransactionClient(broker, "payments") as client:
            eventually(lambda: client.state() == "CompleteAbort")


def test_a_transactional_id_that_is_not_used_is_forgotten(topic: str) -> None:
    config = {
        "transactional.id.expiration.ms": 100,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 20,
    }
    with Broker(config=config) as broker, TransactionClient(broker, "rare") as client:
        client.identity()
        eventually(lambda: client.listed() == [])


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed_is_refused(broker: Broker, timeout_ms: int) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        assert client.init(timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_another_process_completes_a_prepared_transaction_after_a_kill() -> None:
    with Broker(config={**TIMEOUT_CHECK, "transaction.state.log.num.partitions": 1}) as broker:
        broker.create_topic("orders")
        broker.create_topic("others")
        with TransactionClient(broker, "two-phase") as client:
            me = client.identity(enable2_pc=True, timeout_ms=1)
            client.write(me, "orders", 0, b"prepared")
            client.commit_offset(me, "readers", "orders", 1)
        broker.kill()
        broker.restart()
        # One coordinator has both; when it has ended this one, it has looked for all whose time has run out.
        with TransactionClient(broker, "ordinary") as ordinary:
            ordinary.write(ordinary.identity(timeout_ms=1), "others", 0, b"late")
            eventually(lambda: ordinary.state() == "CompleteAbort")
        with TransactionClient(broker, "two-phase") as client:
            assert client.state() == "Ongoing"
            taken = client.init(enable2_pc=True, keep_prepared_txn=True)
            assert taken.error_code == ErrorCode.NONE
            assert (taken.ongoing_txn_producer_id, taken.ongoing_txn_producer_epoch) == me
            assert (taken.producer_id, taken.producer_epoch) == (me[0], me[1] + 1)
            assert client.end(me, commit=True) is ErrorCode.PRODUCER_FENCED
            after = client.end((taken.producer_id, taken.producer_epoch), commit=True)
            assert after == (me[0], me[1] + 2)
            assert client.ends("orders") == (2, 2)
            assert client.fetch("orders", 0, isolation_level=1).aborted_transactions == []
            assert isinstance(after, tuple)
            assert client.write(after, "orders", 0, b"next") is ErrorCode.NONE
            assert client.end(after, commit=True) == (me[0], me[1] + 3)


def test_an_orphan_of_two_phase_commit_is_aborted_by_whoever_takes_the_id_over(
    broker: Broker, topic: str
) -> None:
    with TransactionClient(broker, fresh_name()) as client:
        client.write(client.identity(enable2_pc=True), topic, 0, b"orphan")
        reply = client.init()
        assert reply.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert client.state() == "CompleteAbort"
        assert client.ends(topic) == (2, 2)


def test_two_phase_commit_can_be_switched_off() -> None:
    with (
        Broker(config={"transaction.two.phase.commit.enable": False}) as broker,
        TransactionClient(broker, "two-phase") as client,
    ):
        reply = client.init(enable2_pc=True)
        assert reply.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert client.init().error_code == ErrorCode.NONE


def test_tools_see_what_is_open(broker: Broker, topic: str) -> None:
    name = fresh_name()
    with TransactionClient(broker, name) as client:
        me = client.identity()
        client.write(me, topic, 0, b"a", b"b")
        assert name in client.listed(state_filters=["Ongoing"])
        assert client.listed(producer_id_filters=[me[0]]) == [name]
        assert client.listed(transactional_id_pattern=f"{name[:-1]}.") == [name]
        assert name not in client.listed(duration_filter=60_000)
        asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
        (found,) = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked).topics[0].partitions[0].active_producers
        assert (found.producer_id, found.producer_epoch) == me
        assert (found.last_sequence, found.current_txn_start_offset) == (1, 0)
        client.end(me, commit=False)


def test_acks_that_wait_for_the_disk_hold_transactions_too(topic: str) -> None:
    with Broker(config={"riverlog.acks.fsync": True}) as broker:
        broker.create_topic(topic, partitions=2)
        with TransactionClient(broker, "synced") as client:
            me = client.identity()
            for round_ in range(5):
                # CONCURRENT_TRANSACTIONS while the markers of the round before are on their way to the disk.
                eventually(lambda me=me: client.write(me, topic, 0, b"a") is ErrorCode.NONE)  # type: ignore[misc]
                assert client.commit_offset(me, "readers", topic, round_) is ErrorCode.NONE
                after = client.end(me, commit=round_ % 2 == 0)
                assert isinstance(after, tuple)
                me = after
            eventually(lambda: client.ends(topic) == (10, 10))
