"""What an answer of a leader does to a follower's log, and when it does nothing."""

import asyncio
from concurrent.futures import Executor
from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.metrics import Metrics
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.records.batch import patch
from riverlog.records.builder import ControlType, build_batch, build_control_batch
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.following.copies import Copies, Outcome
from riverlog.replication.following.followed import Followed, Position
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.storage.log.log import Log
from riverlog.wire.messages.fetch import PartitionData
from tests.coordinator.hosting import NODE, Cluster, HeldExecutor, Logs
from tests.replication.replicated import SECOND, TOPIC, TOPIC_ID, image_of, opened, partition_image
from tests.storage.cleaning.compaction import COMPACT, clean, close_segment
from tests.storage.logs import ManualClock, open_log, read_all, values
from tests.virtual_time import run_virtually

EPOCH = LeaderEpoch(5)


class Following:
    """One partition that follows broker 2, as a fetcher would have it."""

    def __init__(
        self, logs: Logs | None = None, executor: Executor | None = None, *, is_alone: bool = True
    ) -> None:
        self.cluster = Cluster(logs, executor, is_alone=is_alone)
        self.partition: Partition = opened(self.cluster, partition_image(leader=SECOND, epoch=EPOCH))
        self.metrics = InMemoryMetrics()
        metrics: Metrics = self.metrics
        self.copies = Copies(self.cluster.replicas, metrics)
        self.followed = Followed(TOPIC, TOPIC_ID, 0, EPOCH)
        self.look()

    @property
    def log(self) -> Log:
        return self.partition.log

    def look(self) -> "Position | asyncio.Future[None] | Outcome":
        position = self.copies.position_of(self.followed)
        if isinstance(position, Position):
            self.followed.position = position
        return position

    async def settled(self) -> Position:
        """Where its log ends, once what was truncated is known to be gone."""
        while not isinstance(found := self.look(), Position):
            assert isinstance(found, asyncio.Future)
            await found
        return found

    def store(self, *batches: bytes, watermark: int = 0, log_start: int = 0) -> Outcome:
        data = PartitionData(
            high_watermark=watermark,
            log_start_offset=log_start,
            records=memoryview(bytearray(b"".join(batches))),
        )
        outcome = self.copies.store(self.followed, data, "2")
        self.look()
        return outcome


def batch(base_offset: int, *values: bytes, epoch: int = EPOCH, **producer: int) -> bytes:
    data = bytearray(
        build_batch(
            [(1, None, value, ()) for value in values],
            producer_id=producer.get("producer_id", -1),
            producer_epoch=0 if "producer_id" in producer else -1,
            base_sequence=producer.get("sequence", -1),
            transactional="producer_id" in producer,
        )
    )
    patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(epoch))
    return bytes(data)


def keyed(base_offset: int, value: bytes, *, epoch: int) -> bytes:
    data = bytearray(build_batch([(1, b"key", value, ())]))
    patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(epoch))
    return bytes(data)


def abort(base_offset: int, producer_id: int, epoch: int = EPOCH) -> bytes:
    data = bytearray(
        build_control_batch(
            ControlType.ABORT, timestamp_ms=1, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
        )
    )
    patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(epoch))
    return bytes(data)


def test_batches_are_stored_and_the_watermark_is_the_leaders_as_far_as_they_go() -> None:
    async def run() -> None:
        following = Following()
        assert following.store(batch(0, b"a", b"b", epoch=4), batch(2, b"c"), watermark=9) is Outcome.DONE
        assert (following.log.log_end_offset, following.log.high_watermark) == (3, 3)
        assert following.followed.position == Position(3, EPOCH, 0)
        assert following.store(watermark=1) is Outcome.DONE  # A new leader may know less.
        assert following.log.high_watermark == 3
        assert following.followed.position == Position(3, EPOCH, 0)

    run_virtually(run)


def test_an_answer_that_comes_late_changes_nothing() -> None:
    async def run() -> None:
        following = Following()
        following.store(batch(0, b"a"))
        asked_from_elsewhere = following.followed.position
        assert asked_from_elsewhere is not None
        following.followed.position = asked_from_elsewhere._replace(offset=0)
        data = PartitionData(records=memoryview(bytearray(batch(0, b"x"))))
        assert following.copies.store(following.followed, data, "2") is Outcome.OUT
        following.look()
        following.cluster.show(image_of(partition_image(leader=SECOND, epoch=EPOCH + 1)))
        assert following.store(batch(1, b"late"), watermark=2) is Outcome.OUT
        assert following.copies.truncate(following.followed, EPOCH, 0) is Outcome.OUT
        following.cluster.show(image_of(partition_image(epoch=EPOCH + 2)))
        assert following.store(batch(1, b"late"), watermark=2) is Outcome.OUT
        assert (following.log.log_end_offset, following.log.high_watermark) == (1, 0)

    run_virtually(run)


def test_an_answer_for_a_topic_of_the_same_name_is_not_stored() -> None:
    async def run() -> None:
        following = Following()
        following.followed.key = (TopicId(UUID(int=99)), following.followed.index)
        assert following.store(batch(0, b"x")) is Outcome.OUT
        assert following.log.log_end_offset == 0

    run_virtually(run)


