"""A stream's reader called as Spark calls it, on a real broker: starts, limits, growth and loss."""

import pickle
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from pyspark_riverlog import DefaultSource
from riverlog.client.cluster import ClusterUnreachable
from riverlog.spark.source import stream_plan
from riverlog.spark.source.data_loss import DataLoss
from riverlog.spark.source.places import OffsetJson
from riverlog.spark.source.positions import UnknownTopicError
from riverlog.spark.source.stream_reader import StreamReader
from riverlog.testing import Broker
from riverlog.testing.fault import Asked
from tests.spark.logs import numbered, put, put_in_transaction
from tests.waiting import eventually

ALL = ReadAllAvailable()
_started: list[StreamReader] = []


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """Every stream is stopped, as Spark stops it."""
    yield
    while _started:
        _started.pop().stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.cleaner.backoff.ms": 50}) as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """Two partitions with ten records each."""
    name = f"t{abs(hash(request.node.name))}"
    broker.create_topic(name, 2)
    put(broker, name, numbered(0, 10), partition=0)
    put(broker, name, numbered(10, 20), partition=1)
    return name


def reader(broker: Broker, **options: object) -> StreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    given |= {name.replace("_", "."): str(value) for name, value in options.items()}
    source = DefaultSource(given)
    made = source.streamReader(source.schema())
    assert isinstance(made, StreamReader)
    _started.append(made)
    return made


def offsets(topic: str, *numbers: int) -> OffsetJson:
    return {topic: {str(index): number for index, number in enumerate(numbers)}}


def read(stream: StreamReader, start: OffsetJson, end: OffsetJson) -> list[str]:
    """As the tasks do it, with the reader that they get."""
    sent = pickle.loads(pickle.dumps(stream))
    return sorted(
        value.decode()
        for split in stream.partitions(start, end)
        for rows in sent.read(split)
        for value in rows.column("value").to_pylist()
    )


def next_batch(stream: StreamReader, start: OffsetJson) -> OffsetJson:
    """Where the first batch ends that is not empty."""
    ends: list[OffsetJson] = []

    def came() -> bool:
        ends.append(stream.latestOffset(start, ALL))
        return ends[-1] != start

    eventually(came)
    return ends[-1]


def test_a_stream_begins_at_the_latest_unless_told_otherwise(broker: Broker, topic: str) -> None:
    assert reader(broker, subscribe=topic).initialOffset() == offsets(topic, 10, 10)
    assert reader(broker, subscribe=topic, startingOffsets="earliest").initialOffset() == offsets(topic, 0, 0)
    specific = reader(broker, subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 3, "1": -1}}}}')
    assert specific.initialOffset() == offsets(topic, 3, 10)


def test_a_batch_holds_what_came_since_the_last(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, startingOffsets="earliest")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert (end, read(stream, start, end)) == (offsets(topic, 10, 10), numbered(0, 20))
    assert stream.latestOffset(end, ALL) == end
    assert stream.partitions(end, end) == []
    put(broker, topic, ["later"], partition=1)
    later = stream.latestOffset(end, ALL)
    assert read(stream, end, later) == ["later"]
    assert stream.reportLatestOffset() == later == offsets(topic, 10, 11)


def test_max_offsets_per_trigger_bounds_a_batch(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, maxOffsetsPerTrigger=6)
    assert stream.getDefaultReadLimit() == ReadMaxRows(6)
    start = offsets(topic, 0, 0)
    assert stream.latestOffset(start, ReadMaxRows(6)) == offsets(topic, 3, 3)
    assert stream.latestOffset(start, ALL) == offsets(topic, 10, 10)


def test_min_offsets_per_trigger_waits_for_more(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, minOffsetsPerTrigger=5, maxOffsetsPerTrigger=8)
    assert reader(broker, subscribe=topic, minOffsetsPerTrigger=5).getDefaultReadLimit() == ReadMinRows(5)
    limit = stream.getDefaultReadLimit()
    start = offsets(topic, 8, 8)
    assert stream.latestOffset(start, limit) == start
    assert stream.latestOffset(start, ReadMinRows(5)) == start
    put(broker, topic, ["one more"])
    assert stream.latestOffset(start, limit) == offsets(topic, 11, 10)
    assert stream.latestOffset(offsets(topic, 0, 0), limit) != offsets(topic, 11, 10)


def test_a_new_query_begins_with_what_is_there_however_little(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger=100)
    first = stream.latestOffset(stream.initialOffset(), ReadMinRows(100))
    assert first == offsets(topic, 10, 10)
    put(broker, topic, ["not enough for a second batch"])
    assert stream.latestOffset(first, ReadMinRows(100)) == first


def test_a_deleted_beginning_is_passed_in_one_batch(broker: Broker, topic: str) -> None:
    delete_before(broker, topic, 8)
    lax = reader(broker, subscribe=topic, failOnDataLoss="false", maxOffsetsPerTrigger=4)
    start = offsets(topic, 0, 10)
    put(broker, topic, numbered(20, 30))
    end = lax.latestOffset(start, ReadMaxRows(4))
    assert end == offsets(topic, 12, 10)
    assert read(lax, start, end) == [*numbered(8, 10), *numbered(20, 22)]


@pytest.mark.parametrize(
    ("option", "value"), [("subscribe", "{}"), ("subscribePattern", "^{}$"), ("assign", '{{"{}": [0]}}')]
)
def test_a_topic_that_is_not_asked_for_any_more_is_told_as_that(
    broker: Broker, topic: str, option: str, value: str
) -> None:
    broker.create_topic(f"{topic}-other")
    stream = reader(broker, **{option: value.format(f"{topic}-other")})
    complaint = f"partition 0 of topic {topic} .* option {option} does not name it any more; put it back"
    with pytest.raises(DataLoss, match=complaint):
        stream.latestOffset(offsets(topic, 3, 3), ALL)


def test_max_trigger_delay_ends_the_wait(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr(stream_plan, "time", SimpleNamespace(monotonic=lambda: now_s))
    stream = reader(broker, subscribe=topic, minOffsetsPerTrigger=5, maxTriggerDelay="300ms")
    start = offsets(topic, 9, 9)
    assert stream.latestOffset(start, ReadMinRows(5)) == start
    now_s += 0.29
    assert stream.latestOffset(start, ReadMinRows(5)) == start
    now_s += 0.02
    assert stream.latestOffset(start, ReadMinRows(5)) == offsets(topic, 10, 10)


def test_available_now_stops_at_what_was_there(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, maxOffsetsPerTrigger=15, minOffsetsPerTrigger=10)
    stream.prepareForTriggerAvailableNow()
    put(broker, topic, ["too late"])
    first = stream.latestOffset(offsets(topic, 0, 0), stream.getDefaultReadLimit())
    second = stream.latestOffset(first, stream.getDefaultReadLimit())
    assert sum(first[topic].values()) == 15
    assert second == offsets(topic, 10, 10)
    assert stream.latestOffset(second, stream.getDefaultReadLimit()) == second


def test_min_partitions_splits_a_batch(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, minPartitions=5)
    assert len(stream.partitions(offsets(topic, 0, 0), offsets(topic, 10, 2))) == 5


def test_new_partitions_are_read_from_their_beginning(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic)
    start = stream.initialOffset()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(10)
    put(broker, topic, ["new"], partition=2)
    end = next_batch(stream, start)
    assert end == offsets(topic, 10, 10, 1)
    assert read(stream, start, end) == ["new"]


def test_new_topics_that_match_the_pattern_are_read(broker: Broker) -> None:
    broker.create_topic("grow-a")
    stream = reader(broker, subscribePattern="grow-.*")
    start = stream.initialOffset()
    broker.create_topic("grow-b")
    put(broker, "grow-b", ["b"])
    end = next_batch(stream, start)
    assert end == {"grow-a": {"0": 0}, "grow-b": {"0": 1}}
    assert read(stream, start, end) == ["b"]


def test_a_stream_of_committed_records_ends_before_an_open_transaction(broker: Broker, topic: str) -> None:
    put_in_transaction(broker, topic, ["aborted"], commits=False)
    put_in_transaction(broker, topic, ["committed"], commits=True)
    stream = reader(broker, subscribe=topic, kafka_isolation_level="read_committed")
    start = offsets(topic, 10, 10)
    end = stream.latestOffset(start, ALL)
    assert end == offsets(topic, 14, 10)
    assert read(stream, start, end) == ["committed"]


def test_offsets_of_an_aborted_transaction_are_no_loss(broker: Broker) -> None:
    broker.create_topic("gaps")
    put(broker, "gaps", numbered(0, 5))
    put_in_transaction(broker, "gaps", ["x"], commits=False)
    stream = reader(broker, subscribe="gaps", kafka_isolation_level="read_committed")
    end = stream.latestOffset(offsets("gaps", 0), ALL)
    assert end == offsets("gaps", 7)
    assert read(stream, offsets("gaps", 5), end) == []


def test_offsets_that_were_compacted_away_are_no_loss(broker: Broker) -> None:
    small = {"cleanup.policy": "compact", "internal.segment.bytes": 2000, "min.cleanable.dirty.ratio": 0.01}
    broker.create_topic("compacted", config=small)
    for number in range(200):
        put(broker, "compacted", [f"{number:05d}" + "x" * 50], key=b"same")
    stream = reader(broker, subscribe="compacted")
    start, end = offsets("compacted", 0), offsets("compacted", 200)

    def left() -> list[str]:
        return [value[:5] for value in read(stream, start, end)]

    eventually(lambda: len(left()) < 100, timeout_s=60)
    assert left()[-1] == "00199"


def delete_topic(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(10)


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for outcome in admin.delete_records([At(topic, 0, offset)]).values():
        outcome.result(10)


def test_records_deleted_before_they_were_read_are_loss(broker: Broker, topic: str) -> None:
    start, end = offsets(topic, 2, 10), offsets(topic, 10, 10)
    delete_before(broker, topic, 6)
    stream = reader(broker, subscribe=topic)
    with pytest.raises(DataLoss, match=f"offsets 2 to 5 of partition 0 of topic {topic} .*begins at 6"):
        stream.partitions(start, end)
    allowed = reader(broker, subscribe=topic, failOnDataLoss="false")
    assert read(allowed, start, end) == numbered(6, 10)


def test_records_deleted_after_the_plan_are_loss_in_the_task(broker: Broker, topic: str) -> None:
    start, end = offsets(topic, 2, 10), offsets(topic, 10, 10)
    strict, lax = reader(broker, subscribe=topic), reader(broker, subscribe=topic, failOnDataLoss="false")
    [split] = strict.partitions(start, end)
    delete_before(broker, topic, 6)
    with pytest.raises(DataLoss, match=f"offsets 2 to 5 of partition 0 of topic {topic}"):
        list(strict.read(split))
    assert [rows.num_rows for rows in lax.read(split)] == [4]


def test_a_deleted_topic_is_loss(broker: Broker, topic: str) -> None:
    strict, lax = reader(broker, subscribe=topic), reader(broker, subscribe=topic, failOnDataLoss="false")
    start = strict.initialOffset()
    assert lax.initialOffset() == start
    [split] = strict.partitions(offsets(topic, 2, 10), start)
    delete_topic(broker, topic)
    with pytest.raises(DataLoss, match=f"offsets from 10 on of partition 0 of topic {topic}"):
        eventually(lambda: strict.latestOffset(start, ALL) != start)
    eventually(lambda: lax.latestOffset(start, ALL) == {})
    with pytest.raises(DataLoss, match=f"offsets 2 to 9 of partition 0 of topic {topic}"):
        list(strict.read(split))


def test_a_topic_made_anew_is_loss_even_when_it_is_longer(broker: Broker, topic: str) -> None:
    strict, lax = reader(broker, subscribe=topic), reader(broker, subscribe=topic, failOnDataLoss="false")
    start = strict.initialOffset()
    lax.initialOffset()
    delete_topic(broker, topic)
    broker.create_topic(topic, 2)
    put(broker, topic, numbered(0, 3))
    put(broker, topic, numbered(3, 15), partition=1)
    with pytest.raises(DataLoss, match=f"topic {topic}"):
        eventually(lambda: strict.latestOffset(start, ALL) == offsets(topic, 3, 12))
    eventually(lambda: lax.latestOffset(start, ALL) == offsets(topic, 3, 12))
    end = offsets(topic, 3, 12)
    assert read(lax, start, end)[:3] == numbered(0, 3)


def test_a_topic_made_anew_while_the_query_was_stopped_is_found_by_its_id(broker: Broker, topic: str) -> None:
    group = f"group-of-{topic}"
    first = reader(broker, subscribe=topic, kafka_group_id=group, startingOffsets="earliest")
    end = first.latestOffset(first.initialOffset(), ALL)
    first.commit(end)
    first.stop()
    unchanged = reader(broker, subscribe=topic, kafka_group_id=group)
    assert unchanged.latestOffset(end, ALL) == end
    delete_topic(broker, topic)
    broker.create_topic(topic, 2)
    put(broker, topic, numbered(0, 30))
    put(broker, topic, numbered(30, 60), partition=1)
    complaint = f"offsets from 10 on of partition 0 of topic {topic} .*made anew while the query was stopped"
    for _ in range(2):
        strict = reader(broker, subscribe=topic, kafka_group_id=group)
        with pytest.raises(DataLoss, match=complaint):
            strict.latestOffset(end, ALL)
        with pytest.raises(DataLoss, match=complaint):
            strict.partitions(end, offsets(topic, 30, 30))
    lax = reader(broker, subscribe=topic, kafka_group_id=group, failOnDataLoss="false")
    later = lax.latestOffset(end, ALL)
    lax.commit(later)
    lax.stop()
    after = reader(broker, subscribe=topic, kafka_group_id=group)
    assert after.latestOffset(later, ALL) == later == offsets(topic, 30, 30)


def test_a_new_query_does_not_look_at_what_another_one_has_left_in_its_group(
    broker: Broker, topic: str
) -> None:
    before = reader(broker, subscribe=topic, kafka_group_id=f"shared-{topic}")
    before.latestOffset(before.initialOffset(), ALL)
    delete_topic(broker, topic)
    broker.create_topic(topic, 2)
    new = reader(broker, subscribe=topic, kafka_group_id=f"shared-{topic}")
    assert new.latestOffset(new.initialOffset(), ALL) == offsets(topic, 0, 0)


def test_a_topic_that_is_not_there_is_named(broker: Broker) -> None:
    with pytest.raises(UnknownTopicError, match="topic nowhere does not exist"):
        reader(broker, subscribe="nowhere").initialOffset()


def test_an_unreachable_broker_is_one_error_within_the_time_out(broker: Broker) -> None:
    stream = reader(
        broker, subscribe="t", kafka_bootstrap_servers="127.0.0.1:1", kafka_request_timeout_ms=300
    )
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1"):
        stream.initialOffset()
    assert time.monotonic() - began < 3


def test_a_restarted_broker_is_waited_for(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, startingOffsets="earliest")
    start = stream.initialOffset()
    broker.kill()
    broker.restart()
    end = stream.latestOffset(start, ALL)
    assert read(stream, start, end) == numbered(0, 20)


def test_progress_is_committed_to_the_group_that_was_asked_for(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic, kafka_group_id="progress", startingOffsets="earliest")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(6))
    stream.latestOffset(end, ALL)
    stream.stop()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [found] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("progress")]).values()
    partitions = found.result(10).topic_partitions
    assert {at.partition: at.offset for at in partitions} == {0: 3, 1: 3}


def test_available_now_notices_what_was_lost_before_it_began(broker: Broker, topic: str) -> None:
    stream = reader(broker, subscribe=topic)
    stream.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=r"offsets 10 to 11 of partition 1 .*the log now ends at 10"):
        stream.latestOffset(offsets(topic, 10, 12), ALL)


def test_a_stream_that_turns_to_committed_records_waits_where_it_was(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"open-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    stream = reader(broker, subscribe=topic, kafka_isolation_level="read_committed")
    start = offsets(topic, 11, 10)
    assert stream.latestOffset(start, ALL) == start
    producer.commit_transaction(30)
    assert stream.latestOffset(start, ALL) == offsets(topic, 12, 10)


def test_no_batch_waits_for_the_commit_of_its_progress(broker: Broker, topic: str) -> None:
    """The coordinator takes its time; the stream goes on, and what was overtaken is not committed."""
    stream = reader(broker, subscribe=topic, kafka_group_id=f"slow-{topic}")
    slow = broker.faults.delay("OffsetCommit", seconds=2)
    for upto in range(1, 9):
        assert stream.latestOffset(offsets(topic, upto, upto), ALL) == offsets(topic, 10, 10)
        stream.commit(offsets(topic, upto, upto))
    assert slow.hits < 8
    broker.faults.remove(slow)
    eventually(lambda: set(broker.committed(f"slow-{topic}").values()) == {8})


def test_a_later_batch_is_planned_by_two_requests(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the logs end, and where they begin; topics are looked at now and then."""
    monkeypatch.setattr(stream_plan, "_LOOK_S", 3600)
    stream = reader(broker, subscribe=topic, kafka_group_id=f"few-{topic}", kafka_client_id=f"id-{topic}")
    end = stream.latestOffset(offsets(topic, 0, 0), ALL)
    stream.partitions(offsets(topic, 0, 0), end)
    put(broker, topic, ["later"])
    asked: list[str] = []

    def note(request: Asked) -> bool:
        # A thread commits progress at the same time.
        if topic in request.topics and request.api != "OffsetCommit":
            asked.append(request.api)
        return False

    spy = broker.faults.delay(client_id=f"id-{topic}", seconds=0, when=note)
    later = stream.latestOffset(end, ALL)
    stream.reportLatestOffset()
    assert len(stream.partitions(end, later)) == 1
    broker.faults.remove(spy)
    assert asked == ["ListOffsets", "ListOffsets"]
