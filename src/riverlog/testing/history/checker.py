"""Finds the anomalies of a history. Pure: the same history gives the same anomalies, in the same order.

It knows nothing of brokers: a history is wrong when no log can explain it in which every acknowledged record
stands once, in its producer's order, and transactions are all or nothing. For `LOST_WRITE` to mean anything
somebody must have read to the end.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final

from riverlog.testing.history.anomalies import Anomaly, Kind
from riverlog.testing.history.events import Event, Outcome, Place, Sent
from riverlog.testing.history.log_view import LogView
from riverlog.testing.history.offsets import lost_commits
from riverlog.testing.history.reading import non_monotonic_polls, skipped_reads


def check(events: Iterable[Event]) -> list[Anomaly]:
    """Everything that is wrong; empty for a history that a correct broker can have produced."""
    view = LogView.of(events)
    return [anomaly for find in _CHECKS for anomaly in find(view)]


def _missing_writes(view: LogView) -> Iterator[Anomaly]:
    ends = {place: max(values) for place, values in view.values.items()}
    for value, sent in view.sends.items():
        if view.outcome_of(sent) is not Outcome.OK or value in view.offsets:
            continue
        last_read = ends.get(sent.place, -1)
        is_past = sent.offset is not None and sent.offset > last_read
        kind = Kind.UNSEEN_WRITE if is_past else Kind.LOST_WRITE
        yield Anomaly(kind, f"{_told(sent)}; read up to {last_read}")


def _duplicates(view: LogView) -> Iterator[Anomaly]:
    for value, offsets in view.offsets.items():
        if len(offsets) > 1:
            found = ", ".join(f"{_at(place)}@{offset}" for place, offset in sorted(offsets))
            yield Anomaly(Kind.DUPLICATE, f"{value} at {found}")


def _unwanted_reads(view: LogView) -> Iterator[Anomaly]:
    for value in view.offsets:
        sent = view.sends.get(value)
        if sent is None:
            yield Anomaly(Kind.PHANTOM_READ, f"{value} at {sorted(view.offsets[value])}")
        elif sent.transaction is not None and view.ends.get(sent.transaction) is Outcome.FAILED:
            yield Anomaly(Kind.ABORTED_READ, f"{_told(sent)} in {sent.transaction}")
        elif sent.outcome is Outcome.FAILED:
            yield Anomaly(Kind.FAILED_READ, _told(sent))


def _inconsistent_offsets(view: LogView) -> Iterator[Anomaly]:
    for place, values in view.values.items():
        for offset, found in values.items():
            if len(found) > 1:
                yield Anomaly(Kind.INCONSISTENT_OFFSET, f"{_at(place)}@{offset}: {sorted(found)}")
    for value, sent in view.sends.items():
        if sent.offset is None or value not in view.offsets:
            continue
        if (sent.place, sent.offset) not in view.offsets[value]:
            found_at = sorted(view.offsets[value])
            yield Anomaly(Kind.INCONSISTENT_OFFSET, f"{_told(sent)}, and read at {found_at}")


def _out_of_order(view: LogView) -> Iterator[Anomaly]:
    """In the log as read. A value that stands twice is told of as a duplicate, not here."""
    last: dict[tuple[str, Place], tuple[int, str]] = {}
    for value, sent in view.sends.items():
        found = [offset for place, offset in view.offsets.get(value, ()) if place == sent.place]
        if len(found) != 1:
            continue
        before = last.get((sent.client, sent.place))
        if before is not None and found[0] < before[0]:
            yield Anomaly(
                Kind.OUT_OF_ORDER,
                f"{sent.client} sent {before[1]} before {value}; {_at(sent.place)} has them at "
                f"{before[0]} and {found[0]}",
            )
        last[sent.client, sent.place] = (found[0], value)


def _non_monotonic_sends(view: LogView) -> Iterator[Anomaly]:
    acknowledged: defaultdict[tuple[str, Place], list[Sent]] = defaultdict(list)
    for sent in view.sends.values():
        if sent.offset is not None:
            acknowledged[sent.client, sent.place].append(sent)
    for sends in acknowledged.values():
        for earlier, later in pairwise(sends):
            assert earlier.offset is not None
            assert later.offset is not None
            if later.offset <= earlier.offset:
                yield Anomaly(Kind.NON_MONOTONIC_SEND, f"{_told(earlier)}, then {_told(later)}")


def _torn_transactions(view: LogView) -> Iterator[Anomaly]:
    """Committed ones with a hole are lost writes; here are those whose end nobody knows."""
    members: defaultdict[str, list[Sent]] = defaultdict(list)
    for sent in view.sends.values():
        if sent.transaction is not None and sent.outcome is not Outcome.FAILED:
            members[sent.transaction].append(sent)
    for transaction, sends in members.items():
        if view.ends.get(transaction, Outcome.UNKNOWN) is not Outcome.UNKNOWN:
            continue
        # Only acknowledged records are sure to be part of it, should it have been committed.
        missing = [
            each.value for each in sends if each.outcome is Outcome.OK and each.value not in view.offsets
        ]
        seen = [each.value for each in sends if each.value in view.offsets]
        if seen and missing:
            yield Anomaly(Kind.TORN_TRANSACTION, f"{transaction}: read {seen[:3]}, not {missing[:3]}")


def _told(sent: Sent) -> str:
    offset = "" if sent.offset is None else f" at {sent.offset}"
    return f"{sent.value} sent by {sent.client} to {_at(sent.place)}{offset} ({sent.outcome.value})"


def _at(place: Place) -> str:
    return f"{place.topic}-{place.partition}"


_CHECKS: Final[tuple[Callable[[LogView], Iterator[Anomaly]], ...]] = (
    _missing_writes,
    _duplicates,
    _unwanted_reads,
    _inconsistent_offsets,
    _out_of_order,
    _non_monotonic_sends,
    non_monotonic_polls,
    skipped_reads,
    _torn_transactions,
    lost_commits,
)
