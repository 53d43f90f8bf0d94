"""Of too many open logs those that nobody uses are closed, and nobody notices."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.node.node import Node
from riverlog.records.builder import build_batch
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.log.syncing import SyncTask
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.raw_client import RawClient, fetches_waiting, one_record, produce_request
from tests.broker.transaction_client import TransactionClient
from tests.waiting import eventually

TOPIC = "resting"
PARTITIONS = 6


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path), riverlog_open_logs_max=1) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        client.create_topic(TOPIC, partitions=PARTITIONS)
        yield client


def look(broker: Broker, times: int = 1) -> None:
    async def close(node: Node) -> None:
        for _ in range(times):
            await node._idle_logs.close_some()

    broker.call(close)


def opened(broker: Broker) -> set[str]:
    async def names(node: Node) -> set[str]:
        return {str(log.topic_partition) for each in node._directories.online for log in each.opened()}

    return broker.call(names)


def names(*indexes: int) -> set[str]:
    return {f"{TOPIC}-{index}" for index in indexes}


def write(client: RawClient, *indexes: int) -> None:
    for index in indexes:
        assert client.produce(TOPIC, one_record(b"x"), partition=index).error_code == 0


def of_producer(sequence: int) -> bytes:
    """A batch that is new enough for its producer to be remembered."""
    record = (int(time.time() * 1000), None, b"x", ())
    return build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)


def ends(client: RawClient) -> list[int]:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=wanted)])
    return [each.offset for each in client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions]


def test_the_logs_that_were_left_alone_for_longest_are_closed(broker: Broker, client: RawClient) -> None:
    write(client, 0, 1, 2)
    look(broker)
    assert opened(broker) == names(0, 1, 2), "they were in use until a moment ago"
    write(client, 0, 3)
    look(broker)
    assert opened(broker) == names(0, 3)
    assert client.fetch(TOPIC, 0, partition=3).records
    look(broker)
    assert opened(broker) == names(3), "it was read meanwhile"
    assert ends(client) == [2, 1, 1, 1, 0, 0]
    write(client, 0, 1)
    assert ends(client) == [3, 2, 1, 1, 0, 0]


def test_looks_take_turns(broker: Broker, client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when what is due is run while the duty is at it."""
    monkeypatch.setattr("riverlog.replication.idle_logs._LOOKED_AT_PER_TURN", 1)

    async def close(node: Node) -> None:
        await asyncio.gather(*(node._idle_logs.close_some() for _ in range(10)))

    write(client, *range(PARTITIONS))
    look(broker)
    broker.call(close)
    assert len(opened(broker)) == 1


def test_nothing_is_kept_of_partitions_that_were_written_and_closed_and_deleted(
    broker: Broker, client: RawClient
) -> None:
    async def kept(node: Node) -> int:
        return len(node._idle_logs._replicas._idle._waiting)

    write(client, *range(PARTITIONS))
    with RawClient(broker) as leaving:
        leaving.send_long_poll(TOPIC, offset=1)
        look(broker, times=2)
        assert len(opened(broker)) == 1
        assert broker.call(kept) == 1
    eventually(lambda: fetches_waiting(broker) == 0)
    client.delete_topic(TOPIC)
    assert broker.call(kept) == 0


def test_no_more_are_closed_than_there_are_too_many(tmp_path: Path) -> None:
    with (
        Broker(data_dir=str(tmp_path), riverlog_open_logs_max=4) as broker,
        RawClient(broker) as client,
    ):
        client.create_topic(TOPIC, partitions=PARTITIONS)
        write(client, *range(PARTITIONS))
        look(broker, times=5)
        assert len(opened(broker)) == 4
        metrics = broker.node.metrics
        assert isinstance(metrics, InMemoryMetrics)
        assert metrics.value("riverlog_idle_logs_closed_total") == 2


