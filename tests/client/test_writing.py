"""Whole batches produced with several requests on the way, over brokers that come and go."""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from riverlog.client.cluster import BrokerRefused, ClientSettings, Cluster
from riverlog.client.core.new_batch import NewBatch, produce_frame
from riverlog.client.open_transactions import describe, list_open
from riverlog.client.transaction_dialect import Dialect, dialect_of, longest_timeout_ms
from riverlog.client.transactions import (
    TransactionEndedOtherwise,
    begin_with_longest_timeout,
    end,
    fence_and_abort,
    idempotent_producer,
    take_over,
)
from riverlog.client.writing import BatchWriter, Transactional, WriterFenced
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.model.network import Address
from riverlog.records.batch import HEADER_BYTES, crc_is_valid, read_header
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.client.topics import committed_values, read_values


def settings_for(broker: Broker) -> ClientSettings:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return ClientSettings(bootstrap=(Address(host, int(port)),), client_id="test")


def batch(values: Sequence[bytes], *, partition: int = 0) -> NewBatch:
    data = build_batch([(1000, None, value, ()) for value in values])
    return NewBatch("t", partition, [data[HEADER_BYTES:]], len(values), 1000)


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("transactional_id", [None, "task"])
def test_requests_in_pieces_are_those_of_the_tables(version: int, transactional_id: str | None) -> None:
    batches = [batch([b"a"]), batch([b"b" * 200, b"c"], partition=1)]
    other = batch([b"d" * 20_000])
    other.topic = "other"
    for each in (*batches, other):
        each.sign(ProducerIdAndEpoch(7, 1), 3, is_transactional=transactional_id is not None)
        whole = b"".join(each.pieces)
        assert crc_is_valid(whole, 0, read_header(whole))
    header = RequestHeader(ApiKey.PRODUCE, version, 99, "test")
    frame = b"".join(produce_frame(header, transactional_id, -1, 1234, [*batches, other]))
    topics = [
        TopicProduceData(
            name=name,
            partition_data=[
                PartitionProduceData(index=each.partition, records=b"".join(each.pieces)) for each in given
            ],
        )
        for name, given in (("t", batches), ("other", [other]))
    ]
    message = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1234, topic_data=topics)
    assert frame == encode_request(header, message)


def test_batches_arrive_in_order_with_many_on_the_way() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        broker.create_topic("t", partitions=2)
        writer = BatchWriter(cluster, idempotent_producer(cluster))
        for n in range(50):
            writer.write([batch([b"%d" % n], partition=0), batch([b"%d" % n, b"x"], partition=1)])
        writer.flush()
        writer.close()
        assert writer.records_written == 150
        assert read_values(broker, "t", 0) == [b"%d" % n for n in range(50)]


def test_several_batches_of_one_partition_at_once_keep_their_order() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        broker.create_topic("t", partitions=1)
        writer = BatchWriter(cluster, idempotent_producer(cluster))
        writer.write([batch([b"%d" % n]) for n in range(20)])
        writer.flush()
        writer.close()
        assert read_values(broker, "t", 0) == [b"%d" % n for n in range(20)]


def test_nothing_is_lost_or_doubled_when_the_broker_is_killed_while_batches_are_on_the_way() -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        halfway = threading.Event()

        def write_all() -> int:
            with Cluster(settings_for(broker)) as cluster:
                writer = BatchWriter(cluster, idempotent_producer(cluster))
                for n in range(400):
                    writer.write([batch([b"%d" % n], partition=n % 2)])
                    if n == 150:
                        halfway.set()
                writer.flush()
                writer.close()
                return writer.records_written

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(write_all)
            assert halfway.wait(30)
            broker.kill()
            broker.start()
            assert done.result(60) == 400
        assert read_values(broker, "t", 0) == [b"%d" % n for n in range(0, 400, 2)]
        assert read_values(broker, "t", 1) == [b"%d" % n for n in range(1, 400, 2)]


