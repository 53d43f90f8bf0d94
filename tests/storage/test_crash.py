"""Crash after every change to the disk: a whole prefix with everything acknowledged is left (I1, I10)."""

from collections.abc import Callable

import pytest

from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import violations
from tests.storage.logs import append, batch, open_log, values
from tests.storage.scenarios import (
    Life,
    changes_in,
    closing_life,
    kill_faults,
    overlapping_life,
    power_cut_faults,
    synced_life,
    written_life,
)

SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("live", [synced_life, overlapping_life])
def test_a_power_cut_after_any_change_loses_nothing_acknowledged(
    shard: int, live: Callable[[Life, SimulatedDisk], None]
) -> None:
    total = changes_in(live)
    assert total > 150
    for power_off_after in range(1 + shard, total + 1, SHARDS):
        for seed in range(2):
            faults = power_cut_faults(power_off_after, seed, live)
            assert faults == [], f"power_cut_faults({power_off_after}, {seed}, {live.__name__})"


def test_a_kill_after_any_change_loses_nothing_written() -> None:
    for power_off_after in range(1, changes_in(written_life) + 1):
        assert kill_faults(power_off_after) == [], f"kill_faults({power_off_after})"


def test_a_kill_loses_nothing_of_a_log_that_is_closed_and_opened_again_and_again() -> None:
    """Neither where it is recovered at the next start nor where it is known to need none."""
    for power_off_after in range(1, changes_in(closing_life) + 1):
        faults = kill_faults(power_off_after, closing_life, boot_id="boot")
        assert faults == [], f"kill_faults({power_off_after}, closing_life, boot_id='boot')"


def test_what_is_written_and_rolled_during_a_sync_is_left_to_the_next_sync() -> None:
    for seed in range(20):
        disk = SimulatedDisk()
        log = open_log(disk, request_sync=lambda log: None)
        append(log, batch(b"before the sync"))
        task = log.sync.begin()
        task.run()
        append(log, batch(b"during the sync"))
        log.sync.roll()
        append(log, batch(b"after the roll"))
        log.sync.finish(task)
        assert log.flushed_offset == 1
        task = log.sync.begin()
        task.run()
        log.sync.finish(task)
        assert log.flushed_offset == 3
        disk.crash(seed)
        log = open_log(disk, recovery_point=3)
        assert [value for _, value in values(log)] == [
            b"before the sync",
            b"during the sync",
            b"after the roll",
        ], seed
        assert violations(log, disk) == []
