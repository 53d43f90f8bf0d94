"""With a rule of the cleaner switched off the checks must find something; otherwise they check nothing."""

from collections.abc import Callable

import pytest

from riverlog.records.batch import BatchHeader
from riverlog.records.compression import Codec
from riverlog.storage.cleaning.filtering import BatchFilter
from riverlog.storage.cleaning.transactions import SeenTransactions
from riverlog.storage.log.replacement import LogReplacement
from riverlog.storage.producers.state import end_marker
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.scenarios import changes_in_table_life, crash_faults
from tests.storage.cleaning.test_compaction_model import PRODUCERS, CompactionModel

Life = Callable[[CompactionModel], None]


def model_complains(life: Life) -> bool:
    """Whether one of its checks fails in this life, or after it.

    The life is given, not searched for: how long a search takes depends on what else has been imported.
    """
    model = CompactionModel()
    model.begin()
    try:
        life(model)
        model.every_offset_holds_what_was_written_there()
        model.the_newest_of_each_key_is_there()
        model.open_transactions_hold_back_the_last_stable_offset()
        model.files_are_sound()
    except AssertionError:
        return True
    return False


def transaction_left_open(model: CompactionModel) -> None:
    model.write([(b"key", b"committed")], Codec.NONE)
    model.write_in_transaction([(b"key", b"not yet")], PRODUCERS[0])
    model.roll()
    model.clean(100_000, [])


def transaction_aborted(model: CompactionModel) -> None:
    model.write([(b"key", b"committed")], Codec.NONE)
    model.write_in_transaction([(b"key", b"aborted")], PRODUCERS[0])
    model.end(0, commit=False)
    model.roll()
    model.clean(100_000, [])


def restart_without_snapshots(model: CompactionModel) -> None:
    model.write_in_transaction([(b"key", b"committed")], PRODUCERS[0])
    model.end(0, commit=True)
    model.roll()
    model.clean(100_000, [])
    directory = model.log.directory
    for name in model.disk.list(directory):
        if name.endswith(".snapshot"):
            model.disk.unlink(f"{directory}/{name}")
    model.restart(clean=False, seed=1)


@pytest.mark.parametrize("life", [transaction_left_open, transaction_aborted, restart_without_snapshots])
def test_with_every_rule_in_place_there_is_nothing_to_complain_of(life: Life) -> None:
    assert not model_complains(life)


def test_without_the_bound_at_the_last_stable_offset_open_transactions_are_compacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        LogReplacement, "settled_offset", property(lambda self: self._state.segments.active.base_offset)
    )
    assert model_complains(transaction_left_open)


def test_without_the_list_of_aborted_transactions_their_records_supersede_committed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SeenTransactions, "expect", lambda self, aborted: None)
    assert model_complains(transaction_aborted)


def test_without_the_markers_transactions_are_open_again_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drop(self: BatchFilter, header: BatchHeader, view: bytes, at: int) -> None:
        self._seen.end(header, end_marker(header, view, at))

    monkeypatch.setattr(BatchFilter, "_control", drop)
    assert model_complains(restart_without_snapshots)


def test_without_finishing_replacements_a_crash_costs_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(directory: str, disk: SimulatedDisk) -> None:
        for name in disk.list(directory):
            if name.endswith((".cleaned", ".swap")):
                disk.unlink(f"{directory}/{name}")

    monkeypatch.setattr("riverlog.storage.log.loading.finish_replacements", forget)
    last = changes_in_table_life()
    assert any(crash_faults(after, lambda disk: disk.kill()) for after in range(last // 3, last))
