"""Makes replies of different runs comparable, by the rows of ``differences`` and nothing else.

It runs on what Kafka answers when a recording is made and on what Riverlog answers when it is replayed.
Three representations are fixed here for both: the records of a fetch are shown batch by batch, lists that
are maps in truth are sorted by their key, and a time that was set by the clock of the broker is told apart
from one that the client has chosen by standing in the years of this project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.differential import batches
from tests.differential.differences import Difference, Kind

Json = Any

BORN_AFTER_MS = 1_600_000_000_000
"""Sequences use timestamps before this moment, so that a later one came from a clock."""

MAPS = {
    ("DescribeConfigs", "results.configs"): "name",
    ("CreateTopics", "topics.configs"): "name",
    ("ApiVersions", "api_keys"): "api_key",
    ("ApiVersions", "supported_features"): "name",
    ("ApiVersions", "finalized_features"): "name",
}
"""Lists whose order follows a hash table in Kafka: API and path, and the field that is the key."""

_ABSENT: dict[str, tuple[Json, ...]] = {"session": (0,), "producer": (-1,)}
_RUN_WIDE = ("cluster_id", "log_dir", "port")


class Normaliser:
    """Holds the variables of one broker's run and counts which rows were of use."""

    def __init__(self, differences: Iterable[Difference], port: int) -> None:
        self._rows: dict[tuple[str, str], list[Difference]] = {}
        for row in differences:
            self._rows.setdefault((row.api, row.path), []).append(row)
        self.variables: dict[str, Json] = {"port": port}
        self.used: Counter[Difference] = Counter()

    def begin_script(self) -> None:
        self.variables = {
            name: value for name, value in self.variables.items() if name.partition(":")[0] in _RUN_WIDE
        }

    def row(self, api: str, version: int, path: str) -> Difference | None:
        rows = self._rows.get((api, path), ())
        return next((row for row in rows if row.covers(version)), None)

    def normalise(self, api: str, version: int, reply: Json, sent_text: str) -> Json:
        if api == "Fetch":
            _show_records(reply)
        return _Walk(self, api, version, sent_text).value(reply, "", {})

    def name_for(self, variable: str, value: Json, owner: Json) -> str:
        """The variable that holds this value, bound now if the value is new."""
        for name, bound in self.variables.items():
            if bound == value and name.partition(":")[0] == variable:
                return name
        name = variable
        if variable == "topic_id":
            name = f"topic_id:{owner.get('name') or owner.get('topic') or '?'}"
        elif variable in ("session", "producer"):
            name = f"{variable}:1"
        while name in self.variables:
            stem, _, count = name.rpartition("#")
            name = f"{stem or name}#{int(count) + 1 if stem else 2}"
        self.variables[name] = value
        return name


class _Walk:
    """One pass over one reply."""

    def __init__(self, run: Normaliser, api: str, version: int, sent_text: str) -> None:
        self._run, self._api, self._version, self._sent_text = run, api, version, sent_text

    def value(self, value: Json, path: str, owner: Json) -> Json:
        match value:
            case dict():
                return self._fields(value, path)
            case list() if (self._api, path) in MAPS:
                key = MAPS[self._api, path]
                entries = sorted(value, key=lambda entry: (str(type(entry[key])), entry[key]))
                return [self._fields(entry, f"{path}{{{entry[key]}}}", path) for entry in entries]
            case list():
                return [self.value(inner, path, owner) for inner in value]
            case _:
                return value

    def _fields(self, fields: dict[str, Json], path: str, plain: str | None = None) -> Json:
        shown: dict[str, Json] = {}
        for name, value in fields.items():
            inner = f"{path}.{name}" if path else name
            fallback = inner if plain is None else f"{plain}.{name}"
            row = self._row(inner) or self._row(fallback) or self._clock_row(inner, value)
            if row is None or row.kind is Kind.DIFFERS:
                shown[name] = self.value(value, inner, fields)
            else:
                shown[name] = self._replaced(row, value, fields)
        return shown

    def _row(self, path: str) -> Difference | None:
        return self._run.row(self._api, self._version, path)

    def _clock_row(self, path: str, value: Json) -> Difference | None:
        if isinstance(value, int) and value > BORN_AFTER_MS:
            return self._row(path + "{append time}")
        return None

    def _replaced(self, row: Difference, value: Json, owner: Json) -> Json:
        if value is None or value == "" or value in _ABSENT.get(row.variable, ()):
            return value
        match row.kind:
            case Kind.TEXT:
                shown: Json = "$text"
            case Kind.BORN:
                shown = value if value == -1 else "$born"
            case _:
                shown = self._captured(row, value, owner)
        if shown != value:
            self._run.used[row] += 1
        return shown

    def _captured(self, row: Difference, value: Json, owner: Json) -> Json:
        bound = self._run.variables.items()
        known = any(value == held and name.partition(":")[0] == row.variable for name, held in bound)
        if not known and repr(value) in self._sent_text:
            return value  # our own literal, sent back to us
        return {"$var": self._run.name_for(row.variable, value, owner)}


def _show_records(reply: Json) -> None:
    for topic in reply["responses"]:
        for partition in topic["partitions"]:
            if partition["records"] is not None:
                partition["records"] = batches.render(bytes.fromhex(partition["records"]["$hex"]))
