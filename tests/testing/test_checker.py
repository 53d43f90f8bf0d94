"""The checker of histories finds each kind of anomaly, and none in histories that are merely untidy."""

from pathlib import Path

import pytest

from riverlog.testing.history import (
    Committed,
    Ended,
    Event,
    FoundCommitted,
    Journal,
    Kind,
    Outcome,
    Place,
    Positioned,
    Read,
    Sent,
    check,
    describe,
    load,
)

AT = Place("t", 0)
OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN


def sent(value: str, offset: int | None, outcome: Outcome = OK, transaction: str | None = None) -> Sent:
    return Sent("p", AT, value, outcome, offset, transaction)


def read(value: str, offset: int, client: str = "c") -> Read:
    return Read(client, AT, offset, value)


def committed(offset: int, began: int, ended: int, outcome: Outcome = OK) -> Committed:
    return Committed("c", "g", AT, offset, outcome, began, ended)


def found(offset: int | None, began: int, ended: int) -> FoundCommitted:
    return FoundCommitted("c", "g", AT, offset, began, ended)


FINE: dict[str, list[Event]] = {
    "nothing happened": [],
    "sent and read": [sent("a", 0), sent("b", 1), read("a", 0), read("b", 1)],
    "read by two": [sent("a", 0), read("a", 0), read("a", 0, "d")],
    "an unknown send is there": [sent("a", None, UNKNOWN), read("a", 0)],
    "an unknown send is not there": [sent("a", None, UNKNOWN), sent("b", 0), read("b", 0)],
    "a refused send is not there": [sent("a", None, FAILED)],
    "an aborted transaction is not read": [sent("a", 0, transaction="x"), Ended("p", "x", FAILED)],
    "a committed transaction is read": [sent("a", 0, transaction="x"), Ended("p", "x", OK), read("a", 0)],
    "a transaction of unknown end is read": [
        sent("a", 0, transaction="x"),
        sent("b", 1, transaction="x"),
        read("a", 0),
        read("b", 1),
    ],
    "a transaction of unknown end is not read": [sent("a", 0, transaction="x")],
    "an unacknowledged record of such a transaction is missing": [
        sent("a", 0, transaction="x"),
        sent("b", None, UNKNOWN, transaction="x"),
        read("a", 0),
    ],
    "a consumer is sent back": [
        sent("a", 0),
        sent("b", 1),
        read("a", 0),
        read("b", 1),
        Positioned("c", AT),
        read("a", 0),
    ],
    "a consumer is sent forward": [
        sent("a", 0),
        sent("b", 1),
        sent("c", 2),
        read("a", 0, "d"),
        read("b", 1, "d"),
        read("c", 2, "d"),
        read("a", 0),
        Positioned("c", AT),
        read("c", 2),
    ],
    "gaps between offsets are markers": [sent("a", 0), sent("b", 5), read("a", 0), read("b", 5)],
    "a commit is found": [committed(3, 1, 2), found(3, 3, 4)],
    "no commit is found before any": [committed(3, 5, 6), found(None, 1, 2)],
    "a commit under way may be found or not": [committed(3, 2, 5), found(None, 3, 4), found(3, 3, 4)],
    "an unknown commit may be found much later": [
        committed(3, 1, 2, UNKNOWN),
        committed(2, 3, 4),
        found(3, 5, 6),
        found(2, 5, 6),
    ],
    "a commit may go back when asked": [committed(3, 1, 2), committed(1, 3, 4), found(1, 5, 6)],
}

