"""With a rule of the cleaner switched off the checks must find something; otherwise they check nothing."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from riverlog.records.batch import BatchHeader
from riverlog.storage.cleanable_log import CleanableLog
from riverlog.storage.cleaning.filtering import BatchFilter
from riverlog.storage.cleaning.transactions import SeenTransactions
from riverlog.storage.producer_state import EndMarker
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.scenarios import changes_in_table_life, crash_faults
from tests.storage.cleaning.test_compaction_model import CompactionModel

# Nothing is made smaller or tried again: that something was found is enough.
QUICK = settings(
    CompactionModel.TestCase.settings,
    max_examples=2000,
    derandomize=True,
    database=None,
    print_blob=False,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def model_finds_something() -> bool:
    try:
        run_state_machine_as_test(CompactionModel, settings=QUICK)
    except AssertionError:
        return True
    return False


def test_without_the_bound_at_the_last_stable_offset_open_transactions_are_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CleanableLog, "settled_offset", property(lambda self: self.active_base_offset))
    assert model_finds_something()


def test_without_the_list_of_aborted_transactions_their_records_supersede_committed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SeenTransactions, "expect", lambda self, aborted: None)
    assert model_finds_something()


def test_without_the_markers_transactions_are_open_again_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drop(self: BatchFilter, header: BatchHeader, view: bytes, at: int) -> None:
        self._seen.end(header, EndMarker(is_abort=False, coordinator_epoch=0))

    monkeypatch.setattr(BatchFilter, "_control", drop)
    assert model_finds_something()


def test_without_finishing_replacements_a_crash_costs_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(directory: str, disk: SimulatedDisk) -> None:
        for name in disk.list(directory):
            if name.endswith((".cleaned", ".swap")):
                disk.unlink(f"{directory}/{name}")

    monkeypatch.setattr("riverlog.storage.loading.finish_replacements", forget)
    last = changes_in_table_life()
    assert any(crash_faults(after, lambda disk: disk.kill()) for after in range(last // 3, last))
