"""With a check switched off some verdict must differ from Kafka's; otherwise nothing tests that check."""

from dataclasses import replace

import pytest

from riverlog.records import batch as batches
from riverlog.records import record_checks, validate
from riverlog.records.rules import BatchRules
from tests.records.produced_cases import TOPICS
from tests.records.test_kafka_verdicts import CASES, verdict_of


def disagreements() -> set[str]:
    """The cases whose verdict is not Kafka's."""
    return {
        f"{case.topic}: {case.name}"
        for case in CASES
        if not case.strict
        and verdict_of(case, replace(TOPICS[case.topic], validate_records=True))
        != (case.verdict, case.bad_records)
    }


def test_with_every_check_on_there_is_no_disagreement() -> None:
    assert disagreements() == set()


def test_without_the_crc_check_a_damaged_batch_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "crc_is_valid", lambda buffer, position, header: True)
    assert "plain: bad CRC" in disagreements()


def test_without_the_checks_of_the_header_contradictions_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_header_fault", lambda header: None)
    assert {
        "plain: control bit",
        "plain: producer with sequence -1",
    } <= disagreements()


def test_without_the_check_of_timestamps_the_future_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchRules, "timestamp_fault", lambda self, timestamp_ms, now_ms: None)
    assert {"plain: zstd: two in the future", "no-older-than-1h: none: first too old"} <= disagreements()


def test_without_a_second_look_odd_records_are_misjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    everything_is_fine = record_checks.Checked(1_800_000_000_000, offsets_in_order=True)
    monkeypatch.setattr(record_checks, "_scrutinise", lambda plain, rules, now_ms: everything_is_fine)
    assert {"compacted: lz4: no keys", "plain: gzip: header without key"} <= disagreements()
