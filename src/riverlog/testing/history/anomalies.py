"""What can be wrong with a history, and how it is told."""

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

_SHOWN_PER_KIND = 5


class Kind(Enum):
    LOST_WRITE = "an acknowledged record is missing where later ones were read"
    UNSEEN_WRITE = "an acknowledged record lies past everything that was read"
    DUPLICATE = "a record was sent once and stands in the log more than once"
    ABORTED_READ = "a record of an aborted transaction was read"
    FAILED_READ = "a record that was refused was read"
    PHANTOM_READ = "a record was read that nobody sent"
    INCONSISTENT_OFFSET = "one offset has more than one value, or a record is not where it was acknowledged"
    OUT_OF_ORDER = "two records of one producer stand in the log in the other order"
    NON_MONOTONIC_SEND = "a producer was told an offset that is not above the one before"
    NON_MONOTONIC_POLL = "a consumer went back without being told to"
    SKIPPED_READ = "a consumer went past a record without reading it"
    TORN_TRANSACTION = "of one transaction some records are there and others are not"
    LOST_COMMIT = "a committed offset was not found again"


class Anomaly(NamedTuple):
    kind: Kind
    detail: str


def describe(anomalies: Sequence[Anomaly]) -> str:
    """For a person: how many of each kind, and the first few."""
    if not anomalies:
        return "no anomaly"
    counts = Counter(each.kind for each in anomalies)
    lines = []
    for kind, count in counts.items():
        lines.append(f"{count} x {kind.name}: {kind.value}")
        shown = [each.detail for each in anomalies if each.kind is kind][:_SHOWN_PER_KIND]
        lines.extend(f"    {detail}" for detail in shown)
    return "\n".join(lines)
