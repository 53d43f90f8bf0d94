"""Who is in sync, how that is written down, and what counts while it is not known to be."""

import asyncio
from collections.abc import Callable

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.image import BrokerImage
from riverlog.metadata.isr_writes import IsrWrite, write_isr
from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from riverlog.model.metrics import NoMetrics
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.replication.isr_keeper import IsrKeeper
from riverlog.replication.leading.isr import IsrRules
from riverlog.replication.partition import Partition
from riverlog.replication.replica_gauges import ReplicaGauges
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from tests.coordinator.hosting import Cluster, Logs
from tests.replication.replicated import (
    ALL,
    BROKER_EPOCH,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    TOPIC,
    TOPIC_ID,
    fetched,
    image_of,
    opened,
    partition_image,
    records,
)
from tests.virtual_time import LoopClock, elapse, run_virtually
from tests.waiting import loop_turns

EPOCH = 5
RULES = IsrRules(lag_max_s=10.0)


def append(partition: Partition, count: int = 1) -> None:
    for _ in range(count):
        partition.append(records(), NOW_MS, for_all_replicas=False)


def joining(partition: Partition) -> list[NodeId]:
    return list(partition.in_sync.joining)


def test_a_follower_falls_out_when_it_was_behind_for_too_long() -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image())
        append(partition)
        fetched(partition, SECOND, EPOCH, 1, now_s=100.0)
        fetched(partition, THIRD, EPOCH, 1, now_s=100.0)
        append(partition)
        fetched(partition, SECOND, EPOCH, 2, now_s=105.0)
        assert partition.wanted_isr(110.0, RULES) is None
        change = partition.wanted_isr(110.1, RULES)
        assert change is not None
        assert (change.isr, change.leaving, change.joining) == ((ME, SECOND), (THIRD,), ())

    run_virtually(run)


def test_one_that_has_all_there_is_stays_however_long_it_is_silent() -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        append(partition)
        fetched(partition, SECOND, EPOCH, 1, now_s=100.0)
        assert partition.wanted_isr(1000.0, RULES) is None
        append(partition)
        assert partition.wanted_isr(1009.0, RULES) is None, "it was caught up until a moment ago"
        change = partition.wanted_isr(1010.1, RULES)
        assert change is not None
        assert change.isr == (ME,)

    run_virtually(run)


def test_one_that_never_fetches_falls_out() -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        append(partition)
        assert partition.wanted_isr(100.0, RULES) is None
        change = partition.wanted_isr(110.1, RULES)
        assert change is not None
        assert change.leaving == (SECOND,)

    run_virtually(run)


def test_by_messages_only_where_that_is_asked_for() -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        fetched(partition, SECOND, EPOCH, 0)
        append(partition, 4)
        assert partition.wanted_isr(100.0, RULES) is None
        assert partition.wanted_isr(100.0, IsrRules(10.0, 4)) is None
        change = partition.wanted_isr(100.0, IsrRules(10.0, 3))
        assert change is not None
        assert change.isr == (ME,)

    run_virtually(run)


def test_a_follower_comes_in_with_all_that_is_committed_and_all_of_before_the_epoch() -> None:
    async def run() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image(isr=[ME]))
        append(partition, 3)
        cluster.show(image_of(partition_image(isr=[ME, SECOND], epoch=EPOCH + 1)))
        fetched(partition, THIRD, EPOCH + 1, 2)
        assert partition.wanted_isr(100.0, RULES) is None
        fetched(partition, THIRD, EPOCH + 1, 3)
        change = partition.wanted_isr(100.0, RULES)
        assert change is not None
        assert (change.isr, change.joining) == (ALL, ((THIRD, BROKER_EPOCH),))

    run_virtually(run)


def test_one_that_was_behind_for_too_long_comes_in_when_it_has_caught_up_and_not_before() -> None:
    """It would fall out again at once, and so on for as long as it cannot keep up."""

    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        fetched(partition, THIRD, EPOCH, 0, now_s=100.0)
        append(partition, 2)
        fetched(partition, THIRD, EPOCH, 1, now_s=111.0)
        assert partition.wanted_isr(111.0, RULES) is None, "it has all that is committed, and is behind"
        append(partition)
        fetched(partition, THIRD, EPOCH, 2, now_s=112.0)
        change = partition.wanted_isr(112.0, RULES)
        assert change is not None
        assert change.joining == ((THIRD, BROKER_EPOCH),)

    run_virtually(run)