def test_batches_before_a_bad_one_are_stored_and_it_is_counted() -> None:
    async def run() -> None:
        following = Following()
        outcome = following.store(batch(0, b"a"), batch(1, b"b", epoch=EPOCH + 1), watermark=2)
        assert outcome is Outcome.FAILED
        assert (following.log.log_end_offset, following.log.high_watermark) == (1, 1)
        assert following.metrics.value("riverlog_replica_bad_batches_total") == 1

    run_virtually(run)


def test_a_log_that_parts_from_its_leaders_under_the_same_epoch_is_ahead_of_the_metadata() -> None:
    """The leader of an epoch has all of it."""

    async def run() -> None:
        following = Following(is_alone=False)
        following.store(batch(0, b"a", epoch=3), batch(1, b"b", b"c"))
        assert following.copies.truncate(following.followed, EPOCH, 2) is Outcome.OUT
        assert following.log.log_end_offset == 3
        assert list(following.cluster.replicas.ahead) == [following.partition.topic_partition]
        assert following.look() is Outcome.OUT
        following.cluster.show(image_of(partition_image(leader=SECOND, epoch=EPOCH + 1)))
        assert list(following.cluster.replicas.ahead) == []
        following.followed = Followed(TOPIC, TOPIC_ID, 0, LeaderEpoch(EPOCH + 1))
        assert following.look() == Position(3, EPOCH, 0)

    run_virtually(run)


def test_truncation_at_the_end_takes_an_epoch_without_records_back() -> None:
    async def run() -> None:
        following = Following()
        following.store(batch(0, b"a", b"b", epoch=3))
        following.log.state.assign_leader_epoch(LeaderEpoch(4))  # It led, and nothing was written.
        following.look()
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 2) is Outcome.TRUNCATED
        following.look()
        assert following.followed.position == Position(2, LeaderEpoch(3), 0)

    run_virtually(run)


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_what_was_truncated_does_not_come_back_after_a_power_cut_behind_what_is_stored_since(
    seed: int, anew: bool
) -> None:
    async def run() -> list[tuple[int, bytes | None]]:
        logs = Logs(config=replace(LogConfig(), segment_bytes=200))
        following = Following(logs)
        for offset in range(4):
            following.store(batch(offset, b"old-%d" % offset, epoch=3))
        following.log.sync.flush()
        if anew:
            assert following.copies.settle_in(following.followed, 7, 9) is Outcome.TRUNCATED
        else:
            assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.TRUNCATED
        found = await following.settled()
        assert found.offset == (7 if anew else 1)
        following.store(batch(found.offset, b"new"))
        logs.disk.crash(seed)
        return values(open_log(logs.disk, directory=f"/data/{TOPIC}-0"))

    kept = [] if anew else [(0, b"old-0")]
    assert run_virtually(run) in (kept, [*kept, (7 if anew else 1, b"new")])


@pytest.mark.parametrize("others", [(), (SECOND,)])
@pytest.mark.parametrize("seed", range(30))
def test_nor_behind_what_is_written_by_who_is_elected_before_that_is_on_disk(
    seed: int, others: tuple[NodeId, ...]
) -> None:
    async def run() -> list[tuple[int, bytes | None]]:
        logs, executor = Logs(config=replace(LogConfig(), segment_bytes=200)), HeldExecutor()
        following = Following(logs, executor)
        for offset in range(4):
            following.store(batch(offset, b"old-%d" % offset, epoch=3))
        following.log.sync.flush()
        partition, new = following.partition, batch(0, b"new")
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.TRUNCATED
        replicas = (NODE, *others)
        partition.take_role(Leader(LeaderEpoch(EPOCH + 1)), InSyncReplicas(NODE, replicas, replicas))
        for for_all_replicas in (False, True):
            data = memoryview(bytearray(new))
            refused = partition.append(data, 0, for_all_replicas=for_all_replicas)
            assert refused == AppendRefused(ErrorCode.NOT_ENOUGH_REPLICAS)
            assert partition.append_alone(data, 0, for_all_replicas) is None
        if seed % 2:
            await executor.release()
            data = memoryview(bytearray(new))
            if others:
                assert isinstance(partition.append(data, 0, for_all_replicas=True), AppendedRecords)
            else:
                assert partition.append_alone(data, 0, True) == 1
        logs.disk.crash(seed)
        return values(open_log(logs.disk, directory=f"/data/{TOPIC}-0"))

    found = run_virtually(run)
    if seed % 2:
        assert found in ([(0, b"old-0")], [(0, b"old-0"), (1, b"new")])
    else:
        assert b"new" not in dict(found).values()


