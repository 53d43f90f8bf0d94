"""Histories of what clients did and saw, and a checker that says whether a correct log can explain them.

The ideas are those of Jepsen's Kafka workload: every value is sent once, so that a value found twice, not at
all, or in the wrong place is an anomaly by itself. Not here: running clients or faults; a test does that,
with clients that write their history down as they go (`journal`), so that a killed one leaves its part.

    anomalies = check(events)
    assert not anomalies, describe(anomalies)
"""

from riverlog.testing.history.anomalies import Anomaly, Kind, describe
from riverlog.testing.history.checker import check
from riverlog.testing.history.events import (
    Committed,
    Ended,
    Event,
    FoundCommitted,
    Outcome,
    Place,
    Positioned,
    Read,
    Sent,
)
from riverlog.testing.history.journal import Journal, load

__all__ = [
    "Anomaly",
    "Committed",
    "Ended",
    "Event",
    "FoundCommitted",
    "Journal",
    "Kind",
    "Outcome",
    "Place",
    "Positioned",
    "Read",
    "Sent",
    "check",
    "describe",
    "load",
]
