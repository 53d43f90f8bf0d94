"""Markers in partitions that this node leads: written once, by the coordinator that is in office."""

from collections.abc import Sequence
from dataclasses import replace

from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.markers import Marker, MarkerWritten
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2
from riverlog.metadata.image import BrokerImage, ClusterImage
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, ProducerIdAndEpoch, TopicPartition
from riverlog.records.builder import build_batch
from riverlog.replication.append_outcomes import AppendedRecords
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower
from tests.coordinator.hosting import NODE, Cluster, image, read_now
from tests.replication.asking import Asking
from tests.virtual_time import LoopClock, elapse, run_virtually

AT = TopicPartition("orders", 0)
ME = ProducerIdAndEpoch(7, 1)


class World:
    def __init__(self, *, followers: Sequence[NodeId] = ()) -> None:
        cluster = self.cluster = Cluster()
        groups = GroupCoordinator(
            GroupConfig(), cluster.replicas, lambda: cluster.image, clock=LoopClock(), read=read_now
        )
        cluster.show(replicated(image({"orders": 1}), followers))
        self.writer = LocalMarkerWriter(cluster.replicas, groups, LoopClock())
        found = cluster.replicas.find(*AT)
        assert isinstance(found, Partition)
        self.partition = found
        self._sequence = 0

    @property
    def end(self) -> int:
        return self.partition.log.log_end_offset

    @property
    def is_open(self) -> bool:
        entry = self.partition.log.producers.get(ME.producer_id)
        return entry is not None and entry.transaction_first_offset is not None

    def produce(self, epoch: int = ME.producer_epoch) -> None:
        batch = build_batch(
            [(0, None, b"v", ())],
            producer_id=ME.producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        self._sequence += 1
        written = self.partition.append(memoryview(bytearray(batch)), 0, for_all_replicas=True)
        assert isinstance(written, AppendedRecords), written

    def mark(self, coordinator_epoch: int, *, epoch: int = 1, version: int = VERSION_1) -> ErrorCode | None:
        return self.asked(coordinator_epoch, epoch=epoch, version=version).result()

    def asked(self, coordinator_epoch: int, *, epoch: int = 1, version: int = VERSION_1) -> MarkerWritten:
        producer = ProducerIdAndEpoch(ME.producer_id, epoch)
        marker = Marker(producer, LeaderEpoch(coordinator_epoch), commit=True, client_version=version)
        return self.writer.write(AT, marker, may_be_written=True)


def replicated(alone: ClusterImage, followers: Sequence[NodeId]) -> ClusterImage:
    [state] = alone.topics[AT.topic].partitions
    replicas = (NODE, *followers)
    topic = alone.topics[AT.topic]._replace(partitions=(state._replace(replicas=replicas, isr=replicas),))
    brokers = {each: BrokerImage(each, {}) for each in replicas}
    return replace(alone, topics={AT.topic: topic}, brokers=brokers)


def test_a_marker_that_stands_is_not_written_again_whoever_asks() -> None:
    async def work() -> None:
        world = World()
        world.produce()
        assert world.mark(4) is None
        assert (world.end, world.is_open) == (2, False)
        assert world.mark(4) is None
        assert world.mark(5) is None
        assert world.end == 2

    run_virtually(work)


def test_a_late_marker_of_an_earlier_coordinator_ends_no_later_transaction() -> None:
    async def work() -> None:
        world = World()
        world.produce()
        assert world.mark(4) is None
        assert world.mark(5) is None, "the next coordinator finds it standing"
        assert world.mark(4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        world.produce()
        assert world.mark(4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert world.is_open
        assert world.mark(5) is None
        assert (world.end, world.is_open) == (4, False)

    run_virtually(work)


def test_that_a_marker_stands_is_told_when_the_followers_have_confirmed_that_nobody_else_leads() -> None:
    """Another could have the batches of the next transaction already, which this node knows nothing of."""

    async def work() -> None:
        follower = NodeId(2)
        world = World(followers=[follower])
        world.produce()
        written = world.asked(4)
        fetch = FollowerFetch(
            follower, BrokerEpoch(0), world.partition.leader_epoch, fetch_offset=2, log_start_offset=0
        )
        assert world.partition.on_replica_fetch(fetch, 0.0) is None
        assert await written is None

        asking = Asking(world.cluster, follower)
        world.partition.add_watcher(asking)
        again = world.asked(4)
        asking.ask()
        await elapse(1)
        assert not again.done()
        asking.ask()
        assert await again is None

        once_more = world.asked(4)
        world.partition.take_role(Follower(LeaderEpoch(7), follower))
        assert await once_more is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.end == 2

    run_virtually(work)


def test_a_marker_of_version_2_that_comes_late_is_told_from_the_next_end() -> None:
    async def work() -> None:
        world = World()
        world.produce(epoch=0)
        assert world.mark(4, epoch=1, version=VERSION_2) is None
        world._sequence = 0
        world.produce(epoch=1)
        assert world.mark(4, epoch=1, version=VERSION_2) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert world.is_open

    run_virtually(work)


def test_a_marker_takes_away_the_guard_of_a_question_under_way_even_if_it_is_not_written() -> None:
    async def work() -> None:
        world = World()
        guards = world.partition.log.producers.guards
        world.produce()
        for _ in range(2):
            early, same = guards.begin_question(7), guards.begin_question(7)
            other = guards.begin_question(8)
            assert world.mark(4) is None
            late = guards.begin_question(7)
            assert not guards.end_question(7, early)
            assert not guards.end_question(7, same)
            assert guards.end_question(7, late)
            assert guards.end_question(8, other)
        assert world.end == 2, "the second marker stood already"
        assert len(guards) == 0

    run_virtually(work)
