"""What a leader takes from the fetches of its followers, and from whom it takes nothing."""

from dataclasses import replace

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId
from riverlog.replication.leading.follower_states import FollowerFetch, FollowerState
from riverlog.replication.partition import Partition
from riverlog.replication.watchers import Watched
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import (
    BROKER_EPOCH,
    ME,
    NOW_MS,
    SECOND,
    THIRD,
    TOPIC_ID,
    fetched,
    image_of,
    opened,
    partition_image,
    records,
)
from tests.virtual_time import run_virtually

EPOCH = 5


class Noting:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def on_partition_changed(self, partition: Partition) -> None:
        log = partition.log
        self.seen.append((log.log_start_offset, log.high_watermark, log.log_end_offset))

    def may_rest(self, partition: Partition) -> bool:
        return False

    def move_to(self, watched: Watched) -> None:
        raise AssertionError("nothing rests here")

    def hurry(self) -> None:
        pass

    def asked(self, partition: Partition) -> None:
        return None

    def take(self) -> list[tuple[int, int, int]]:
        seen, self.seen = self.seen, []
        return seen


@pytest.mark.parametrize(
    ("fetch", "refusal"),
    [
        (FollowerFetch(SECOND, BROKER_EPOCH, None, 1, 0), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (FollowerFetch(SECOND, BROKER_EPOCH, LeaderEpoch(4), 1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (FollowerFetch(SECOND, BROKER_EPOCH, LeaderEpoch(6), 1, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (
            FollowerFetch(SECOND, BrokerEpoch(BROKER_EPOCH - 1), LeaderEpoch(5), 1, 0),
            ErrorCode.UNKNOWN_LEADER_EPOCH,
        ),
        (FollowerFetch(SECOND, BrokerEpoch(-1), LeaderEpoch(5), 1, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (FollowerFetch(NodeId(9), BROKER_EPOCH, LeaderEpoch(5), 1, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (FollowerFetch(ME, BROKER_EPOCH, LeaderEpoch(5), 1, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (FollowerFetch(SECOND, BROKER_EPOCH, LeaderEpoch(5), 2, 0), ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_fetch_that_is_refused_moves_nothing(fetch: FollowerFetch, refusal: ErrorCode) -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image(isr=[ME, SECOND]))
        partition.append(records(), NOW_MS, for_all_replicas=True)
        assert partition.on_replica_fetch(fetch, 1.0) is refusal
        assert partition.log.high_watermark == 0
        assert fetched(partition, SECOND, EPOCH, 1) is None
        assert partition.log.high_watermark == 1

    run_virtually(run)


def test_only_the_registration_of_now_is_listened_to() -> None:
    """Neither one that was followed by another, nor one that nobody has been given, as far as is known."""

    async def run() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image(isr=[ME, SECOND]))
        partition.append(records(), NOW_MS, for_all_replicas=True)
        later = BROKER_EPOCH + 1
        assert fetched(partition, SECOND, EPOCH, 1, broker_epoch=later) is ErrorCode.UNKNOWN_LEADER_EPOCH
        image = image_of(partition_image(isr=[ME, SECOND]))
        anew = image.brokers[SECOND]._replace(epoch=BrokerEpoch(later))
        cluster.show(replace(image, brokers={**image.brokers, SECOND: anew}))
        assert fetched(partition, SECOND, EPOCH, 1) is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert partition.log.high_watermark == 0
        assert fetched(partition, SECOND, EPOCH, 1, broker_epoch=later) is None
        assert partition.log.high_watermark == 1

    run_virtually(run)


def test_a_watcher_hears_of_appends_watermarks_log_starts_and_roles_until_it_leaves() -> None:
    async def run() -> None:
        cluster, watcher = Cluster(), Noting()
        partition = opened(cluster, partition_image(isr=[ME, SECOND]))
        partition.add_watcher(watcher)
        partition.append(records(), NOW_MS, for_all_replicas=True)
        assert watcher.take() == [(0, 0, 1)]
        fetched(partition, THIRD, EPOCH, 1)
        assert watcher.take() == []
        fetched(partition, SECOND, EPOCH, 1)
        assert watcher.take() == [(0, 1, 1)]
        partition.log.cutting.delete_records(1)
        assert watcher.take() == [(1, 1, 1)]
        cluster.show(image_of(partition_image(leader=SECOND, epoch=EPOCH + 1)))
        assert watcher.take() == [(1, 1, 1)]
        partition.remove_watcher(watcher)
        cluster.show(image_of(partition_image(epoch=EPOCH + 2)))
        partition.append(records(), NOW_MS, for_all_replicas=True)
        assert watcher.take() == []

    run_virtually(run)


def test_the_low_watermark_is_that_of_the_replicas_which_are_alive() -> None:
    async def run() -> None:
        cluster = Cluster()
        partition = opened(cluster, partition_image())
        for _ in range(3):
            partition.append(records(), NOW_MS, for_all_replicas=True)
        for follower in (SECOND, THIRD):
            fetched(partition, follower, EPOCH, 3)
        partition.log.cutting.delete_records(3)
        assert partition.low_watermark == 0
        fetched(partition, SECOND, EPOCH, 3, log_start=3)
        fetched(partition, THIRD, EPOCH, 3, log_start=2)
        assert partition.low_watermark == 2
        image = image_of(partition_image())
        brokers = {each: image.brokers[each] for each in (ME, SECOND)}
        cluster.show(type(image)(brokers=brokers, topics=image.topics, topic_names=image.topic_names))
        assert partition.low_watermark == 3
        cluster.show(image)
        assert partition.low_watermark == 2
        failed = image.brokers[THIRD]._replace(offline=frozenset({(TOPIC_ID, 0)}))
        cluster.show(replace(image, brokers={**image.brokers, THIRD: failed}))
        assert partition.low_watermark == 3, "its disk has failed"

    run_virtually(run)


def test_a_follower_was_caught_up_when_it_asked_last_if_it_has_what_there_was_then() -> None:
    state = FollowerState(0.0)
    for now_s, offset, log_end, caught_up_s in (
        (1.0, 0, 10, 0.0),  # Behind from the beginning.
        (2.0, 10, 20, 1.0),  # All there was a second ago, though the leader writes on.
        (3.0, 15, 30, 1.0),  # Less than there was.
        (4.0, 29, 40, 1.0),
        (5.0, 40, 40, 5.0),  # All there is.
        (6.0, 40, 50, 5.0),
    ):
        state.note(FollowerFetch(SECOND, BrokerEpoch(0), LeaderEpoch(0), offset, 0), now_s, log_end)
        assert state.caught_up_s == caught_up_s, now_s
