"""Long questions while logs are opened, closed, deleted and written, and the broker is stopped or killed.

Each question is sent, then something happens, and then the answer is read: whatever it tells of a partition
was true in between.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.node import Node
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.metadata import MetadataRequest
from tests.broker.raw_client import ConnectionClosedError, RawClient, one_record

PARTITIONS = 150
TOPICS = ("kept", "passing")
LATEST, EARLIEST = -1, -2
OPEN_MAX = 3
Place = tuple[str, int]


class Model:
    """Where each partition begins and ends; a topic that is not there has none."""

    def __init__(self, data_dir: Path, seed: int) -> None:
        self.random = Random(seed)
        self.data_dir = data_dir
        self.broker = Broker(data_dir=str(data_dir), riverlog_open_logs_max=OPEN_MAX).start()
        self.clients = contextlib.ExitStack()
        self.bounds: dict[Place, tuple[int, int]] = {}
        self.written: list[Place] = []
        self.connect()
        for topic in TOPICS:
            self.create(topic)

    def connect(self) -> None:
        self.writer = self.clients.enter_context(RawClient(self.broker, timeout_s=60))
        self.asker = self.clients.enter_context(RawClient(self.broker, timeout_s=60))

    def create(self, topic: str) -> None:
        self.writer.create_topic(topic, partitions=PARTITIONS)
        self.bounds.update({(topic, index): (0, 0) for index in range(PARTITIONS)})

    def act(self) -> None:
        """What happens while a question is under way."""
        match self.random.randrange(13):
            case 0 | 1 | 2 | 3 | 4:
                self.write()
            case 5:
                self.cut()
            case 6:
                self.change_topics()
            case 7:
                self.broker.restart()
                self.connect()
            case 8:
                self.kill()
            case 9:
                pass
            case _:
                self.close_idle()

    def close_idle(self) -> None:
        """Logs that nobody has used since the question was sent, or a moment before."""

        async def look(node: Node) -> None:
            await node._idle_logs.close_some()
            await node._idle_logs.close_some()

        self.broker.call(look)

    def kill(self) -> None:
        """That records were deleted is known for sure after the next checkpoint, as in Apache Kafka."""
        self.broker.kill()
        self.broker.start()
        self.connect()
        for (topic, index), (start, end) in self.bounds.items():
            if start:
                partition = ListOffsetsPartition(partition_index=index, timestamp=EARLIEST)
                request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
                told = self.asker.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0].offset
                assert 0 <= told <= start
                self.bounds[topic, index] = (told, end)

    def write(self) -> None:
        topic, index = place = self.random.choice(self.written or [("kept", 0)])
        if self.random.random() < 0.5 or place not in self.bounds:
            topic, index = place = "kept", self.random.randrange(PARTITIONS)
        reply = self.writer.produce(topic, one_record(b"x"), partition=index)
        start, end = self.bounds[place]
        assert (reply.error_code, reply.base_offset) == (ErrorCode.NONE, end)
        self.bounds[place] = (start, end + 1)
        self.written.append(place)

    def cut(self) -> None:
        places = [place for place in self.written if place in self.bounds]
        if places:
            topic, index = place = self.random.choice(places)
            end = self.bounds[place][1]
            partition = DeleteRecordsPartition(partition_index=index, offset=-1)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=9_000
            )
            self.writer.ask(ApiKey.DELETE_RECORDS, 2, request)
            self.bounds[place] = (end, end)

    def change_topics(self) -> None:
        if ("passing", 0) in self.bounds:
            self.writer.produce("passing", one_record(b"x"), partition=self.random.randrange(PARTITIONS))
            self.writer.delete_topic("passing")
            for index in range(PARTITIONS):
                del self.bounds["passing", index]
        else:
            self.create("passing")

    def ask(self) -> None:
        timestamp, which = self.random.choice([(LATEST, 1), (EARLIEST, 0)])
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=i, timestamp=timestamp) for i in range(PARTITIONS)
                ],
            )
            for topic in TOPICS
        ]
        before, asker = dict(self.bounds), self.asker
        asker.send(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=topics))
        self.act()
        with contextlib.suppress(ConnectionClosedError, ConnectionError):
            answer = asker.receive(ApiKey.LIST_OFFSETS, 7)
            self.check(answer, before, lambda bounds: bounds[which])
        self.check_at_rest(topics, which)

    def check(
        self,
        answer: Any,
        before: dict[Place, tuple[int, int]],
        told: Callable[[tuple[int, int]], int],
    ) -> None:
        for topic in answer.topics:
            assert len(topic.partitions) == PARTITIONS
            for each in topic.partitions:
                place = topic.name, each.partition_index
                states = [state[place] for state in (before, self.bounds) if place in state]
                if each.error_code:
                    assert len(states) < 2, (place, each)
                    assert each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    low, high = min(map(told, states)), max(map(told, states))
                    # A topic that went was written to before that.
                    assert low <= each.offset <= high + (len(states) < 2), (place, each, states)

    def check_at_rest(self, topics: list[ListOffsetsTopic], which: int) -> None:
        answer = self.asker.ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=topics))
        self.check(answer, self.bounds, lambda bounds: bounds[which])
        described = self.asker.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None)).topics
        found = {topic.name: len(topic.partitions) for topic in described}
        assert found == {topic: PARTITIONS for topic, _ in self.bounds}
        sizes = self.asker.ask(ApiKey.DESCRIBE_LOG_DIRS, 3, DescribeLogDirsRequest(topics=None)).results[0]
        told = {
            (t.name, each.partition_index): each.partition_size for t in sizes.topics for each in t.partitions
        }
        assert told == {place: self.size_on_disk(*place) for place in self.bounds}

    def size_on_disk(self, topic: str, index: int) -> int:
        return sum(each.stat().st_size for each in self.data_dir.glob(f"{topic}-{index}/*.log"))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_was_true_while_it_was_asked(tmp_path: Path, seed: int) -> None:
    model = Model(tmp_path, seed)
    try:
        for _ in range(40):
            model.ask()
        model.close_idle()
        assert model.broker.node.open_logs <= OPEN_MAX, "questions leave no log open"
    finally:
        model.clients.close()
        model.broker.stop()
