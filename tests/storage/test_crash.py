"""Crash after every change to the disk: a whole prefix with everything acknowledged is left (I1, I10)."""

import pytest

from tests.storage.scenarios import changes_in_a_life, kill_faults, power_cut_faults

SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_power_cut_after_any_change_loses_nothing_acknowledged(shard: int) -> None:
    total = changes_in_a_life(synced=True)
    assert total > 150
    for power_off_after in range(1 + shard, total + 1, SHARDS):
        for seed in range(3):
            faults = power_cut_faults(power_off_after, seed)
            assert faults == [], f"power_cut_faults({power_off_after}, {seed})"


def test_a_kill_after_any_change_loses_nothing_written() -> None:
    for power_off_after in range(1, changes_in_a_life(synced=False) + 1):
        assert kill_faults(power_off_after) == [], f"kill_faults({power_off_after})"