def test_committed_records_are_kept_unless_an_unclean_election_is_on_record() -> None:
    async def run() -> None:
        following = Following()
        following.store(batch(0, b"a", b"b", epoch=3), batch(2, b"c", epoch=4), watermark=3)
        following.followed.agreed_epoch = None
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.OUT
        following.followed.unclean_epoch = LeaderEpoch(4)
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.OUT
        assert following.log.log_end_offset == 3
        following.followed.unclean_epoch = LeaderEpoch(5)
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 0) is Outcome.TRUNCATED
        assert (following.log.log_end_offset, following.log.high_watermark) == (0, 0)
        assert following.metrics.value("riverlog_truncated_records_total") == 3
        assert following.metrics.value("riverlog_truncated_below_hw_total") == 3

    run_virtually(run)


def test_what_compaction_took_out_for_records_that_go_is_copied_again() -> None:
    async def run() -> None:
        logs = Logs()
        logs.config = replace(LogConfig(), cleanup_policies=COMPACT, min_cleanable_dirty_ratio=0.0)
        following = Following(logs)
        log = following.log
        following.store(keyed(0, b"first", epoch=3), keyed(1, b"second", epoch=4), watermark=2)
        close_segment(log)
        clean(log, ManualClock())
        assert [record.value for record in read_all(log)] == [b"second"]
        following.followed.agreed_epoch = None
        # It may be in sync.
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.OUT
        following.followed.unclean_epoch = LeaderEpoch(5)
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 1) is Outcome.TRUNCATED
        assert await following.settled() == Position(0, None, 0)
        assert following.metrics.value("riverlog_truncated_below_hw_total") == 2
        following.store(keyed(0, b"first", epoch=3), watermark=1)
        assert [record.value for record in read_all(log)] == [b"first"]

    run_virtually(run)


def test_an_empty_log_behind_its_leaders_end_stays_where_it_is_without_an_unclean_election() -> None:
    async def run() -> None:
        following = Following()
        following.copies.settle_in(following.followed, 50, 60)
        await following.settled()
        assert following.copies.settle_in(following.followed, 0, 40) is Outcome.OUT
        following.followed.unclean_epoch = EPOCH
        assert following.copies.settle_in(following.followed, 0, 40) is Outcome.TRUNCATED
        assert await following.settled() == Position(40, None, 40)

    run_virtually(run)


def test_a_truncated_log_equals_one_that_is_replayed() -> None:
    async def run() -> None:
        following = Following()
        kept = [
            batch(0, b"a", epoch=3, producer_id=7, sequence=0),
            batch(1, b"b", epoch=3, producer_id=8, sequence=0),
        ]
        gone = [
            abort(2, 7, epoch=4),
            batch(3, b"c", epoch=4, producer_id=7, sequence=1),
            abort(4, 8, epoch=4),
        ]
        following.store(*kept, *gone)
        assert following.copies.truncate(following.followed, LeaderEpoch(3), 2) is Outcome.TRUNCATED
        log = following.log
        again = open_log(following.cluster.logs.disk, directory=log.directory)
        assert (again.log_end_offset, again.state.epochs.entries) == (2, ((3, 0),))
        assert log.state.epochs.entries == again.state.epochs.entries
        assert log.producers.open_transactions() == again.producers.open_transactions()
        assert log.aborted_between(0, 10) == again.aborted_between(0, 10) == []
        assert log.last_stable_offset == 0

    run_virtually(run)


def test_the_log_start_follows_and_a_log_that_ends_before_it_begins_anew() -> None:
    async def run() -> None:
        following = Following()
        following.store(batch(0, b"a"), batch(1, b"b"), watermark=2, log_start=1)
        assert following.log.log_start_offset == 1
        assert following.copies.settle_in(following.followed, 50, 60) is Outcome.TRUNCATED
        assert await following.settled() == Position(50, None, 50)
        # The leader's log starts within a batch.
        assert following.store(batch(49, b"x", b"y"), watermark=51, log_start=50) is Outcome.DONE
        assert (following.log.log_start_offset, following.log.log_end_offset) == (50, 51)
        assert following.metrics.value("riverlog_truncated_below_hw_total") == 0

    run_virtually(run)


def test_a_batch_that_reaches_below_the_log_start_moves_nothing_down_where_there_is_no_room_for_it() -> None:
    async def run() -> None:
        following = Following()
        assert following.copies.settle_in(following.followed, 50, 60) is Outcome.TRUNCATED
        await following.settled()
        disk, log = following.cluster.logs.disk, following.log
        disk.capacity_bytes = disk.used_bytes()
        assert following.store(batch(49, b"x", b"y"), watermark=51, log_start=50) is Outcome.FAILED
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (50, 50, 50)
        disk.capacity_bytes = None
        assert following.store(batch(49, b"x", b"y"), watermark=51, log_start=50) is Outcome.DONE
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (50, 51, 51)

    run_virtually(run)


def test_where_acknowledged_means_on_disk_a_position_is_told_when_it_is() -> None:
    async def run() -> None:
        logs, executor = Logs(), HeldExecutor()
        logs.config = replace(LogConfig(), acks_fsync=True)
        following = Following(logs, executor)
        before = following.followed.position
        following.store(batch(0, b"a"))
        waiting = following.look()
        assert isinstance(waiting, asyncio.Future)
        assert following.followed.position == before
        await executor.release()
        await waiting
        assert following.look() == Position(1, EPOCH, 0)

    run_virtually(run)
