"""A client's history in a file, written as it happens, so that a killed client leaves what it knew.

One JSON array a line, each line written whole; a line that the client's end cut off is dropped. What a
client was about to do goes in before it does it: a send without an outcome counts as unknown.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


class Journal:
    """Not shared between threads."""

    def __init__(self, path: Path, client: str) -> None:
        self._client = client
        self._commits = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def close(self) -> None:
        os.close(self._file)

    def sending(self, transaction: str | None, values: Sequence[tuple[str, int, str]]) -> None:
        """Topic, partition and value of each record, before it is handed to the producer."""
        self._write("sending", transaction, values)

    def acknowledged(self, offsets: Sequence[tuple[str, int]]) -> None:
        """Value and offset of each record that the broker took."""
        if offsets:
            self._write("acknowledged", offsets)

    def refused(self, values: Sequence[str]) -> None:
        """Records that were surely not written."""
        if values:
            self._write("refused", values)

    def ended(self, transaction: str, outcome: Outcome) -> None:
        self._write("ended", transaction, outcome.value)

    def positioned(self, places: Iterable[tuple[str, int]]) -> None:
        self._write("positioned", list(places))

    def read(self, records: Sequence[tuple[str, int, int, str]]) -> None:
        """Topic, partition, offset and value of each record."""
        if records:
            self._write("read", records)

    def committing(self, group: str, place: tuple[str, int], offset: int, began_ns: int) -> int:
        """An offset commit that is about to be asked for; a number by which to tell how it went."""
        self._commits += 1
        self._write("committing", self._commits, group, place, offset, began_ns)
        return self._commits

    def committed(self, number: int, outcome: Outcome, ended_ns: int) -> None:
        self._write("committed", number, outcome.value, ended_ns)

    def found(
        self, group: str, place: tuple[str, int], offset: int | None, began_ns: int, ended_ns: int
    ) -> None:
        self._write("found", group, place, offset, began_ns, ended_ns)

    def _write(self, *entry: object) -> None:
        line = json.dumps([self._client, *entry], separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]


def load(paths: Iterable[Path]) -> list[Event]:
    """The histories of all clients, one after the other."""
    return [event for path in paths for event in _events(path)]


def _events(path: Path) -> Iterator[Event]:
    with path.open("rb") as file:
        entries = [json.loads(line) for line in file if line.endswith(b"\n")]
    told = _Told.of(entries)
    for client, kind, *rest in entries:
        match kind, rest:
            case "sending", [transaction, values]:
                for topic, partition, value in values:
                    place, offset = Place(topic, partition), told.offsets.get(value)
                    yield Sent(client, place, value, told.outcome(value), offset, transaction)
            case "ended", [transaction, outcome]:
                yield Ended(client, transaction, Outcome(outcome))
            case "positioned", [places]:
                yield from (Positioned(client, Place(*place)) for place in places)
            case "read", [records]:
                for topic, partition, offset, value in records:
                    yield Read(client, Place(topic, partition), offset, value)
            case "committing", [number, group, place, offset, began_ns]:
                outcome, ended_ns = told.commits.get(number, (Outcome.UNKNOWN, began_ns))
                yield Committed(client, group, Place(*place), offset, outcome, began_ns, ended_ns)
            case "found", [group, place, offset, began_ns, ended_ns]:
                yield FoundCommitted(client, group, Place(*place), offset, began_ns, ended_ns)


@dataclass(slots=True)
class _Told:
    """What a client learned later about what it had begun."""

    offsets: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    commits: dict[int, tuple[Outcome, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[list[Any]]) -> "_Told":
        told = cls()
        for _, kind, *rest in entries:
            match kind, rest:
                case "acknowledged", [offsets]:
                    told.offsets.update(offsets)
                case "refused", [values]:
                    told.refused.update(values)
                case "committed", [number, outcome, ended_ns]:
                    told.commits[number] = (Outcome(outcome), ended_ns)
        return told

    def outcome(self, value: str) -> Outcome:
        if value in self.offsets:
            return Outcome.OK
        return Outcome.FAILED if value in self.refused else Outcome.UNKNOWN
