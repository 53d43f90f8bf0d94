"""What is committed: not what stands in the leader's log, but what all replicas in sync have."""

import pytest

from riverlog.replication.partition import AppendedRecords
from tests.coordinator.hosting import Cluster
from tests.replication.replicated import ME, NOW_MS, opened, partition_image, records
from tests.virtual_time import run_virtually


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
