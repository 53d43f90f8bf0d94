"""What is committed: not what stands in the leader's log, but what all replicas in sync have."""

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.replication.append_outcomes import AppendedRecords
from tests.coordinator.hosting import Cluster, HeldExecutor, Logs
from tests.replication.replicated import ME, NOW_MS, opened, partition_image, records
from tests.virtual_time import elapse, run_virtually


@pytest.mark.parametrize("for_all_replicas", [False, True])
def test_a_leader_of_three_commits_nothing_alone(for_all_replicas: bool) -> None:
    async def run() -> None:
        partition = opened(Cluster(), partition_image())
        partition.append_alone(records(), NOW_MS, for_all_replicas)
        assert partition.log.high_watermark == 0
        outcome = partition.append(records(), NOW_MS, for_all_replicas=for_all_replicas)
        assert isinstance(outcome, AppendedRecords)
        assert partition.log.high_watermark == 0

    run_virtually(run)


def test_a_replicated_log_that_is_opened_again_begins_where_its_watermark_was() -> None:
    async def run() -> None:
        first = Cluster()
        partition = opened(first, partition_image(replicas=[ME], isr=[ME]))
        for _ in range(3):
            partition.append(records(), NOW_MS, for_all_replicas=True)
        partition.log.sync.flush()
        partition.log.close()
        again = opened(Cluster(first.logs), partition_image(epoch=6))
        assert (again.log.log_end_offset, again.log.high_watermark) == (3, 0)

    run_virtually(run)


def test_a_sync_for_which_there_was_no_room_is_tried_again_although_nobody_asks() -> None:
    """As a coordinator does not, which writes nothing more before that is committed."""

    async def run() -> None:
        threads, logs = HeldExecutor(), Logs(config=LogConfig(acks_fsync=True))
        partition = opened(Cluster(logs, threads), partition_image(replicas=[ME], isr=[ME]))
        partition.append(records(), NOW_MS, for_all_replicas=True)
        logs.disk.capacity_bytes = logs.disk.used_bytes()
        await threads.release()
        await elapse(10)
        await threads.release()
        assert partition.log.high_watermark == 0
        logs.disk.capacity_bytes = None
        await elapse(5)
        await threads.release()
        assert partition.log.high_watermark == 1

    run_virtually(run)


def test_a_sync_for_which_there_was_no_room_is_not_tried_again_by_who_leads_no_more() -> None:
    async def run() -> None:
        threads, logs = HeldExecutor(), Logs(config=LogConfig(acks_fsync=True))
        cluster = Cluster(logs, threads)
        partition = opened(cluster, partition_image(replicas=[ME], isr=[ME]))
        partition.append(records(), NOW_MS, for_all_replicas=True)
        logs.disk.capacity_bytes = logs.disk.used_bytes()
        await threads.release()
        cluster.replicas.close()
        await elapse(10)
        assert not threads.held

    run_virtually(run)