def test_without_a_producer_id_rows_are_written_too() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        broker.create_topic("t", partitions=1)
        writer = BatchWriter(cluster, None)
        writer.write([batch([b"a", b"b"])])
        writer.flush()
        writer.close()
        assert read_values(broker, "t", 0) == [b"a", b"b"]


def test_a_batch_that_the_topic_refuses_is_an_error_that_names_it() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        broker.create_topic("t", partitions=1, config={"max.message.bytes": "1000"})
        writer = BatchWriter(cluster, idempotent_producer(cluster))
        writer.write([batch([b"x" * 2000])])
        with pytest.raises(BrokerRefused, match="partition 0 of topic t: MESSAGE_TOO_LARGE"):
            writer.flush()
        writer.close()


@pytest.mark.parametrize("bumps_epoch", [True, False])
def test_a_transaction_is_ended_by_who_knows_its_numbers(bumps_epoch: bool) -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=1)
        with Cluster(settings_for(broker)) as cluster:
            assert dialect_of(cluster) == Dialect(bumps_epoch=True, has_two_phase=True)
            dialect = Dialect(bumps_epoch, has_two_phase=True)
            producer, times_out = begin_with_longest_timeout(cluster, "task", dialect, None)
            assert not times_out
            writer = BatchWriter(cluster, producer, Transactional("task", dialect))
            writer.write([batch([b"a"]), batch([b"b"])])
            writer.flush()
            writer.close()
        with Cluster(settings_for(broker)) as other:
            assert describe(other, ["task", "unknown"]).keys() == {"task"}
            assert list_open(other, "ta") == {"task"}
            end(other, "task", producer, dialect, commit=True)
            end(other, "task", producer, dialect, commit=True)
            with pytest.raises(TransactionEndedOtherwise):
                end(other, "task", producer, dialect, commit=False)
            assert list_open(other, "ta") == set()
        assert committed_values(broker, "t", 0) == [b"a", b"b"]


def test_who_writes_is_fenced_when_the_transaction_is_aborted_from_outside() -> None:
    with Broker() as broker, Cluster(settings_for(broker)) as cluster:
        broker.create_topic("t", partitions=1)
        dialect = dialect_of(cluster)
        producer, _ = begin_with_longest_timeout(cluster, "task", dialect, None)
        writer = BatchWriter(cluster, producer, Transactional("task", dialect))
        writer.write([batch([b"a"])])
        writer.flush()
        fence_and_abort(cluster, "task")
        writer.write([batch([b"b"])])
        with pytest.raises(WriterFenced):
            writer.flush()
        writer.close()
        with pytest.raises(TransactionEndedOtherwise):
            end(cluster, "task", producer, dialect, commit=True)


def test_where_two_phase_commit_is_off_the_longest_timeout_is_taken() -> None:
    config = {"transaction.two.phase.commit.enable": False, "transaction.max.timeout.ms": 123_000}
    with Broker(config) as broker, Cluster(settings_for(broker)) as cluster:
        assert longest_timeout_ms(cluster) == 123_000
        producer, times_out = begin_with_longest_timeout(cluster, "task", dialect_of(cluster), None)
        assert producer.producer_id >= 0
        assert times_out
        with pytest.raises(BrokerRefused) as caught:
            take_over(cluster, "task", timeout_ms=124_000)
        assert caught.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_killed_broker_does_not_double_the_rows_of_a_transaction() -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=1)
        with Cluster(settings_for(broker)) as cluster:
            dialect = dialect_of(cluster)
            producer, _ = begin_with_longest_timeout(cluster, "task", dialect, None)
            writer = BatchWriter(cluster, producer, Transactional("task", dialect))
            for n in range(60):
                writer.write([batch([b"%d" % n])])
                if n == 30:
                    broker.kill()
                    broker.start()
            writer.flush()
            writer.close()
            end(cluster, "task", producer, dialect, commit=True)
        assert Counter(committed_values(broker, "t", 0)) == Counter(b"%d" % n for n in range(60))
