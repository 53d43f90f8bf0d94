"""A partition with followers against a model: watermark, acknowledgements and readers, while role, ISR and
config change in any order."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicPartition
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower, Leader, Offline
from riverlog.replication.waiting import PendingAck
from riverlog.replication.watchers import Watched
from riverlog.storage.log.flusher import Flusher
from tests.coordinator.hosting import HeldExecutor, Logs
from tests.replication.replicated import (
    ALL,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    TOPIC,
    TOPIC_ID,
    fetched,
    records,
    standing,
)
from tests.virtual_time import VirtualLoop

T = TypeVar("T")
SIZE_BYTES = len(records())
followers = st.sampled_from([SECOND, THIRD])


class Watching:
    """A reader that stays, and counts."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.calls = 0
        self.disturbed = 0

    def on_records(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self.calls += 1

    def on_disturbance(self) -> None:
        self.disturbed += 1


class Watcher:
    """A follower that is told of changes, and counts."""

    def __init__(self) -> None:
        self.calls = 0
        self.log_end: int | None = None

    def on_partition_changed(self, partition: Partition) -> None:
        self.calls += 1
        self.log_end = partition.log.log_end_offset

    def asked(self, partition: Partition) -> None:
        return None

    def may_rest(self, partition: Partition) -> bool:
        return False

    def move_to(self, watched: Watched) -> None:
        raise AssertionError("nothing rests here")

    def hurry(self) -> None:
        raise AssertionError("nobody asks for a confirmation here")


class PartitionModel(RuleBasedStateMachine):
    @initialize(is_sole=st.booleans(), waits_for_disk=st.booleans(), min_isr=st.integers(1, 3))
    def begin(self, is_sole: bool, waits_for_disk: bool, min_isr: int) -> None:
        self.loop = VirtualLoop()
        self.executor = HeldExecutor()
        self.config = LogConfig(acks_fsync=waits_for_disk, min_insync_replicas=min_isr)
        self.replicas: tuple[NodeId, ...] = (ME,) if is_sole else ALL
        self.isr: tuple[NodeId, ...] = self.replicas
        self.epoch = 1
        self.is_leader = True
        self.ends: dict[NodeId, int] = {}
        self.end = self.mark = 0
        self.pending: list[PendingAck] = []
        self.settled: list[PendingAck] = []
        self.consumer, self.follower = Watching(), Watcher()
        self.partition = self.run(self._open)

    def _open(self) -> Partition:
        log = Logs(config=self.config).open_log(TopicPartition(TOPIC, 0), TOPIC_ID)
        flusher = Flusher(asyncio.get_running_loop(), executor=self.executor)
        partition = Partition(
            log, TOPIC_ID, Leader(LeaderEpoch(self.epoch)), self._in_sync(), flusher, standing()
        )
        partition.begin()
        partition.watch(self.consumer)
        partition.add_watcher(self.follower)
        return partition

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.run(lambda: None)
            self.loop.close()

    def run(self, work: Callable[[], T]) -> T:
        async def in_loop() -> T:
            return work()

        return self.loop.run_until_complete(in_loop())

    def _in_sync(self) -> InSyncReplicas:
        return InSyncReplicas(ME, self.isr, self.replicas)

    @property
    def has_enough(self) -> bool:
        return len(self.isr) >= min(self.config.min_insync_replicas, len(self.replicas))

    @property
    def is_sole(self) -> bool:
        return self.replicas == (ME,)

    @property
    def is_cut(self) -> bool:
        """What was taken back may be there again after a power cut, behind what is written in its place."""
        return self.partition.log.sync.is_cut

    def commit(self) -> None:
        """Record by record: what everybody in sync has, is committed."""
        while self.is_leader and self.has_enough and self.mark < self.end:
            has_it = all(self.ends.get(each, 0) > self.mark for each in self.isr if each != ME)
            if not has_it or (self.config.acks_fsync and self.partition.log.flushed_offset <= self.mark):
                break
            self.mark += 1

    @rule(for_all=st.booleans(), short_way=st.booleans())
    def append(self, for_all: bool, short_way: bool) -> None:
        told_before = self.follower.calls
        if short_way:
            written = self.run(lambda: self.partition.append_alone(records(), NOW_MS, for_all))
            may_be_short = self.is_leader and self.is_sole and not self.config.acks_fsync and not self.is_cut
            assert written == (self.end if may_be_short else None)
            if may_be_short:
                self.end += 1
                self.commit()
                assert self.mark == self.end
                return
        outcome = self.run(lambda: self.partition.append(records(), NOW_MS, for_all_replicas=for_all))
        if not self.is_leader or self.is_cut or (for_all and not self.has_enough):
            assert isinstance(outcome, AppendRefused)
            enough = ErrorCode.NOT_ENOUGH_REPLICAS if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert outcome.error is enough
            return
        assert outcome == AppendedRecords(self.end, self.end + 1, None)
        self.end += 1
        if not self.is_sole or self.config.acks_fsync:
            assert self.follower.calls > told_before, "followers hear of every append at once"
            assert self.follower.log_end == self.end
        else:
            assert self.follower.calls == told_before
        self.commit()
        if for_all:
            self.wait_for(self.end)

    def wait_for(self, end_offset: int) -> None:
        pending = self.run(lambda: self.partition.when_acknowledged(end_offset, self.settled.append))
        assert (pending is None) == (end_offset <= self.mark)
        if pending is not None:
            self.pending.append(pending)

    @precondition(lambda self: self.is_leader and self.end > 0)
    @rule(data=st.data())
    def wait_for_an_earlier_one(self, data: st.DataObject) -> None:
        """As a producer does that sends a batch again."""
        self.wait_for(data.draw(st.integers(1, self.end)))

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def stop_waiting(self, data: st.DataObject) -> None:
        pending = data.draw(st.sampled_from(self.pending))
        self.pending.remove(pending)
        self.run(pending.cancel)

    @rule(follower=followers, behind=st.integers(0, 3), epochs_ago=st.integers(0, 1))
    def fetch(self, follower: NodeId, behind: int, epochs_ago: int) -> None:
        end = max(self.end - behind, 0)
        claimed = self.epoch - epochs_ago
        refusal = self.run(lambda: fetched(self.partition, follower, claimed, end))
        is_heard = self.is_leader and epochs_ago == 0 and follower in self.replicas
        assert (refusal is None) == is_heard
        if is_heard:
            self.ends[follower] = end
            self.commit()

    @rule(data=st.data())
    def change_isr(self, data: st.DataObject) -> None:
        disturbed = self.consumer.disturbed
        self.isr = (ME, *sorted(data.draw(st.sets(st.sampled_from(self.replicas))) - {ME}))
        self.take_over()
        self.commit()
        assert self.consumer.disturbed == disturbed
        assert all(each.is_committed is not False for each in self.pending)

    @rule(is_sole=st.booleans())
    def reassign(self, is_sole: bool) -> None:
        """To this node alone, or to all of them, of which those that are new are not in sync yet."""
        self.replicas = (ME,) if is_sole else ALL
        self.isr = tuple(each for each in self.isr if each in self.replicas)
        self.ends = {each: end for each, end in self.ends.items() if each in self.replicas}
        self.take_over()
        self.commit()

    def take_over(self) -> None:
        role = (
            Leader(LeaderEpoch(self.epoch)) if self.is_leader else Follower(LeaderEpoch(self.epoch), SECOND)
        )
        self.run(lambda: self.partition.take_role(role, self._in_sync()))

    @rule()
    def lead(self) -> None:
        """Under a new epoch, be it after another leader or after itself: those who wait go on waiting."""
        disturbed = self.consumer.disturbed
        self.epoch += 1
        self.is_leader = True
        self.ends.clear()
        self.take_over()
        self.commit()
        assert self.consumer.disturbed == disturbed + 1
        assert self.partition.log.end_offset_for_epoch(LeaderEpoch(self.epoch)) == (self.epoch, self.end)

    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        """And take back what the new leader does not have, which is never below the watermark."""
        was_waiting, self.pending = self.pending, []
        self.epoch += 1
        self.is_leader = False
        self.ends.clear()
        self.take_over()
        assert all(each.is_committed is False for each in was_waiting)
        self.end = data.draw(st.integers(self.mark, self.end))
        self.run(lambda: self.partition.log.cutting.truncate_to(self.end))

    @rule(waits_for_disk=st.booleans(), min_isr=st.integers(1, 3))
    def change_config(self, waits_for_disk: bool, min_isr: int) -> None:
        self.config = LogConfig(acks_fsync=waits_for_disk, min_insync_replicas=min_isr)
        self.run(lambda: self.partition.update_config(self.config))
        self.commit()

    @rule()
    def sync(self) -> None:
        self.loop.run_until_complete(self.executor.release())
        assert not (self.is_leader and self.is_cut)
        self.commit()

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(0, self.mark))
        self.run(lambda: self.partition.log.cutting.delete_records(before))

    @invariant()
    def offsets_are_in_order(self) -> None:
        if hasattr(self, "partition"):
            log = self.partition.log
            assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
            assert (log.high_watermark, log.log_end_offset) == (self.mark, self.end)

    @invariant()
    def acknowledged_is_exactly_what_is_committed(self) -> None:
        if hasattr(self, "partition"):
            ended = [each for each in self.pending if each.end_offset <= self.mark]
            self.pending = [each for each in self.pending if each.end_offset > self.mark]
            assert all(each.is_committed for each in ended)
            assert all(each.is_committed is None for each in self.pending)
            assert len(set(map(id, self.settled))) == len(self.settled), "nobody is told twice"

    @invariant()
    def a_consumer_has_heard_of_all_that_it_can_read(self) -> None:
        if hasattr(self, "partition") and not self.consumer.disturbed:
            assert self.consumer.size_bytes >= self.mark * SIZE_BYTES


