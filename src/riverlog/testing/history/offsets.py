"""Committed offsets as a register per group and partition: what is found was committed, and not before."""

from collections import defaultdict
from collections.abc import Iterator

from riverlog.testing.history.anomalies import Anomaly, Kind
from riverlog.testing.history.events import Committed, FoundCommitted, Outcome, Place
from riverlog.testing.history.log_view import LogView


def lost_commits(view: LogView) -> Iterator[Anomaly]:
    commits: defaultdict[tuple[str, Place], list[Committed]] = defaultdict(list)
    for commit in view.commits:
        commits[commit.group, commit.place].append(commit)
    for found in view.found:
        allowed = _possible(commits[found.group, found.place], found)
        if found.offset not in allowed:
            expected = sorted(allowed, key=lambda offset: -1 if offset is None else offset)
            yield Anomaly(
                Kind.LOST_COMMIT,
                f"{found.client} found {found.offset} for {found.group} in "
                f"{found.place.topic}-{found.place.partition}, possible were {expected}",
            )


def _possible(commits: list[Committed], found: FoundCommitted) -> set[int | None]:
    """The newest that was sure to be in force, and all that may have come after it."""
    attempts = [each for each in commits if each.outcome is not Outcome.FAILED]
    settled = [each for each in attempts if each.outcome is Outcome.OK and each.ended_ns <= found.began_ns]
    newest_began = max((each.began_ns for each in settled), default=None)
    possible: set[int | None] = {None} if newest_began is None else set()
    for each in attempts:
        # An attempt that nobody saw return may take effect at any later time.
        overwritten = newest_began is not None and each.outcome is Outcome.OK and each.ended_ns < newest_began
        if each.began_ns <= found.ended_ns and not overwritten:
            possible.add(each.offset)
    return possible
