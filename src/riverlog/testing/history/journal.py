"""A client's history in a file, written as it happens, so that a killed client leaves what it knew.

One JSON array a line, each line written whole; a line that the client's end cut off is dropped. What a
client was about to do goes in before it does it: a send without an outcome counts as unknown.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

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

    def committed(
        self, group: str, place: tuple[str, int], offset: int, outcome: Outcome, began_ns: int, ended_ns: int
    ) -> None:
        self._write("committed", group, place, offset, outcome.value, began_ns, ended_ns)

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
    offsets: dict[str, int] = {}
    refused: set[str] = set()
    for _, kind, *rest in entries:
        if kind == "acknowledged":
            offsets.update(rest[0])
        elif kind == "refused":
            refused.update(rest[0])
    for client, kind, *rest in entries:
        match kind, rest:
            case "sending", [transaction, values]:
                for topic, partition, value in values:
                    outcome = _outcome(value, offsets, refused)
                    place = Place(topic, partition)
                    yield Sent(client, place, value, outcome, offsets.get(value), transaction)
            case "ended", [transaction, outcome]:
                yield Ended(client, transaction, Outcome(outcome))
            case "positioned", [places]:
                yield from (Positioned(client, Place(*place)) for place in places)
            case "read", [records]:
                for topic, partition, offset, value in records:
                    yield Read(client, Place(topic, partition), offset, value)
            case "committed", [group, place, offset, outcome, began_ns, ended_ns]:
                yield Committed(client, group, Place(*place), offset, Outcome(outcome), began_ns, ended_ns)
            case "found", [group, place, offset, began_ns, ended_ns]:
                yield FoundCommitted(client, group, Place(*place), offset, began_ns, ended_ns)


def _outcome(value: str, offsets: dict[str, int], refused: set[str]) -> Outcome:
    if value in offsets:
        return Outcome.OK
    return Outcome.FAILED if value in refused else Outcome.UNKNOWN