TestPartitionModel = PartitionModel.TestCase
TestPartitionModel.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_what_followers_had_of_an_earlier_epoch_does_not_count() -> None:
    model = PartitionModel()
    model.begin(is_sole=False, waits_for_disk=False, min_isr=1)
    model.append(for_all=True, short_way=False)
    assert model.run(lambda: fetched(model.partition, SECOND, 1, 1)) is None
    model.run(lambda: model.partition.take_role(Follower(LeaderEpoch(2), SECOND)))
    model.run(lambda: model.partition.log.cutting.truncate_to(0))
    model.run(lambda: model.partition.take_role(Leader(LeaderEpoch(3))))
    model.loop.run_until_complete(model.executor.release())
    assert model.run(lambda: model.partition.append(records(), NOW_MS, for_all_replicas=True))
    assert model.run(lambda: fetched(model.partition, THIRD, 3, 1)) is None
    assert model.partition.log.high_watermark == 0
    assert model.run(lambda: fetched(model.partition, SECOND, 3, 1)) is None
    assert model.partition.log.high_watermark == 1
    model.teardown()


def test_a_sync_that_a_truncation_overtook_does_not_take_the_partition_offline() -> None:
    model = PartitionModel()
    model.begin(is_sole=False, waits_for_disk=True, min_isr=1)
    model.append(for_all=True, short_way=False)
    model.run(lambda: model.partition.take_role(Follower(LeaderEpoch(2), SECOND)))
    model.run(lambda: model.partition.log.cutting.truncate_to(0))
    model.run(lambda: model.partition.take_role(Leader(LeaderEpoch(3)), InSyncReplicas(ME, (ME,), ALL)))
    model.loop.run_until_complete(model.executor.release())
    assert model.partition.role == Leader(LeaderEpoch(3))
    assert model.run(lambda: model.partition.append(records(), NOW_MS, for_all_replicas=True))
    model.loop.run_until_complete(model.executor.release())
    assert model.partition.log.high_watermark == 1
    model.teardown()


def test_a_partition_that_fails_tells_those_who_wait() -> None:
    model = PartitionModel()
    model.begin(is_sole=False, waits_for_disk=False, min_isr=1)
    model.append(for_all=True, short_way=False)
    (pending,) = model.pending
    told_before = model.follower.calls
    model.run(lambda: model.partition.take_role(Offline(LeaderEpoch(1))))
    assert pending.is_committed is False
    assert model.partition.refusal() is ErrorCode.KAFKA_STORAGE_ERROR
    assert (model.consumer.disturbed, model.follower.calls) == (1, told_before + 1)
    model.teardown()
