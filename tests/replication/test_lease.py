"""What a leader may still do alone when its session with the metadata store may be over (I17)."""

import pytest

from riverlog.metadata.image import BrokerImage, PartitionImage
from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.leading.lease import Lease
from riverlog.replication.partition import Partition
from riverlog.testing.simulated_store import SimulatedEnsemble
from tests.coordinator.hosting import Cluster, Logs
from tests.replication.replicated import (
    BROKERS,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    fetched,
    opened,
    partition_image,
    records,
    standing,
)
from tests.virtual_time import LoopClock, run_virtually

EPOCH = 5
TIMEOUT_S = 9.0


class GivenLease:
    def __init__(self) -> None:
        self.held = True
        self.timeout_s = TIMEOUT_S

    def now_s(self) -> float:
        return 100.0

    def is_held(self) -> bool:
        return self.held


def written(partition: Partition, for_all: bool) -> ErrorCode | None:
    outcome = partition.append(records(), NOW_MS, for_all_replicas=for_all)
    if isinstance(outcome, AppendRefused):
        return outcome.error
    assert isinstance(outcome, AppendedRecords)
    return None


@pytest.mark.parametrize(
    ("image", "unclean", "alone", "for_all"),
    [
        (partition_image(), False, True, False),
        (partition_image(isr=[ME]), False, False, False),
        (partition_image(isr=[ME]), True, True, True),
        (partition_image(isr=[ME])._replace(elr=(SECOND,)), False, True, True),
        (partition_image(isr=[ME], replicas=[ME]), True, False, False),
    ],
)
def test_what_one_broker_could_acknowledge_alone_ends_with_the_lease(
    image: PartitionImage, unclean: bool, alone: bool, for_all: bool
) -> None:
    """`alone` and `for_all`: whether acks=1, and acks=all, are refused."""

    async def run() -> None:
        cluster = Cluster(Logs(config=LogConfig(unclean_leader_election=unclean)))
        partition = opened(cluster, image)
        cluster.replicas.standing.lease = lease = GivenLease()
        assert [written(partition, each) for each in (False, True)] == [None, None]
        lease.held = False
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        end = partition.log.log_end_offset
        assert written(partition, for_all=False) == (refused if alone else None)
        assert written(partition, for_all=True) == (refused if for_all else None)
        assert partition.log.log_end_offset == end + (not alone) + (not for_all), "nothing refused is written"

    run_virtually(run)


@pytest.mark.parametrize(
    ("image", "unclean", "refused"),
    [
        (partition_image(isr=[ME])._replace(elr=(SECOND,)), False, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (partition_image(isr=[ME, SECOND]), False, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (partition_image(isr=[ME]), True, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (partition_image(isr=[ME]), False, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_who_finds_too_few_in_sync_is_told_when_another_may_lead(
    image: PartitionImage, unclean: bool, refused: ErrorCode
) -> None:
    """For too few in sync a client asks again here, and would never find who has led for long."""

    async def run() -> None:
        config = LogConfig(unclean_leader_election=unclean, min_insync_replicas=3)
        cluster = Cluster(Logs(config=config))
        partition = opened(cluster, image)
        cluster.replicas.standing.lease = lease = GivenLease()
        assert written(partition, for_all=True) is ErrorCode.NOT_ENOUGH_REPLICAS
        lease.held = False
        assert written(partition, for_all=True) is refused

    run_virtually(run)


def test_acks_all_goes_on_and_is_acknowledged_while_the_followers_fetch() -> None:
    async def run() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image())
        cluster.replicas.standing.lease = lease = GivenLease()
        lease.held = False
        assert written(partition, for_all=True) is None
        for follower in (SECOND, THIRD):
            assert partition.log.high_watermark == 0
            fetched(partition, follower, EPOCH, 1)
        assert partition.log.high_watermark == 1

    run_virtually(run)


def test_a_lease_ends_by_the_clock_and_with_a_session_until_the_next_registration() -> None:
    async def run() -> None:
        ensemble, known = SimulatedEnsemble(session_timeout_s=TIMEOUT_S), standing()
        store = ensemble.connect()
        lease = Lease(store, known, ME, LoopClock(), TIMEOUT_S)
        clock = LoopClock()
        store.renew(clock.monotonic_s())
        assert lease.remaining_s == TIMEOUT_S
        store.renew(clock.monotonic_s() - TIMEOUT_S)
        assert not lease.is_held(), "as after a stop of the process"
        store.renew(clock.monotonic_s())
        assert lease.is_held()
        store.expire()
        store.renew(clock.monotonic_s())
        assert not lease.is_held(), "the new session is not the one under which it was elected"
        known.brokers = {**BROKERS, ME: BrokerImage(ME, {}, epoch=BrokerEpoch(BROKERS[ME].epoch + 1))}
        assert lease.is_held()
        lease.close()

    run_virtually(run)
