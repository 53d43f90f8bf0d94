"""Records for plain asserts: written, read and waited for without a client, and without meeting faults."""

import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from riverlog.model.errors import RiverlogError
from riverlog.records.murmur2 import partition_for_key
from riverlog.testing import Broker
from riverlog.testing.records import Record


def test_what_is_produced_is_told_and_is_there(riverlog_broker: Broker, riverlog_topic: str) -> None:
    headers = {"trace": "1", "empty": None}
    written = riverlog_broker.produce(riverlog_topic, "text", b"\xff", None, headers=headers, timestamp_ms=5)
    kept = (("trace", b"1"), ("empty", None))
    assert written == [
        Record(riverlog_topic, 0, 0, 5, None, b"text", kept),
        Record(riverlog_topic, 0, 1, 5, None, b"\xff", kept),
        Record(riverlog_topic, 0, 2, 5, None, None, kept),
    ]
    assert riverlog_broker.consume(riverlog_topic) == written


def test_stock_clients_read_what_it_writes_and_it_reads_what_they_write(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    producer = Producer(
        {"bootstrap.servers": riverlog_broker.bootstrap_servers, "compression.type": "zstd", "linger.ms": 5}
    )
    for number in range(100):
        producer.produce(riverlog_topic, f"from the client {number}", key="k")
    assert producer.flush(20) == 0
    [ours] = riverlog_broker.produce(riverlog_topic, "ours", key="k")
    consumed = riverlog_broker.consume(riverlog_topic, count=101)
    assert [each.offset for each in consumed] == list(range(101))
    assert consumed[0].value == b"from the client 0"
    consumer = Consumer({"bootstrap.servers": riverlog_broker.bootstrap_servers, "group.id": "none"})
    try:
        consumer.assign([TopicPartition(riverlog_topic, 0, ours.offset)])
        message = consumer.poll(20)
        assert message is not None
        assert (message.key(), message.value()) == (b"k", b"ours")
    finally:
        consumer.close()


def test_partitions_are_the_given_one_that_of_the_key_or_each_in_turn(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic("three", partitions=3)
    produce = riverlog_broker.produce
    assert [each.partition for each in produce("three", "a", "b", partition=2)] == [2, 2]
    assert [each.partition for each in produce("three", "a", key="k")] == [partition_for_key(b"k", 3)]
    assert [each.partition for each in produce("three", "a", "b", "c", "d")] == [0, 0, 1, 2]
    assert len(riverlog_broker.consume("three")) == 7


def test_records_that_come_later_are_waited_for(riverlog_broker: Broker, riverlog_topic: str) -> None:
    found: list[Record] = []
    reader = threading.Thread(target=lambda: found.extend(riverlog_broker.consume(riverlog_topic, count=2)))
    reader.start()
    riverlog_broker.produce(riverlog_topic, "one")
    riverlog_broker.produce(riverlog_topic, "two", "three")
    reader.join(20)
    assert [each.value for each in found] == [b"one", b"two"]


def test_too_few_records_are_an_error_that_says_what_came(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    riverlog_broker.produce(riverlog_topic, "one")
    with pytest.raises(
        TimeoutError, match=r"did not have 2 records within 0\.01 s; 1 came, the last was .*one"
    ):
        riverlog_broker.consume(riverlog_topic, count=2, timeout=0.01)


def test_a_topic_that_is_not_there_is_made_by_writing_where_that_is_allowed() -> None:
    with Broker() as broker:
        with pytest.raises(RiverlogError, match="There is no topic absent"):
            broker.consume("absent")
        with pytest.raises(RiverlogError, match="There is no topic absent"):
            broker.consume("absent", count=1, timeout=0.01)
        assert broker.produce("absent", "here")[0].offset == 0
        assert len(broker.consume("absent")) == 1
    refused = pytest.raises(RiverlogError, match="UNKNOWN_TOPIC_OR_PARTITION")
    with Broker(auto_create_topics_enable=False) as broker, refused:
        broker.produce("absent", "here")


def test_what_the_broker_refuses_is_an_error(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with pytest.raises(RiverlogError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        riverlog_broker.produce(riverlog_topic, "nowhere", partition=7)
    with pytest.raises(RiverlogError, match="MESSAGE_TOO_LARGE"):
        riverlog_broker.produce(riverlog_topic, b"x" * 2_000_000)
    with pytest.raises(ValueError, match="read_committed or read_uncommitted"):
        riverlog_broker.consume(riverlog_topic, isolation="committed")


def test_aborted_and_open_transactions_are_left_out_unless_wanted(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    producer = Producer(
        {"bootstrap.servers": riverlog_broker.bootstrap_servers, "transactional.id": riverlog_topic}
    )
    producer.init_transactions(20)
    for value, end in (("committed", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(riverlog_topic, value)
        assert producer.flush(20) == 0
        end(20)
    producer.begin_transaction()
    producer.produce(riverlog_topic, "open")
    assert producer.flush(20) == 0

    def values(isolation: str) -> list[bytes | None]:
        return [each.value for each in riverlog_broker.consume(riverlog_topic, isolation=isolation)]

    assert values("read_committed") == [b"committed"]
    assert values("read_uncommitted") == [b"committed", b"aborted", b"open"]
    producer.abort_transaction(20)


def test_a_trimmed_topic_is_read_from_where_it_starts(riverlog_broker: Broker, riverlog_topic: str) -> None:
    riverlog_broker.produce(riverlog_topic, "gone", "kept")
    admin = AdminClient({"bootstrap.servers": riverlog_broker.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(riverlog_topic, 0, 1)]).values():
        deleted.result(20)
    assert [each.value for each in riverlog_broker.consume(riverlog_topic)] == [b"kept"]


def test_commits_are_told_by_topic_and_partition(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic("committed", partitions=2)
    assert riverlog_broker.committed("unheard-of") == {}
    consumer = Consumer({"bootstrap.servers": riverlog_broker.bootstrap_servers, "group.id": "some"})
    consumer.commit(
        offsets=[TopicPartition("committed", 0, 3), TopicPartition("committed", 1, 4)], asynchronous=False
    )
    consumer.close()
    assert riverlog_broker.committed("some") == {("committed", 0): 3, ("committed", 1): 4}


def test_faults_do_not_touch_it(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with riverlog_broker.faults.disconnect() as every, riverlog_broker.faults.refuse_connections() as new:
        riverlog_broker.produce(riverlog_topic, "undisturbed")
        assert [each.value for each in riverlog_broker.consume(riverlog_topic)] == [b"undisturbed"]
        assert riverlog_broker.committed("unheard-of") == {}
    assert (every.hits, new.hits) == (0, 0)