WRONG: dict[str, tuple[Kind, list[Event]]] = {
    "an acknowledged record is gone": (Kind.LOST_WRITE, [sent("a", 0), sent("b", 1), read("b", 1)]),
    "a committed record is gone": (
        Kind.LOST_WRITE,
        [
            sent("a", 0, transaction="x"),
            sent("b", 1, transaction="x"),
            Ended("p", "x", OK),
            read("b", 1),
        ],
    ),
    "a committed record without an offset is gone": (
        Kind.LOST_WRITE,
        [sent("a", None, UNKNOWN, transaction="x"), Ended("p", "x", OK)],
    ),
    "an acknowledged record lies past the end": (
        Kind.UNSEEN_WRITE,
        [sent("a", 0), sent("b", 1), read("a", 0)],
    ),
    "a record stands twice": (Kind.DUPLICATE, [sent("a", 0), read("a", 0), read("a", 1)]),
    "a record stands in two partitions": (
        Kind.DUPLICATE,
        [sent("a", 0), read("a", 0), Read("c", Place("t", 1), 0, "a")],
    ),
    "an aborted record is read": (
        Kind.ABORTED_READ,
        [sent("a", 0, transaction="x"), Ended("p", "x", FAILED), read("a", 0)],
    ),
    "a refused record is read": (Kind.FAILED_READ, [sent("a", None, FAILED), read("a", 0)]),
    "a record comes from nowhere": (Kind.PHANTOM_READ, [read("a", 0)]),
    "two readers see different values": (
        Kind.INCONSISTENT_OFFSET,
        [sent("a", None, UNKNOWN), sent("b", None, UNKNOWN), read("a", 0), read("b", 0, "d")],
    ),
    "a record is not where it was acknowledged": (
        Kind.INCONSISTENT_OFFSET,
        [sent("a", 0), read("a", 1)],
    ),
    "records changed places": (
        Kind.OUT_OF_ORDER,
        [sent("a", None, UNKNOWN), sent("b", None, UNKNOWN), read("b", 0), read("a", 1)],
    ),
    "a producer is told a lower offset": (Kind.NON_MONOTONIC_SEND, [sent("a", 1), sent("b", 0)]),
    "a producer is told an offset twice": (Kind.NON_MONOTONIC_SEND, [sent("a", 1), sent("b", 1)]),
    "a consumer goes back": (
        Kind.NON_MONOTONIC_POLL,
        [sent("a", 0), sent("b", 1), read("a", 0), read("b", 1), read("a", 0)],
    ),
    "a consumer stays": (Kind.NON_MONOTONIC_POLL, [sent("a", 0), read("a", 0), read("a", 0)]),
    "a consumer leaves one out": (
        Kind.SKIPPED_READ,
        [
            sent("a", 0),
            sent("b", 1),
            sent("c", 2),
            read("b", 1, "d"),
            read("a", 0),
            read("c", 2),
        ],
    ),
    "half of a transaction is there": (
        Kind.TORN_TRANSACTION,
        [sent("a", 0, transaction="x"), sent("b", 1, transaction="x"), read("a", 0)],
    ),
    "a committed offset is gone": (Kind.LOST_COMMIT, [committed(3, 1, 2), found(None, 3, 4)]),
    "a committed offset goes back unasked": (
        Kind.LOST_COMMIT,
        [committed(3, 1, 2), committed(7, 3, 4), found(3, 5, 6)],
    ),
    "a committed offset comes from nowhere": (Kind.LOST_COMMIT, [committed(3, 1, 2), found(4, 3, 4)]),
    "a refused commit is found": (Kind.LOST_COMMIT, [committed(3, 1, 2, FAILED), found(3, 3, 4)]),
}


@pytest.mark.parametrize("events", FINE.values(), ids=FINE)
def test_a_history_that_a_log_explains_has_no_anomaly(events: list[Event]) -> None:
    assert check(events) == [], describe(check(events))


@pytest.mark.parametrize(("kind", "events"), WRONG.values(), ids=WRONG)
def test_a_broken_history_is_found_out(kind: Kind, events: list[Event]) -> None:
    assert kind in {anomaly.kind for anomaly in check(events)}


def test_every_kind_of_anomaly_is_fed_to_the_checker() -> None:
    assert {kind for kind, _ in WRONG.values()} == set(Kind)


def test_a_value_that_is_sent_twice_is_the_fault_of_the_test() -> None:
    with pytest.raises(ValueError, match="unique"):
        check([sent("a", 0), sent("a", 1)])


def test_anomalies_are_counted_and_shown() -> None:
    shown = describe(check([sent("a", 0), sent("b", 1), read("b", 1)]))
    assert shown.startswith("1 x LOST_WRITE")
    assert "a sent by p to t-0 at 0 (ok)" in shown
    assert describe([]) == "no anomaly"


def test_a_journal_comes_back_as_its_history(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    journal = Journal(path, "p")
    journal.sending("x", [("t", 0, "a"), ("t", 0, "b"), ("t", 0, "c")])
    journal.acknowledged([("a", 7)])
    journal.refused(["b"])
    journal.ended("x", Outcome.OK)
    journal.positioned([("t", 0)])
    journal.read([("t", 0, 7, "a")])
    number = journal.committing("g", ("t", 0), 8, 1)
    journal.committed(number, Outcome.OK, 2)
    journal.committing("g", ("t", 0), 9, 3)
    journal.found("g", ("t", 0), 8, 3, 4)
    journal.close()
    with path.open("ab") as file:
        file.write(b'["p","read",[["t",0,9,"torn')
    assert load([path]) == [
        Sent("p", AT, "a", OK, 7, "x"),
        Sent("p", AT, "b", FAILED, None, "x"),
        Sent("p", AT, "c", UNKNOWN, None, "x"),
        Ended("p", "x", OK),
        Positioned("p", AT),
        Read("p", AT, 7, "a"),
        Committed("p", "g", AT, 8, OK, 1, 2),
        Committed("p", "g", AT, 9, UNKNOWN, 3, 3),
        FoundCommitted("p", "g", AT, 8, 3, 4),
    ]
