"""With a safeguard switched off the checks must find something; otherwise they check nothing."""

import pytest

from riverlog.records import batch as batches
from riverlog.storage.disk import guarded as guarded_disk
from riverlog.storage.disk.guarded import GuardedFile
from riverlog.storage.log.syncing import LogSync, SyncTask
from riverlog.storage.producers.state import ProducerStates
from tests.storage.scenarios import (
    changes_in,
    flipped_bit_faults,
    kill_faults,
    overlapping_life,
    power_cut_faults,
    retry_faults,
    synced_life,
    written_life,
)

VALUE_BIT = (61 + 10) * 8  # Within the first batch's records, so that only the CRC can tell.


def test_without_the_crc_check_a_flipped_bit_goes_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert flipped_bit_faults(VALUE_BIT) == ([], 0)
    monkeypatch.setattr(batches, "crc_is_valid", lambda buffer, position, header: True)
    faults, end_offset = flipped_bit_faults(VALUE_BIT)
    assert faults
    assert end_offset > 0


def test_without_the_fsync_acknowledged_records_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    last = changes_in(synced_life)
    monkeypatch.setattr(GuardedFile, "datasync", lambda self: None)
    assert any(power_cut_faults(after, seed) for after in range(last // 2, last, 7) for seed in range(3))


def test_without_the_directory_fsync_acknowledged_records_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    last = changes_in(synced_life)
    monkeypatch.setattr(guarded_disk.GuardedDisk, "sync_directory", lambda self, path: None)
    assert any(power_cut_faults(after, seed) for after in range(last // 2, last, 7) for seed in range(3))


def test_without_the_deduplication_a_retry_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert retry_faults(restart=False) == []
    monkeypatch.setattr(ProducerStates, "decide_duplicate", lambda self, header: None)
    assert retry_faults(restart=False)
    monkeypatch.setattr(ProducerStates, "decide", lambda self, header, marker=None, check_sequence=True: None)
    assert any("the log holds" in fault for fault in retry_faults(restart=False))


def test_without_the_replay_producer_state_is_wrong_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    last = changes_in(written_life)
    assert not any(kill_faults(after) for after in range(last // 2, last, 11))
    monkeypatch.setattr("riverlog.storage.log.loading.replay_producers", lambda *args, **kwargs: None)
    assert any(kill_faults(after) for after in range(last // 2, last, 11))


def test_without_the_sync_of_rolled_segments_acknowledged_records_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = changes_in(overlapping_life)
    finish = LogSync.finish

    def forgetful(sync: LogSync, task: SyncTask) -> None:
        finish(sync, task)
        sync.unsynced = ()

    monkeypatch.setattr(LogSync, "finish", forgetful)
    assert any(
        power_cut_faults(after, seed, overlapping_life)
        for after in range(last // 4, last, 3)
        for seed in range(8)
    )
