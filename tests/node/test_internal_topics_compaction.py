"""The cleaner runs over the coordinators' own topics; a restart finds the same state in what it leaves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker.raw_client import RawClient
from tests.node.log_files import bytes_of_logs
from tests.waiting import eventually

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 1_048_576,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.segment.bytes": 1_048_576,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
}
GROUPS = 5
COMMITS = 300
NOTE = "x" * 3500
PRODUCERS = [f"{number}-" + "x" * 3000 for number in range(20)]
TAKEOVERS = 60


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(SETTINGS, data_dir=str(tmp_path / "data")) as running:
        running.create_topic("input", 3)
        yield running


def commit_often(broker: Broker, first: int) -> None:
    for number in range(GROUPS):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"group-{number}"})
        for offset in range(first, first + COMMITS):
            place = TopicPartition("input", offset % 3, offset, metadata=f"{number} at {offset} " + NOTE)
            consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()


def committed(broker: Broker) -> dict[tuple[str, int], tuple[int, str | None]]:
    found: dict[tuple[str, int], tuple[int, str | None]] = {}
    for number in range(GROUPS):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"group-{number}"})
        for each in consumer.committed([TopicPartition("input", index) for index in range(3)], timeout=10):
            assert each.error is None
            found[f"group-{number}", each.partition] = (each.offset, each.metadata)
        consumer.close()
    return found


def log_bytes(broker: Broker, partition: str) -> int:
    return bytes_of_logs(Path(broker.data_dir) / partition)


def test_committed_offsets_survive_compaction_and_a_kill(broker: Broker) -> None:
    commit_often(broker, 0)
    assert GROUPS * COMMITS * len(NOTE) > 5_000_000, "was written"
    eventually(lambda: log_bytes(broker, "__consumer_offsets-0") < 2_000_000, "nothing was cleaned")
    before = committed(broker)
    assert before["group-0", 2] == (COMMITS - 1, f"0 at {COMMITS - 1} " + NOTE)
    broker.kill()
    broker.start()
    assert committed(broker) == before
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_consumer_groups(["group-1"])["group-1"].result(10)
    commit_often(broker, COMMITS)
    eventually(lambda: log_bytes(broker, "__consumer_offsets-0") < 2_000_000, "nothing was cleaned")
    before = committed(broker)
    broker.restart()
    assert committed(broker) == before
    assert {offset for offset, _ in before.values()} == set(range(2 * COMMITS - 3, 2 * COMMITS))


def transactions(client: RawClient) -> list[tuple[str, int, int, str]]:
    request = DescribeTransactionsRequest(transactional_ids=PRODUCERS)
    reply = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
    return [
        (each.transactional_id, each.producer_id, each.producer_epoch, each.transaction_state)
        for each in reply.transaction_states
    ]


def test_transactional_ids_survive_compaction_and_a_kill(broker: Broker) -> None:
    first = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": PRODUCERS[0]})
    first.init_transactions(10)
    with RawClient(broker) as client:
        for _ in range(TAKEOVERS):
            for name in PRODUCERS:
                taken = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000)
                assert client.ask(ApiKey.INIT_PRODUCER_ID, 5, taken).error_code == 0
        assert TAKEOVERS * len("".join(PRODUCERS)) > 3_000_000, "was written"
        eventually(lambda: log_bytes(broker, "__transaction_state-0") < 1_500_000, "nothing was cleaned")
        before = transactions(client)
    broker.kill()
    broker.start()
    with RawClient(broker) as client:
        eventually(lambda: all(state for *_, state in transactions(client)), "the coordinator has not loaded")
        assert transactions(client) == before
    assert [epoch for _, _, epoch, _ in before] == [TAKEOVERS, *[TAKEOVERS - 1] * (len(PRODUCERS) - 1)]
