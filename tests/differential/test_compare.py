"""The judge's own rules: what is a disagreement, what is excused, and what a captured value must keep to."""

from __future__ import annotations

from typing import Any

from tests.differential import batches
from tests.differential.compare import disagreements
from tests.differential.differences import Difference, Kind
from tests.differential.normalise import Normaliser

Json = Any

SEND = {"api": "Metadata", "version": 12, "fields": {}}


def test_a_field_that_differs_is_found_with_its_place() -> None:
    (found,) = _compared(
        _topics(("a", "NONE"), ("b", "NONE")), _topics(("a", "NONE"), ("b", "INVALID_TOPIC"))
    )
    assert (found.path, found.kafka, found.ours) == ("reply.topics{b}.error_code", "NONE", "INVALID_TOPIC")


def test_a_field_or_an_entry_that_is_missing_is_found() -> None:
    assert _compared({"reply": {"a": 1}}, {"reply": {}})
    assert _compared(_topics(("a", "NONE")), {"reply": {"topics": []}})
    assert _compared({"closed": True}, {"reply": {}})


def test_lists_of_numbers_are_compared_in_order() -> None:
    assert not _compared({"reply": {"isr": [1, 2]}}, {"reply": {"isr": [1, 2]}})
    assert _compared({"reply": {"isr": [1, 2]}}, {"reply": {"isr": [2, 1]}})


def test_false_is_not_zero() -> None:
    assert _compared({"reply": {"a": False}}, {"reply": {"a": 0}})


def test_a_row_excuses_its_own_path_and_version_only() -> None:
    row = Difference("Metadata", 12, 12, "controller_id", Kind.DIFFERS, "because")
    kafka, ours = (
        {"reply": {"controller_id": 1, "throttle": 0}},
        {"reply": {"controller_id": 2, "throttle": 0}},
    )
    assert not _compared(kafka, ours, row)
    assert _compared(kafka, ours, Difference("Metadata", 0, 11, "controller_id", Kind.DIFFERS, "because"))
    assert _compared(kafka, {"reply": {"controller_id": 1, "throttle": 9}}, row)


def test_a_row_for_one_value_of_kafka_excuses_no_other() -> None:
    row = Difference("Metadata", 12, 12, "code", Kind.DIFFERS, "because", when_kafka_says="BUG")
    assert not _compared({"reply": {"code": "BUG"}}, {"reply": {"code": "NONE"}}, row)
    assert _compared({"reply": {"code": "NONE"}}, {"reply": {"code": "BUG"}}, row)


def test_a_row_that_excuses_nothing_stays_unused() -> None:
    row = Difference("Metadata", 12, 12, "controller_id", Kind.DIFFERS, "because")
    normaliser = Normaliser([row], 1)
    reply = {"send": SEND, "reply": {"controller_id": 1}}
    assert not disagreements([reply], [reply], normaliser)
    assert not normaliser.used[row]


def test_a_captured_id_must_be_the_same_wherever_it_was() -> None:
    row = Difference("Metadata", 0, 13, "cluster_id", Kind.CAPTURED, "random", "cluster_id")
    normaliser = Normaliser([row], 1)
    first = normaliser.normalise("Metadata", 12, {"cluster_id": "x"}, "")
    assert first == normaliser.normalise("Metadata", 12, {"cluster_id": "x"}, "")
    assert first != normaliser.normalise("Metadata", 12, {"cluster_id": "y"}, "")


def test_a_sentence_is_compared_by_its_presence() -> None:
    row = Difference("Metadata", 0, 13, "words", Kind.TEXT, "for people")
    normaliser = Normaliser([row], 1)
    shown = [
        normaliser.normalise("Metadata", 12, {"words": words}, "")["words"] for words in (None, "", "x", "y")
    ]
    assert shown == [None, "", "$text", "$text"]


def test_a_batch_is_read_back_as_it_was_described() -> None:
    for codec in batches.CODECS:
        data = batches.build({"records": [{"key": "k", "value": "v" * 50}], "codec": codec})
        (shown,), incomplete = batches.render(data + data[:20])
        assert (shown["codec"], shown["crc_valid"], incomplete) == (codec, True, 20)
        assert shown["records"] == [{"offset_delta": 0, "timestamp_delta": 0, "key": "k", "value": "v" * 50}]
    (shown,), _ = batches.render(batches.build({"records": [{"value": "v"}], "force": {"crc": 1}}))
    assert shown["crc_valid"] is False


def _topics(*topics: tuple[str, str]) -> Json:
    return {"reply": {"topics": [{"name": name, "error_code": code} for name, code in topics]}}


def _compared(kafka: Json, ours: Json, *rows: Difference) -> Json:
    return disagreements([{"send": SEND} | kafka], [{"send": SEND} | ours], Normaliser(rows, 1))