@pytest.mark.parametrize(
    "third",
    [
        None,
        BrokerImage(THIRD, {}, epoch=BrokerEpoch(BROKER_EPOCH - 1)),
        BrokerImage(THIRD, {}, epoch=BrokerEpoch(BROKER_EPOCH + 1)),
        BrokerImage(THIRD, {}, epoch=BROKER_EPOCH, is_shutting_down=True),
    ],
)
def test_neither_a_stranger_nor_one_that_leaves_comes_in(third: BrokerImage | None) -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        fetched(partition, THIRD, EPOCH, 0)
        brokers = {**partition._standing.brokers}
        del brokers[THIRD]
        partition._standing.brokers = {**brokers, **({} if third is None else {THIRD: third})}
        assert partition.wanted_isr(100.0, RULES) is None

    run_virtually(run)


def test_who_comes_in_counts_at_once_and_who_leaves_counts_still() -> None:
    async def run() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image(isr=[ME, SECOND]))
        fetched(partition, THIRD, EPOCH, 0, now_s=100.0)
        fetched(partition, SECOND, EPOCH, 0, now_s=0.0)
        append(partition)
        change = partition.wanted_isr(100.0, RULES)
        assert change is not None
        assert change.isr == (ME, THIRD)
        partition.led.propose_isr(change)
        fetched(partition, SECOND, EPOCH, 1, now_s=100.0)
        assert partition.log.high_watermark == 0, "the one that comes in has not got it"
        partition.withdraw_isr(0)
        assert partition.log.high_watermark == 1
        append(partition)
        partition.led.propose_isr(change)
        fetched(partition, THIRD, EPOCH, 2, now_s=100.0)
        assert partition.log.high_watermark == 1, "the one that leaves has not got it"
        written = partition_image(isr=[ME, THIRD])._replace(partition_epoch=1)
        cluster.show(image_of(written))
        assert partition.log.high_watermark == 2
        assert partition.in_sync.joining == ()

    run_virtually(run)


class Written:
    """A state in a simulated store, with brokers that are registered."""

    def __init__(self, ensemble: SimulatedEnsemble) -> None:
        self.ensemble = ensemble
        self.store: SimulatedStore = ensemble.connect()
        self.image = partition_image(isr=[ME, SECOND])._replace(leader_broker_epoch=BrokerEpoch(0))
        self.path = layout.partition_state(TOPIC, 0)

    async def prepare(self) -> None:
        await self.store.create(layout.DELETED_TOPICS)
        for each in ALL:
            await self.store.create(layout.registration(each))
            await self.store.create(layout.broker(each), ephemeral=True)
        node = payloads.PartitionNode(ME, LeaderEpoch(EPOCH), (ME, SECOND), 1, BrokerEpoch(0))
        await self.store.create(self.path, payloads.encode_partition(node))

    async def write(self, isr: tuple[NodeId, ...], *joining: tuple[NodeId, int]) -> bool:
        write = IsrWrite(TopicPartition(TOPIC, 0), TOPIC_ID, self.image, isr, joining, 1)
        return await write_isr(self.store, write, lambda: 0.5)

    async def isr(self) -> tuple[NodeId, ...]:
        node = await self.store.get(self.path)
        assert node is not None
        return payloads.decode_partition(self.path, node.data).isr


def with_state(scenario: Callable[[Written], object]) -> None:
    async def run() -> None:
        written = Written(SimulatedEnsemble())
        await written.prepare()
        await scenario(written)  # type: ignore[misc]

    run_virtually(run)


def test_a_write_rests_on_all_registrations_and_on_the_state() -> None:
    async def run(given: Written) -> None:
        store = given.store
        assert not await given.write(ALL, (THIRD, 1)), "another registration"
        await store.set(layout.broker(THIRD), b"leaving")
        assert not await given.write(ALL, (THIRD, 0)), "it is shutting down"
        await store.delete(layout.broker(THIRD))
        assert not await given.write(ALL, (THIRD, 0)), "it is gone"
        await store.create(layout.broker(THIRD), ephemeral=True)
        assert await given.isr() == (ME, SECOND)
        assert await given.write(ALL, (THIRD, 0))
        assert await given.isr() == ALL
        assert not await given.write((ME,)), "the state is another by now"
        given.image = given.image._replace(partition_epoch=1)
        await store.set(layout.registration(ME), b"again")
        assert not await given.write((ME,)), "the leader is registered anew"
        given.image = given.image._replace(leader_broker_epoch=BrokerEpoch(1))
        await store.delete(layout.broker(ME))
        assert not await given.write((ME,)), "the leader is not there"
        assert await given.isr() == ALL

    with_state(run)


