"""A history put in order: the log as all readers together saw it, and every send by its value."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class LogView:
    sends: dict[str, Sent] = field(default_factory=dict)
    """By value."""
    values: defaultdict[Place, defaultdict[int, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    """What readers found at each offset."""
    offsets: defaultdict[str, set[tuple[Place, int]]] = field(default_factory=lambda: defaultdict(set))
    """Where readers found each value."""
    ends: dict[str, Outcome] = field(default_factory=dict)
    """How each transaction ended."""
    readers: defaultdict[tuple[str, Place], list[Read | Positioned]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """What each consumer saw in each partition, in its order."""
    commits: list[Committed] = field(default_factory=list)
    found: list[FoundCommitted] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> "LogView":
        view = cls()
        for event in events:
            view._add(event)
        return view

    def outcome_of(self, sent: Sent) -> Outcome:
        """A record in a transaction is as sure as the transaction's end."""
        if sent.transaction is None or sent.outcome is Outcome.FAILED:
            return sent.outcome
        # Committing answers for every record in it, even one whose own acknowledgement got lost.
        return self.ends.get(sent.transaction, Outcome.UNKNOWN)

    def _add(self, event: Event) -> None:
        match event:
            case Sent():
                if event.value in self.sends:
                    raise ValueError(f"The value {event.value} was sent twice; values must be unique.")
                self.sends[event.value] = event
            case Read(_, place, offset, value):
                self.values[place][offset].add(value)
                self.offsets[value].add((place, offset))
                self.readers[event.client, place].append(event)
            case Positioned():
                self.readers[event.client, event.place].append(event)
            case Ended():
                self.ends[event.transaction] = event.outcome
            case Committed():
                self.commits.append(event)
            case FoundCommitted():
                self.found.append(event)