def test_a_reader_that_waits_hears_of_records_that_come_after_its_log_was_closed(
    broker: Broker, client: RawClient
) -> None:
    write(client, 0, 1)
    with RawClient(broker) as reader:
        reader.send_long_poll(TOPIC, offset=1)
        assert reader.hears_nothing()
        look(broker, times=2)
        assert opened(broker) == names(1)
        assert reader.hears_nothing()
        write(client, 0)
        assert reader.receive(ApiKey.FETCH, 12).responses[0].partitions[0].records


def test_a_reader_that_waits_hears_that_its_closed_topic_goes(broker: Broker, client: RawClient) -> None:
    write(client, 0, 1)
    with RawClient(broker) as reader:
        reader.send_long_poll(TOPIC, offset=1)
        assert reader.hears_nothing()
        look(broker, times=2)
        client.delete_topic(TOPIC)
        reply = reader.receive(ApiKey.FETCH, 12)
        assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_who_wrote_to_it_again_and_again_goes_on(broker: Broker, client: RawClient, acks: int) -> None:
    write(client, 0, 1)
    for number in range(3):
        request = produce_request(TOPIC, None, acks=acks)
        for _ in range(5):
            client.send(ApiKey.PRODUCE, 9, request)
            if acks:
                assert not client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].error_code
        assert ends(client)[0] == 1 + 5 * (number + 1)
        look(broker)
        write(client, 1)
        look(broker)
        assert opened(broker) == names(1)


def test_producers_are_known_as_before(broker: Broker, client: RawClient) -> None:
    for sequence in range(4):
        for index in (0, 1):
            assert client.produce(TOPIC, of_producer(sequence), partition=index).error_code == 0
    asked = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    before = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked)
    look(broker, times=2)
    assert opened(broker) == names(1)
    assert client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked) == before
    assert client.produce(TOPIC, of_producer(1)).base_offset == 1
    assert client.produce(TOPIC, of_producer(9)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_log_with_an_open_transaction_stays_open(broker: Broker, client: RawClient) -> None:
    write(client, 1)
    with TransactionClient(broker, "mine") as producer:
        me = producer.identity()
        producer.add(me, TOPIC, 0)
        assert producer.write(me, TOPIC, 0, b"x") == ErrorCode.NONE
        look(broker, times=3)
        assert names(0) <= opened(broker)
        assert not names(1) & opened(broker)
        assert not isinstance(producer.end(me, commit=True), ErrorCode)

    def are_closed() -> bool:
        look(broker)
        return not names(0, 1) & opened(broker)

    eventually(are_closed)  # When its marker is written.
    assert ends(client)[:2] == [2, 1]


def test_logs_of_coordinators_stay_open(broker: Broker, client: RawClient) -> None:
    with TransactionClient(broker, "mine") as producer:
        producer.identity()
    write(client, 0)
    before = opened(broker)
    look(broker, times=3)
    assert opened(broker) == before - names(0)


def write_keys(client: RawClient, topic: str, count: int) -> None:
    """Each in a segment of its own, the last one stays open."""
    for number in range(count):
        assert client.produce(topic, one_record(b"%d" % number, key=b"k")).error_code == 0


def until_closed(broker: Broker, client: RawClient, log: str) -> None:
    """While another one is used. Not while a roll is being synced."""

    def is_closed() -> bool:
        write(client, 0)
        look(broker)
        return log not in opened(broker)

    eventually(is_closed)


SMALL_SEGMENTS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "80",
    "min.cleanable.dirty.ratio": "0",
}