def test_a_write_about_a_topic_that_was_deleted_is_not_let_into_the_one_made_after_it() -> None:
    async def run(given: Written) -> None:
        store = given.store
        await store.delete(given.path)
        await store.create(layout.deleted_topic(payloads.uuid_text(TOPIC_ID)))
        anew = payloads.PartitionNode(SECOND, LeaderEpoch(0), (SECOND, THIRD), 1, BrokerEpoch(0))
        await store.create(given.path, payloads.encode_partition(anew))
        assert not await given.write((ME,)), "the version is the same, the topic is not"
        assert await given.isr() == (SECOND, THIRD)

    with_state(run)


def test_a_write_leaves_nothing_behind_that_looks_like_a_deletion() -> None:
    async def run(given: Written) -> None:
        assert await given.write((ME,))
        assert not await given.store.children(layout.DELETED_TOPICS)

    with_state(run)


def test_a_write_whose_answer_is_lost_is_known_only_when_it_was_read() -> None:
    async def run(given: Written) -> None:
        given.ensemble.lost_answers = 1
        assert await given.write((ME,))
        given.image = given.image._replace(partition_epoch=1)
        given.ensemble.lost_requests = 1
        assert not await given.write(ALL, (THIRD, 0))
        assert await given.isr() == (ME,)

    with_state(run)


def test_the_keeper_writes_once_at_a_time_and_tries_again() -> None:
    async def run() -> None:
        cluster, writes, outcomes = Cluster(), list[IsrWrite](), [False, True]
        partition = opened(cluster, partition_image(isr=[ME, SECOND]))
        gate = asyncio.Event()

        async def write(each: IsrWrite) -> bool:
            writes.append(each)
            await gate.wait()
            return outcomes.pop(0)

        async def see(each: Partition) -> None:
            if not outcomes:
                cluster.show(image_of(partition_image()._replace(partition_epoch=1)))

        keeper = IsrKeeper(
            cluster.replicas,
            write,
            see,
            RULES,
            clock=LoopClock(),
            jitter=lambda: 0.5,
            metrics=NoMetrics(),
        )
        fetched(partition, SECOND, EPOCH, 0)
        for _ in range(3):
            fetched(partition, THIRD, EPOCH, 0)
            await loop_turns()
        assert [each.isr for each in writes] == [ALL]
        assert joining(partition) == [THIRD]
        gate.set()
        await elapse(0.01)
        assert len(writes) == 1, "it waits before it tries again"
        assert joining(partition) == []
        await elapse(1)
        assert [each.isr for each in writes] == [ALL, ALL]
        assert partition.in_sync.isr == ALL
        await keeper.close()

    run_virtually(run)


def test_what_is_missing_is_shown() -> None:
    async def run() -> None:
        cluster, metrics = Cluster(Logs(config=LogConfig(min_insync_replicas=2))), InMemoryMetrics()
        gauges = ReplicaGauges(metrics, cluster.replicas)
        cluster.follow(gauges.apply)

        def shown() -> list[float]:
            names = ("under_replicated_partitions", "under_min_isr_partitions", "follower_lag_records_max")
            return [metrics.value(f"riverlog_{name}") for name in names]

        assert shown() == [0, 0, 0]
        partition = opened(cluster, partition_image())
        append(partition, 3)
        for follower, end in ((SECOND, 3), (THIRD, 1)):
            fetched(partition, follower, EPOCH, end)
        assert shown() == [0, 0, 2]
        cluster.show(image_of(partition_image(isr=[ME, SECOND])))
        assert shown() == [1, 0, 2]
        cluster.show(image_of(partition_image(isr=[ME])))
        assert shown() == [1, 1, 2]
        cluster.show(image_of(partition_image(isr=[SECOND], leader=SECOND, epoch=EPOCH + 1)))
        assert shown() == [0, 0, 0]
        assert metrics.value("riverlog_leader_epoch_changes_total") == 1

    run_virtually(run)
