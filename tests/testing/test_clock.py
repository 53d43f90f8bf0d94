"""The clock that tests put forward: what moves with it and what does not, as the guide lists it."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.testing import Broker
from riverlog.testing.settable_clock import SettableClock
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.fetch import FetchRequest
from riverlog.wire.messages.list_groups import ListGroupsRequest
from tests.broker.raw_client import RawClient, fetch_request, one_record
from tests.waiting import eventually

MakeTopic = Callable[..., str]


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [each.value for each in broker.consume(topic)]


def group_state(broker: Broker, group: str) -> str | None:
    with RawClient(broker) as client:
        listed = client.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()).groups
    return next((each.group_state for each in listed if each.group_id == group), None)


def transaction_state(broker: Broker, transactional_id: str) -> str:
    with RawClient(broker) as client:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        [found] = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return "gone"
    assert found.error_code == ErrorCode.NONE
    state: str = found.transaction_state
    return state


def test_it_goes_forward_by_what_is_said_and_goes_on_by_itself(riverlog_clock: SettableClock) -> None:
    before = riverlog_clock.now
    riverlog_clock.advance(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)
    step = timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)
    assert before + step <= riverlog_clock.now <= before + step + timedelta(minutes=5)
    assert "1 day, 2:03:04" in repr(riverlog_clock)


def test_it_goes_to_a_moment_and_never_back(riverlog_clock: SettableClock) -> None:
    moment = datetime.now(UTC) + timedelta(days=400)
    riverlog_clock.advance_to(moment)
    assert moment <= riverlog_clock.now <= moment + timedelta(minutes=5)
    for wrong in ({"days": -1}, {"hours": 1, "minutes": -61}):
        with pytest.raises(ValueError, match="forward only"):
            riverlog_clock.advance(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="forward only"):
        riverlog_clock.advance_to(moment - timedelta(days=1))
    with pytest.raises(ValueError, match="no time zone"):
        riverlog_clock.advance_to(datetime(2099, 1, 1))


# What moves.


def test_retention_deletes(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    short = riverlog_topic_factory(retention_ms=15 * 60_000)
    long = riverlog_topic_factory(retention_ms=-1)
    for topic in (short, long):
        riverlog_broker.produce(topic, "old")
    riverlog_clock.advance(minutes=14)
    riverlog_broker.produce(short, "newer")
    assert values(riverlog_broker, short) == [b"old", b"newer"]
    riverlog_clock.advance(minutes=16)
    assert (values(riverlog_broker, short), values(riverlog_broker, long)) == ([], [b"old"])


def test_deleted_files_are_removed(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(retention_ms=1000, file_delete_delay_ms=60_000)
    riverlog_broker.produce(topic, "old")

    def deleted() -> list[str]:
        return [each for each in os.listdir(f"{riverlog_broker.data_dir}/{topic}-0") if ".deleted" in each]

    riverlog_clock.advance(minutes=1)
    assert deleted()
    riverlog_clock.advance(minutes=2)
    assert not deleted()


def test_segments_are_rolled_by_age(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(segment_ms=60_000)
    for _ in range(3):
        riverlog_broker.produce(topic, "one of a segment")
        riverlog_clock.advance(minutes=2)
    logs = [each for each in os.listdir(f"{riverlog_broker.data_dir}/{topic}-0") if each.endswith(".log")]
    assert len(logs) == 3


def test_compaction_waits_for_its_lag(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(
        cleanup_policy="compact",
        min_compaction_lag_ms=3_600_000,
        min_cleanable_dirty_ratio=0,
        segment_ms=1000,
    )
    for value in ("first", "second", "third"):
        riverlog_broker.produce(topic, value, key="k")
        riverlog_clock.advance(minutes=1)
    assert values(riverlog_broker, topic) == [b"first", b"second", b"third"]
    riverlog_clock.advance(hours=1)
    assert values(riverlog_broker, topic) == [b"second", b"third"], "the active segment is never compacted"


def test_compaction_comes_at_the_latest_after_its_longest_lag(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(
        cleanup_policy="compact",
        max_compaction_lag_ms=3_600_000,
        min_cleanable_dirty_ratio=1,
        segment_ms=1000,
    )
    for value in ("first", "second", "third"):
        riverlog_broker.produce(topic, value, key="k")
        riverlog_clock.advance(minutes=1)
    assert values(riverlog_broker, topic) == [b"first", b"second", b"third"]
    riverlog_clock.advance(hours=2)
    assert values(riverlog_broker, topic) == [b"second", b"third"]


def test_tombstones_go_after_their_time(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(
        cleanup_policy="compact", delete_retention_ms=86_400_000, min_cleanable_dirty_ratio=0, segment_ms=1000
    )
    for value in ("alive", None):
        riverlog_broker.produce(topic, value, key="k")
        riverlog_clock.advance(minutes=1)
    riverlog_broker.produce(topic, "last", key="other")
    riverlog_clock.advance(minutes=1)
    assert values(riverlog_broker, topic) == [None, b"last"]
    riverlog_clock.advance(days=2)
    riverlog_broker.produce(topic, "another", key="other")
    riverlog_clock.advance(minutes=1)
    assert None not in values(riverlog_broker, topic)


def test_offsets_of_groups_without_members_expire(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    consumer = Consumer({"bootstrap.servers": riverlog_broker.bootstrap_servers, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition(riverlog_topic, 0, 7)], asynchronous=False)
    consumer.close()
    riverlog_clock.advance(days=6)
    assert riverlog_broker.committed("g") == {(riverlog_topic, 0): 7}
    riverlog_clock.advance(days=2)
    assert riverlog_broker.committed("g") == {}
    assert group_state(riverlog_broker, "g") is None


def test_producers_expire(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    def producers() -> int:
        wanted = TopicRequest(name=riverlog_topic, partition_indexes=[0])
        reply = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[wanted]))
        return len(reply.topics[0].partitions[0].active_producers)

    with RawClient(riverlog_broker) as client:
        now_ms = riverlog_clock.now_ms
        record = one_record(timestamp_ms=now_ms, producer_id=9, producer_epoch=0, base_sequence=0)
        assert client.produce(riverlog_topic, record).error_code == ErrorCode.NONE
        riverlog_clock.advance(hours=23)
        assert producers() == 1
        riverlog_clock.advance(hours=2)
        assert producers() == 0


def test_records_are_stamped_by_it(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic_factory: MakeTopic
) -> None:
    topic = riverlog_topic_factory(message_timestamp_type="LogAppendTime")
    riverlog_clock.advance(days=100)
    producer = Producer({"bootstrap.servers": riverlog_broker.bootstrap_servers})
    producer.produce(topic, b"from a client whose clock stayed")
    assert producer.flush(20) == 0
    riverlog_broker.produce(topic, "by the broker's clock")
    ahead = datetime.now(UTC) + timedelta(days=99)
    assert all(each.timestamp_ms > ahead.timestamp() * 1000 for each in riverlog_broker.consume(topic))


def open_transaction(broker: Broker, topic: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "t",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"unfinished")
    assert producer.flush(20) == 0
    return producer


def test_transactions_run_out_of_time_if_the_test_says_so(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    open_transaction(riverlog_broker, riverlog_topic)
    riverlog_clock.advance(minutes=15)
    assert transaction_state(riverlog_broker, "t") == "Ongoing"
    riverlog_clock.advance(minutes=2, transactions=True)
    assert transaction_state(riverlog_broker, "t") == "CompleteAbort"
    riverlog_broker.produce(riverlog_topic, "after it")
    assert values(riverlog_broker, riverlog_topic) == [b"after it"]


def test_transactional_ids_expire_if_the_test_says_so(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    open_transaction(riverlog_broker, riverlog_topic).commit_transaction(20)
    riverlog_clock.advance(days=8)
    assert transaction_state(riverlog_broker, "t") == "CompleteCommit"
    riverlog_clock.advance(days=8, transactions=True)
    assert transaction_state(riverlog_broker, "t") == "gone"


# What does not move.


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_groups_stay(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str, protocol: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": riverlog_broker.bootstrap_servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe([riverlog_topic])
        riverlog_broker.produce(riverlog_topic, "before")
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"before"
        riverlog_clock.advance(days=1)
        assert group_state(riverlog_broker, "g") == "Stable"
        riverlog_broker.produce(riverlog_topic, "after")
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"after"
    finally:
        consumer.close()


def test_long_polls_go_on_waiting(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        client.send_long_poll(riverlog_topic)
        riverlog_clock.advance(days=1)
        assert client.hears_nothing()
        riverlog_broker.produce(riverlog_topic, "here")
        assert client.receive(ApiKey.FETCH, 12).responses[0].partitions[0].high_watermark == 1


def test_idle_connections_stay(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        assert client.produce(riverlog_topic).error_code == ErrorCode.NONE
        riverlog_clock.advance(days=1)

        async def look(node: object) -> None:
            riverlog_broker.node.serving.connections.close_idle()

        riverlog_broker.call(look)
        assert client.produce(riverlog_topic).error_code == ErrorCode.NONE


def test_fetch_sessions_stay(
    riverlog_broker: Broker, riverlog_clock: SettableClock, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        full = fetch_request(riverlog_topic, 0, session_id=0, session_epoch=0)
        session_id = client.ask(ApiKey.FETCH, 12, full).session_id
        riverlog_clock.advance(days=1)
        reply = client.ask(ApiKey.FETCH, 12, FetchRequest(session_id=session_id, session_epoch=1))
        assert reply.error_code == ErrorCode.NONE


# Whose clock it is.


def test_the_clock_of_the_shared_broker_is_nobodys_to_move(riverlog_broker: Broker) -> None:
    with pytest.raises(RiverlogError, match="riverlog_clock"):
        riverlog_broker.clock.advance(days=1)


def test_time_that_passes_while_a_broker_is_down_is_found_at_its_start(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path, log_initial_task_delay_ms=0)
    with broker:
        broker.create_topic("orders", config={"retention.ms": 60_000})
        broker.produce("orders", "old")
    broker.clock.advance(hours=1)
    with broker:
        eventually(lambda: values(broker, "orders") == [])
