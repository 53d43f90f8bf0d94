"""What a leader answers its followers: who is one, what it reads, what moves the watermark, what it costs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicId
from riverlog.replication.append_outcomes import AppendedRecords
from riverlog.replication.partition import Partition
from riverlog.storage.log.appends import OffsetOutOfRange
from tests.broker.replica_client import FetchingFollower, Leader, at
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import (
    BROKER_EPOCH,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    image_of,
    partition_image,
    records,
)
from tests.virtual_time import elapse, run_virtually

EPOCH = 5
NONE = ErrorCode.NONE


class Scene:
    """One partition with three replicas, led here."""

    def __init__(self, partition_count: int = 1) -> None:
        self.cluster = Cluster()
        self.leader = Leader(self.cluster)
        self.cluster.show(image_of(*(partition_image(),) * partition_count))
        self.partition = self.at(0)
        self.second = FetchingFollower(self.leader)
        self.third = FetchingFollower(self.leader, THIRD)

    def at(self, index: int) -> Partition:
        found = self.cluster.replicas.find("orders", index)
        assert isinstance(found, Partition)
        return found

    def append(self, index: int = 0, value: bytes = b"value") -> None:
        written = self.at(index).append(records(value), NOW_MS, for_all_replicas=False)
        assert isinstance(written, AppendedRecords)

    def stored(self, offset: int, end_offset: int) -> bytes:
        found = self.partition.log.read(offset, max_bytes=2**20, end_offset=end_offset)
        assert not isinstance(found, OffsetOutOfRange)
        assert found.records is not None
        file, position, length = found.records
        return bytes(file.pread(length, position))

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark


def on_stage(scenario: Callable[[Scene], Awaitable[None]], partition_count: int = 1) -> None:
    async def main() -> None:
        await scenario(Scene(partition_count))

    run_virtually(main)


def test_followers_read_what_is_not_committed_and_commit_it_by_asking_for_more() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        for follower in (scene.second, scene.third):
            [data] = await follower.fetch(at(0))
            assert (data.error_code, data.high_watermark, data.log_start_offset) == (NONE, 0, 0)
            assert data.records == scene.stored(0, 1)
        assert scene.high_watermark == 0
        waiting = scene.second.begin(at(1, last_epoch=EPOCH))
        assert scene.high_watermark == 0, "one follower has not said that it has them"
        [data] = await scene.third.fetch(at(1, last_epoch=EPOCH))
        assert (scene.high_watermark, data.high_watermark, data.records) == (1, 1, b"")
        [data] = scene.second.take(await waiting)
        assert (data.high_watermark, data.records) == (1, b""), "told although no records came"

    on_stage(scenario)


def test_an_append_wakes_the_followers_at_once_and_an_idle_fetch_ends_with_its_time() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        await scene.second.fetch(at(0))
        began_s = loop.time()
        assert await scene.second.fetch() == []
        assert loop.time() - began_s == pytest.approx(0.5)
        waiting = scene.second.begin()
        scene.append()
        began_s = loop.time()
        [data] = scene.second.take(await waiting)
        assert data.records
        assert loop.time() == began_s

    on_stage(scenario)


def test_a_watermark_waits_a_moment_for_records_to_go_with() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        scene.append()
        for follower in (scene.second, scene.third):
            await follower.fetch(at(0))
        second = scene.second.begin(at(1))
        third = scene.third.begin(at(1))
        assert scene.high_watermark == 1
        await elapse(0.005)
        assert not second.done()
        scene.append()
        [data] = scene.second.take(await second)
        assert (data.high_watermark, bool(data.records)) == (1, True)
        [data] = scene.third.take(await third)
        assert (data.high_watermark, bool(data.records)) == (1, True)
        assert loop.time() < 0.01

    on_stage(scenario)


@pytest.mark.parametrize(
    ("node_id", "broker_epoch", "listener", "version"),
    [
        (NodeId(9), BROKER_EPOCH, None, 18),
        (SECOND, BROKER_EPOCH - 1, None, 18),
        (SECOND, BROKER_EPOCH, "CLIENTS", 18),
        (SECOND, -1, None, 18),
    ],
)
def test_strangers_are_refused_and_move_nothing(
    node_id: NodeId, broker_epoch: int, listener: str | None, version: int
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        await scene.third.fetch(at(1))
        options = {} if listener is None else {"listener": listener}
        stranger = FetchingFollower(scene.leader, node_id, broker_epoch, version=version, **options)
        [data] = await stranger.fetch(at(1), max_wait_ms=0)
        assert (data.error_code, data.records) == (ErrorCode.UNKNOWN_LEADER_EPOCH, b"")
        assert scene.high_watermark == 0

    on_stage(scenario)


def test_a_broker_that_is_no_replica_of_the_partition_is_refused() -> None:
    async def scenario(scene: Scene) -> None:
        scene.cluster.show(image_of(partition_image(replicas=(ME, THIRD), isr=(ME, THIRD))))
        scene.append()
        [data] = await scene.second.fetch(at(0))
        assert (data.error_code, data.records) == (ErrorCode.UNKNOWN_LEADER_EPOCH, b"")

    on_stage(scenario)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_fetch_under_another_leader_epoch_moves_nothing(epoch: int, error: ErrorCode) -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        await scene.third.fetch(at(1))
        [data] = await scene.second.fetch(at(1, epoch=epoch))
        assert (data.error_code, data.records, scene.high_watermark) == (error, b"", 0)
        [data] = await scene.second.fetch(at(1))
        assert (data.error_code, scene.high_watermark) == (NONE, 1)

    on_stage(scenario)


def test_a_follower_whose_records_have_parted_is_told_where_and_is_not_counted() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        scene.cluster.show(image_of(partition_image(epoch=7)))
        scene.append()
        await scene.third.fetch(at(2, epoch=7, last_epoch=7))
        [data] = await scene.second.fetch(at(2, epoch=7, last_epoch=6))
        assert (data.error_code, data.records) == (NONE, b"")
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (5, 1)
        assert scene.high_watermark == 0
        [data] = await scene.second.fetch(at(1, epoch=7, last_epoch=5))
        assert data.diverging_epoch.end_offset == -1
        assert data.records
        await scene.second.fetch(at(2, epoch=7, last_epoch=7))
        assert scene.high_watermark == 2

    on_stage(scenario)


def test_what_is_told_of_a_parted_log_is_told_once_however_much_is_appended() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        scene.cluster.show(image_of(partition_image(epoch=7)))
        await scene.second.fetch(at(3, epoch=7, last_epoch=6))
        waiting = scene.second.begin()
        scene.append()
        assert scene.second.take(await waiting) == []

    on_stage(scenario)


@pytest.mark.parametrize("offset", [0, 3])
def test_a_fetch_out_of_range_moves_nothing(offset: int) -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        scene.append()
        for follower in (scene.second, scene.third):
            await follower.fetch(at(1))
        scene.partition.log.cutting.delete_records(1)
        scene.append()
        await scene.third.fetch(at(3))
        [data] = await scene.second.fetch(at(offset if offset == 0 else 4))
        assert (data.error_code, scene.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, 1)

    on_stage(scenario)


def test_a_moved_log_start_is_told_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        scene.append()
        for follower in (scene.second, scene.third):
            await follower.fetch(at(1))
        await scene.second.fetch(max_wait_ms=20)
        waiting, began_s = scene.second.begin(), loop.time()
        scene.partition.log.cutting.delete_records(1)
        [data] = scene.second.take(await waiting)
        assert (data.log_start_offset, data.records) == (1, b"")
        assert loop.time() == began_s

    on_stage(scenario)


def test_a_new_epoch_ends_the_wait_of_those_who_fetch_under_the_old_one() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(at(0))
        waiting = scene.second.begin()
        scene.cluster.show(image_of(partition_image(epoch=6)))
        [data] = scene.second.take(await waiting)
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        await scene.second.fetch(at(0, epoch=6))
        waiting = scene.second.begin()
        scene.cluster.show(image_of(partition_image(epoch=7, leader=THIRD)))
        [data] = scene.second.take(await waiting)
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH

    on_stage(scenario)


def test_a_leader_that_hears_late_of_its_epoch_answers_when_it_has() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        [data] = await scene.second.fetch(at(0, epoch=6))
        assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        waiting = scene.second.begin()
        scene.cluster.show(image_of(partition_image(epoch=6)))
        [data] = scene.second.take(await waiting)
        assert (data.error_code, bool(data.records)) == (NONE, True)

    on_stage(scenario)


def test_a_topic_made_anew_under_its_name_is_not_read_under_the_old_id() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(at(0))
        waiting = scene.second.begin()
        scene.cluster.show(image_of())
        [data] = scene.second.take(await waiting)
        assert data.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
        scene.cluster.show(image_of(partition_image(), topic_id=TopicId(UUID(int=8))))
        scene.append()
        [data] = await scene.second.fetch(at(0))
        assert (data.error_code, data.records) == (ErrorCode.UNKNOWN_TOPIC_ID, b"")

    on_stage(scenario)


def test_records_that_were_sent_and_not_stored_are_sent_again() -> None:
    async def scenario(scene: Scene) -> None:
        scene.append()
        [data] = await scene.second.fetch(at(0))
        assert data.records
        [data] = await scene.second.fetch()
        assert data.records

    on_stage(scenario)


def test_within_the_limit_of_a_reply_all_partitions_get_their_turn() -> None:
    async def scenario(scene: Scene) -> None:
        for index in range(3):
            scene.append(index, b"v" * 500)
        first = await scene.second.fetch(*(at(0, index=index) for index in range(3)), max_bytes=600)
        assert len(first) == 3, "the first reply of a session names all"
        got = [data.partition_index for data in first if data.records]
        while len(got) < 3:
            got += [
                data.partition_index
                for data in await scene.second.fetch(at(1, index=got[-1]), max_bytes=600)
                if data.records
            ]
        assert got == [0, 1, 2]

    on_stage(scenario, 3)


def test_a_partition_that_was_forgotten_is_told_nothing_of() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(at(0), at(0, index=1))
        waiting = scene.second.begin(forgotten=[0])
        scene.append(0)
        scene.append(1)
        [data] = scene.second.take(await waiting)
        assert data.partition_index == 1
        assert not scene.partition._watchers

    on_stage(scenario, 2)


def test_a_follower_has_one_session_which_ends_with_its_registration() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(at(0))
        waiting = scene.second.begin()
        again = FetchingFollower(scene.leader)
        await again.fetch(at(0))
        assert len(scene.leader.sessions) == 1
        assert (await waiting).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert (await scene.second.begin()).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        image = image_of(partition_image())
        brokers = {each: broker for each, broker in image.brokers.items() if each != SECOND}
        scene.cluster.show(replace(image, brokers=brokers))
        assert len(scene.leader.sessions) == 0
        assert not scene.partition._watchers

    on_stage(scenario)


def test_a_session_under_the_wrong_number_is_refused() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(at(0))
        scene.second.session_epoch += 1
        assert (await scene.second.begin()).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    on_stage(scenario)


def test_a_fetch_reads_the_partitions_that_changed_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.second.fetch(*(at(0, index=index) for index in range(50)))
        looked: list[int] = []
        refusal = Partition.refusal

        def note(partition: Partition, *arguments: int) -> ErrorCode | None:
            looked.append(partition.topic_partition.partition)
            return refusal(partition, *arguments)

        monkeypatch.setattr(Partition, "refusal", note)
        waiting = scene.second.begin()
        assert looked == []
        scene.append(17)
        await waiting
        assert set(looked) == {17}

    on_stage(scenario, 50)


def test_an_idle_follower_counts_as_caught_up_until_records_come() -> None:
    async def scenario(scene: Scene) -> None:
        loop = asyncio.get_running_loop()
        await scene.second.fetch(at(0))
        for _ in range(100):
            await scene.second.fetch()
        waiting = scene.second.begin()
        asked_s = loop.time()
        assert asked_s > 40
        scene.append()
        scene.append()
        state = scene.partition.led.followers.get(SECOND)
        assert state is not None
        assert state.caught_up_s == asked_s
        await waiting

    on_stage(scenario)
