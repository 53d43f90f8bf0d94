"""What a single consumer may see: between two positions that it was given, every record once and forward."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from riverlog.testing.history.anomalies import Anomaly, Kind
from riverlog.testing.history.events import Place, Read
from riverlog.testing.history.log_view import LogView


def non_monotonic_polls(view: LogView) -> Iterator[Anomaly]:
    for (client, place), before, after in _steps(view):
        if after.offset <= before.offset:
            yield Anomaly(
                Kind.NON_MONOTONIC_POLL,
                f"{client} read {place.topic}-{place.partition}@{before.offset} and then @{after.offset}",
            )


def skipped_reads(view: LogView) -> Iterator[Anomaly]:
    """A record that any reader saw is there for all: nothing is deleted while a history is made."""
    known = {place: sorted(values) for place, values in view.values.items()}
    for (client, place), before, after in _steps(view):
        offsets = known[place]
        skipped = offsets[bisect_right(offsets, before.offset) : bisect_left(offsets, after.offset)]
        if skipped:
            yield Anomaly(
                Kind.SKIPPED_READ,
                f"{client} went from {place.topic}-{place.partition}@{before.offset} to @{after.offset} "
                f"past {skipped[:3]}",
            )


def _steps(view: LogView) -> Iterator[tuple[tuple[str, Place], Read, Read]]:
    """Each two reads that follow one another without a new position between them."""
    for reader, events in view.readers.items():
        for before, after in pairwise(events):
            if isinstance(before, Read) and isinstance(after, Read):
                yield reader, before, after
