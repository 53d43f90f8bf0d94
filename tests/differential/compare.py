"""Finds where two recordings of one sequence disagree, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential.differences import Difference, Kind
from tests.differential.normalise import UNORDERED, Normaliser

Json = Any

_MISSING = "(nothing there)"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A place and the two values; ``api`` and ``version`` are those of the request."""

    exchange: int
    api: str
    version: int
    path: str
    kafka: Json
    ours: Json

    def __str__(self) -> str:
        where = f"exchange {self.exchange}, {self.api} v{self.version}, {self.path}"
        return f"{where}\n    Kafka:    {_short(self.kafka)}\n    Riverlog: {_short(self.ours)}"


def disagreements(kafka: list[Json], ours: list[Json], normaliser: Normaliser) -> list[Disagreement]:
    """What differs beyond the rows; a row of kind DIFFERS that excuses something counts as used."""
    found: list[Disagreement] = []
    for index, (theirs, mine) in enumerate(zip(_flat(kafka), _flat(ours), strict=True)):
        api, version = answered_as(theirs["send"])
        expected = {key: value for key, value in theirs.items() if key != "send"}
        actual = {key: value for key, value in mine.items() if key != "send"}
        for path, rows, a, b in _pairs(api, expected, actual, "", ("",)):
            excuses = [normaliser.row(api, version, row) for row in rows]
            excuse = next((row for row in excuses if row is not None and _excuses(row, a)), None)
            if excuse is not None:
                normaliser.used[excuse] += 1
            else:
                found.append(Disagreement(index, api, version, path, a, b))
    return found


def sent(exchanges: list[Json]) -> Json:
    """The steps of a recording without their outcomes, as JSON has them."""
    return json.loads(json.dumps([exchange["send"] for exchange in _flat(exchanges)]))


def _excuses(row: Difference, kafka: Json) -> bool:
    return row.kind is Kind.DIFFERS and row.when_kafka_says in (None, kafka)


def answered_as(send: Json) -> tuple[str, int]:
    """The API and version in which the reply to a step is written."""
    if "call" in send:
        send = send["call"]
    if "api" in send:
        return send["api"], send["version"]
    api, version = send.get("reads_as", ("frame", 0))
    return api, version


def _flat(exchanges: list[Json]) -> Iterator[Json]:
    for exchange in exchanges:
        yield from exchange.get("together", [exchange])


def _pairs(
    api: str, a: Json, b: Json, path: str, rows: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], Json, Json]]:
    """The unequal leaves: where, the row paths that may excuse them, and both values.

    A row for a field excuses all below it, so the paths of the fields around are passed down.
    """
    plain = rows[0]
    if isinstance(a, dict) and isinstance(b, dict):
        for name in list(a) + [name for name in b if name not in a]:
            inner = "" if name == "reply" and not path else (f"{plain}.{name}" if plain else name)
            yield from _pairs(
                api,
                a.get(name, _MISSING),
                b.get(name, _MISSING),
                f"{path}.{name}".lstrip("."),
                (inner, *rows),
            )
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_pairs(api, a, b, path, rows)
    elif a != b or type(a) is not type(b):
        yield path, rows, a, b


def _list_pairs(
    api: str, a: list[Json], b: list[Json], path: str, rows: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], Json, Json]]:
    key = UNORDERED.get((api, rows[0]))
    left, right = (_by_key(entries, key) for entries in (a, b))
    if left is None or right is None:
        for index in range(max(len(a), len(b))):
            mine = b[index] if index < len(b) else _MISSING
            theirs = a[index] if index < len(a) else _MISSING
            yield from _pairs(api, theirs, mine, f"{path}[{index}]", rows)
        return
    for name in list(left) + [name for name in right if name not in left]:
        pair = left.get(name, _MISSING), right.get(name, _MISSING)
        keyed = f"{rows[0]}{{{name}}}"
        for where, inner, theirs, mine in _pairs(api, *pair, f"{path}{{{name}}}", rows):
            below = tuple(row.replace(rows[0], keyed, 1) for row in inner if row.startswith(rows[0]))
            yield where, (*below, *inner), theirs, mine


def _by_key(entries: list[Json], key: str | None) -> dict[Json, Json] | None:
    """The entries by their key, unless there is none or two share one."""
    if key is None:
        return None
    found = {_hashable(entry.get(key)): entry for entry in entries}
    return found if len(found) == len(entries) else None


def _hashable(key: Json) -> Json:
    """A key may be a variable, which is shown as an object."""
    return key["$var"] if isinstance(key, dict) else key


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."