def test_a_compacted_log_is_closed_when_there_is_nothing_to_be_cleaned(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic("compacted", config=SMALL_SEGMENTS)
    write_keys(client, "compacted", 5)
    write(client, 0)
    clean(broker)
    assert broker.call(lambda node: cleaned_offset(node, "compacted")) == 4
    look(broker, times=2)
    until_closed(broker, client, "compacted-0")
    write_keys(client, "compacted", 1)
    assert broker.call(lambda node: cleaned_offset(node, "compacted")) == 4, "as before it was closed"


def clean(broker: Broker) -> None:
    async def run(node: Node) -> None:
        await node._directories.run_what_is_due()
        await node._cleaner.clean_what_is_due()

    broker.call(run)


async def cleaned_offset(node: Node, topic: str) -> int:
    logs = [log for each in node._directories.online for log in each.opened()]
    return next(log.state.cleaned_offset for log in logs if log.topic_partition.topic == topic)


def test_a_compacted_log_that_is_to_be_cleaned_stays_open_until_it_is(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic("compacted", config=SMALL_SEGMENTS)
    write(client, 0)
    look(broker, times=2)
    write_keys(client, "compacted", 5)

    async def close(node: Node) -> None:
        """Without a turn for the cleaner's own look."""
        for _ in range(3):
            await node._idle_logs.close_some()

    broker.call(close)
    assert "compacted-0" in opened(broker)
    clean(broker)
    until_closed(broker, client, "compacted-0")


def test_a_closed_log_that_is_to_be_cleaned_by_a_new_config_is(broker: Broker, client: RawClient) -> None:
    broker.create_topic("compacted", config={**SMALL_SEGMENTS, "min.cleanable.dirty.ratio": "1"})
    write_keys(client, "compacted", 5)
    until_closed(broker, client, "compacted-0")
    setting = AlterableConfig(name="min.cleanable.dirty.ratio", value="0")
    resource = AlterConfigsResource(resource_type=2, resource_name="compacted", configs=[setting])
    client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
    clean(broker)
    assert "compacted-0" in opened(broker)
    assert broker.call(lambda node: cleaned_offset(node, "compacted")) == 4


def test_logs_that_are_open_since_they_were_recovered_are_closed(broker: Broker, client: RawClient) -> None:
    write(client, *range(PARTITIONS))
    broker.kill()
    broker.start()
    assert opened(broker) == names(*range(PARTITIONS))
    look(broker, times=2)
    assert len(opened(broker)) == 1
    with RawClient(broker) as again:
        assert ends(again) == [1] * PARTITIONS


def test_after_a_kill_the_logs_that_were_closed_are_not_recovered(broker: Broker, client: RawClient) -> None:
    write(client, *range(PARTITIONS))
    look(broker, times=2)
    write(client, 2)
    broker.kill()
    found: list[int] = []

    def count(directories: DataDirectories) -> None:
        found.extend(each.unrecovered_count for each in directories.online)

    recover = DataDirectories.recover

    async def counting(self: DataDirectories) -> list[Any]:
        count(self)
        return await recover(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataDirectories, "recover", counting)
        broker.start()
    assert found == [2]  # One that stayed open, and one that was opened again.
    with RawClient(broker) as again:
        assert ends(again) == [1, 1, 2, 1, 1, 1]
        assert [bool(again.fetch(TOPIC, 0, partition=index).records) for index in range(PARTITIONS)] == [
            True
        ] * PARTITIONS


def test_a_log_that_is_written_while_it_is_saved_stays_open(
    broker: Broker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(client, 0, 1)  # Of which the first is closed.
    look(broker)
    is_saving, is_written = threading.Event(), threading.Event()
    run = SyncTask.run

    def wait_and_run(self: SyncTask) -> None:
        is_saving.set()
        assert is_written.wait(30)
        run(self)

    monkeypatch.setattr(SyncTask, "run", wait_and_run)

    async def begin(node: Node) -> asyncio.Task[None]:
        return asyncio.create_task(node._idle_logs.close_some())

    async def end(task: asyncio.Task[None]) -> None:
        await task

    closing = broker.call(begin)
    assert is_saving.wait(30)
    write(client, 0)
    is_written.set()
    broker.call(lambda node: end(closing))
    assert names(0) <= opened(broker)
    monkeypatch.undo()
    broker.restart()
    with RawClient(broker) as again:
        assert ends(again)[:2] == [2, 1]
        write(again, 0)
