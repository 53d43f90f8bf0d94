"""Consumers that read from followers (KIP-392): whom a leader sends there, and what a follower tells them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.network import Address
from riverlog.replication.append_outcomes import AppendedRecords
from riverlog.replication.following import follower_log
from riverlog.replication.following.batches import check_batches
from riverlog.replication.partition import Partition
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tests.broker.replica_client import LISTENER, FetchingFollower, Leader, at
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import (
    BROKER_EPOCH,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    TOPIC,
    TOPIC_ID,
    image_of,
    partition_image,
    records,
)
from tests.virtual_time import elapse, run_virtually

EPOCH = LeaderEpoch(5)
NONE = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
RACKS: Mapping[NodeId, str] = {ME: "here", SECOND: "there", THIRD: "there"}


def racked(image: ClusterImage, racks: Mapping[NodeId, str] = RACKS) -> ClusterImage:
    """With an address and a rack for each broker."""
    brokers = {
        each: BrokerImage(each, {LISTENER: Address("127.0.0.1", each)}, rack, BROKER_EPOCH)
        for each, rack in racks.items()
    }
    return replace(image, brokers=brokers)


class Scene:
    def __init__(self, image: PartitionImage | None = None) -> None:
        self.cluster = Cluster()
        self.broker = Leader(self.cluster)
        self.show(partition_image() if image is None else image)
        found = self.cluster.replicas.find(TOPIC, 0)
        assert isinstance(found, Partition)
        self.partition = found

    def show(self, image: PartitionImage, racks: Mapping[NodeId, str] = RACKS) -> None:
        self.cluster.show(racked(image_of(image), racks))

    def begin(
        self,
        offset: int,
        *,
        rack: str = "there",
        version: int = 18,
        max_wait_ms: int = 0,
        epoch: int = -1,
        isolation_level: int = 0,
        replica_id: int = -1,
    ) -> "asyncio.Future[FetchResponse]":
        wanted = FetchPartition(
            partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=2**20
        )
        by_id = version >= 13
        topic = FetchTopic(
            topic="" if by_id else TOPIC, topic_id=TOPIC_ID if by_id else None, partitions=[wanted]
        )
        request = FetchRequest(
            replica_id=replica_id,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=2**20,
            isolation_level=isolation_level,
            session_epoch=-1,
            topics=[topic],
            rack_id=rack if version >= 11 else "",
        )
        return self.broker.ask(request, version)

    async def fetch(self, offset: int, **options: object) -> PartitionData:
        [data] = of(await self.begin(offset, **options))  # type: ignore[arg-type]
        return data

    def append(self) -> None:
        written = self.partition.append(records(), NOW_MS, for_all_replicas=False)
        assert isinstance(written, AppendedRecords)

    def copy(self, *values: bytes) -> None:
        """As from the leader that is followed, one batch for each value."""
        for value in values:
            end = self.partition.log.log_end_offset
            data = records(value)
            data[:8] = end.to_bytes(8, "big")
            data[12:16] = EPOCH.to_bytes(4, "big")
            accepted, bad = check_batches(data, end_offset=end, leader_epoch=EPOCH)
            assert accepted is not None, bad
            stored = follower_log.append_replicated(self.partition, accepted, EPOCH)
            assert isinstance(stored, AppendedRecords)

    def commit(self, watermark: int) -> None:
        follower_log.follow_watermark(self.partition, watermark, EPOCH)

    def stored(self, offset: int, end_offset: int) -> bytes:
        found = self.partition.log.read(offset, max_bytes=2**20, end_offset=end_offset)
        assert not isinstance(found, OffsetOutOfRange)
        assert found.records is not None
        file, position, length = found.records
        return bytes(file.pread(length, position))


def of(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code == NONE
    return [data for topic in response.responses for data in topic.partitions]


def on_stage(scenario: Callable[[Scene], Awaitable[None]], image: PartitionImage | None = None) -> None:
    async def main() -> None:
        await scenario(Scene(image))

    run_virtually(main)


FOLLOWING = partition_image(leader=SECOND, epoch=EPOCH)


def test_a_leader_sends_a_consumer_to_the_follower_of_its_rack_that_has_come_furthest() -> None:
    async def scenario(scene: Scene) -> None:
        second, third = FetchingFollower(scene.broker), FetchingFollower(scene.broker, THIRD)
        assert (await scene.fetch(0)).preferred_read_replica == -1, "nobody has told how far it is"
        scene.append()
        scene.append()
        await second.fetch(at(0))
        await third.fetch(at(0))
        await second.fetch(at(2, last_epoch=EPOCH), max_wait_ms=0)
        data = await scene.fetch(0)
        assert (data.preferred_read_replica, data.error_code, data.records) == (SECOND, NONE, b"")
        assert (data.high_watermark, data.log_start_offset) == (0, 0)
        assert (await scene.fetch(1)).preferred_read_replica == SECOND
        await third.fetch(at(2, last_epoch=EPOCH), max_wait_ms=0)
        assert (await scene.fetch(2)).preferred_read_replica == THIRD, "as Apache Kafka: the higher number"
        for version in (11, 12, 13, 17):
            assert (await scene.fetch(0, version=version)).preferred_read_replica == THIRD

    on_stage(scenario)


def test_a_leader_serves_those_itself_who_are_in_its_rack_in_no_rack_or_know_of_none() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        for node_id in (SECOND, THIRD):
            follower = FetchingFollower(scene.broker, node_id)
            await follower.fetch(at(0))
            await follower.fetch(at(1, last_epoch=EPOCH), max_wait_ms=0)
        for told in (
            await scene.fetch(0, rack="here"),
            await scene.fetch(0, rack="nowhere"),
            await scene.fetch(0, rack=""),
            await scene.fetch(0, version=10),
        ):
            assert (told.preferred_read_replica, bool(told.records)) == (-1, True)
        assert (await scene.fetch(0)).preferred_read_replica == THIRD
        scene.show(partition_image(), {ME: "there", SECOND: "there", THIRD: "there"})
        told = await scene.fetch(0)
        assert (told.preferred_read_replica, bool(told.records)) == (-1, True), "it is in that rack as well"
        scene.show(partition_image())
        assert (await scene.fetch(7)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE, "no replica has that"

    on_stage(scenario)


def test_nobody_is_sent_to_a_replica_that_is_gone_leaving_silent_or_out_of_sync() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        second = FetchingFollower(scene.broker)
        await second.fetch(at(0))
        await second.fetch(at(1, last_epoch=EPOCH), max_wait_ms=0)
        assert (await scene.fetch(0)).preferred_read_replica == SECOND
        await elapse(5)
        assert (await scene.fetch(0)).preferred_read_replica == -1, "it was not heard of for five seconds"
        await second.fetch(max_wait_ms=0)
        assert (await scene.fetch(0)).preferred_read_replica == SECOND

        image = image_of(partition_image())
        there = BrokerImage(SECOND, {LISTENER: Address("127.0.0.1", 2)}, "there", BROKER_EPOCH)
        for broker in (
            there._replace(is_shutting_down=True),
            there._replace(endpoints={}),
            there._replace(offline=frozenset({(TOPIC_ID, 0)})),
        ):
            scene.cluster.show(replace(racked(image), brokers={**racked(image).brokers, SECOND: broker}))
            assert (await scene.fetch(0)).preferred_read_replica == -1
        scene.show(partition_image())
        assert (await scene.fetch(0)).preferred_read_replica == SECOND
        scene.show(partition_image(isr=(ME, THIRD)))
        assert (await scene.fetch(0)).preferred_read_replica == -1
        scene.show(partition_image())
        assert (await scene.fetch(0)).preferred_read_replica == SECOND
        scene.show(partition_image(), {ME: "here", THIRD: "there"})
        assert (await scene.fetch(0)).preferred_read_replica == -1

    on_stage(scenario)


def test_a_new_leader_sends_nobody_away_before_its_followers_have_asked_it() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        second = FetchingFollower(scene.broker)
        await second.fetch(at(0))
        await second.fetch(at(1, last_epoch=EPOCH), max_wait_ms=0)
        assert (await scene.fetch(0)).preferred_read_replica == SECOND
        scene.show(partition_image(epoch=6))
        assert (await scene.fetch(0)).preferred_read_replica == -1

    on_stage(scenario)


def test_who_would_wait_at_a_leader_is_sent_away_at_once_and_in_a_session_each_time() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        scene.append()
        second = FetchingFollower(scene.broker)
        await second.fetch(at(0))
        await second.fetch(at(1, last_epoch=EPOCH), max_wait_ms=0)
        topic = FetchTopic(
            topic_id=TOPIC_ID,
            partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)],
        )
        first = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=2**20, topics=[topic], rack_id="there", session_epoch=0
        )
        began_s = loop.time()
        opened = await scene.broker.ask(first, 18)
        assert [data.preferred_read_replica for data in of(opened)] == [SECOND]
        again = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=2**20,
            rack_id="there",
            session_id=opened.session_id,
            session_epoch=1,
        )
        told = of(await scene.broker.ask(again, 18))
        assert [data.preferred_read_replica for data in told] == [SECOND]
        assert loop.time() == began_s

    on_stage(scenario)


def test_a_follower_serves_consumers_up_to_its_own_watermark() -> None:
    async def scenario(scene: Scene) -> None:
        scene.copy(b"a", b"b", b"c")
        scene.commit(2)
        for version in (11, 12, 13, 18):
            data = await scene.fetch(0, version=version)
            assert (data.error_code, data.high_watermark, data.last_stable_offset) == (NONE, 2, 2)
            assert data.records == scene.stored(0, 2)
            assert data.preferred_read_replica == -1
        assert (await scene.fetch(0, rack="")).records == scene.stored(0, 2), "with or without a rack"
        read_bytes = scene.broker.metrics.value("riverlog_follower_read_bytes_total")
        assert read_bytes == 5 * len(scene.stored(0, 2))
        scene.commit(9)
        data = await scene.fetch(0)
        assert (data.high_watermark, data.records) == (3, scene.stored(0, 3)), "what it has, and no more"

    on_stage(scenario, FOLLOWING)


def test_a_follower_refuses_who_asks_before_version_11_or_for_what_is_not_there() -> None:
    async def scenario(scene: Scene) -> None:
        scene.copy(b"a", b"b", b"c")
        scene.commit(2)
        assert (await scene.fetch(0, version=10)).error_code == NOT_LEADER
        assert (await scene.fetch(0, version=12, replica_id=3)).error_code == NOT_LEADER
        assert (await scene.fetch(4)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await scene.fetch(0, epoch=EPOCH)).error_code == NONE
        assert (await scene.fetch(0, epoch=EPOCH - 1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await scene.fetch(0, epoch=EPOCH + 1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        scene.show(partition_image(replicas=(SECOND, THIRD), isr=(SECOND, THIRD), leader=SECOND))
        assert (await scene.fetch(0)).error_code == NOT_LEADER, "it is no replica any more"

    on_stage(scenario, FOLLOWING)


def test_a_follower_of_nobody_serves_nobody() -> None:
    async def scenario(scene: Scene) -> None:
        scene.copy(b"a")
        scene.commit(1)
        scene.cluster.show(racked(image_of(FOLLOWING._replace(leader=None, leader_epoch=LeaderEpoch(6)))))
        assert (await scene.fetch(0)).error_code == NOT_LEADER

    on_stage(scenario, FOLLOWING)


def test_between_watermark_and_end_a_follower_waits_and_then_says_that_it_does_not_know() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        scene.copy(b"a", b"b", b"c")
        scene.commit(1)
        data = await scene.fetch(2)
        assert (data.error_code, data.high_watermark) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert (await scene.fetch(1)).error_code == NONE, "there the watermark is"
        began_s = loop.time()
        assert (await scene.fetch(2, max_wait_ms=500)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert loop.time() - began_s == pytest.approx(0.5)
        waiting = scene.begin(2, max_wait_ms=500)
        await elapse(0.1)
        scene.commit(3)
        [data] = of(await waiting)
        assert (data.error_code, data.records) == (NONE, scene.stored(2, 3))

    on_stage(scenario, FOLLOWING)


@pytest.mark.parametrize("begins", ["new", "as a leader", "truncated", "under another epoch"])
def test_a_wait_at_a_follower_ends_when_its_watermark_moves(begins: str) -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        match begins:
            case "new":
                scene.copy(b"a", b"b")
            case "as a leader":
                scene.show(partition_image(epoch=EPOCH - 1))
                scene.append()
                scene.append()
                scene.show(FOLLOWING)
            case "truncated":
                scene.show(FOLLOWING)
                scene.copy(b"a", b"b", b"c")
                assert follower_log.truncate(scene.partition, 2, EPOCH)
            case "under another epoch":
                scene.show(partition_image(leader=SECOND, epoch=EPOCH - 1))
                scene.show(FOLLOWING)
                scene.copy(b"a", b"b")
                scene.show(partition_image(leader=THIRD, epoch=EPOCH + 1))
                scene.show(partition_image(leader=SECOND, epoch=EPOCH + 2))
        waiting = scene.begin(0, max_wait_ms=500)
        await elapse(0.1)
        assert not waiting.done()
        began_s = loop.time()
        follower_log.follow_watermark(scene.partition, 2, scene.partition.leader_epoch)
        [data] = of(await waiting)
        assert data.records == scene.stored(0, 2)
        assert loop.time() == began_s, "it was woken, and did not wait for its time to end"

    on_stage(scenario, partition_image(leader=SECOND, epoch=EPOCH - 2) if begins != "new" else FOLLOWING)


def test_a_leader_gives_nobody_what_is_not_committed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        for node_id in (SECOND, THIRD):
            follower = FetchingFollower(scene.broker, node_id)
            await follower.fetch(at(0))
            await follower.fetch(at(1, last_epoch=EPOCH), max_wait_ms=0)
        scene.append()
        for version in (4, 10, 11, 12, 13, 18):
            for isolation_level in (0, 1):
                data = await scene.fetch(0, version=version, rack="", isolation_level=isolation_level)
                assert (data.high_watermark, data.last_stable_offset) == (1, 1)
                assert data.records == scene.stored(0, 1)
                beyond = await scene.fetch(1, version=version, rack="", isolation_level=isolation_level)
                assert (beyond.error_code, beyond.records) == (NONE, b"")

    on_stage(scenario)
