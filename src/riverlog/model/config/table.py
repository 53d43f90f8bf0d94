"""What is known about one key, and the reader of the text tables in which the keys are written down.

A table has a row per key: name, type, default, allowed values, importance, how it can be changed, status;
`internal` at the end keeps a key out of descriptions. The indented lines under a row document it. `null` is
the absent default and `""` the empty one. Allowed: `-`, `>=1`, `1..9`, `1..9|-1`, `one|two`, `~ONE|TWO`
(in any case), `non-empty`, `replicas`, `offset-reset`.
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple


class ConfigType(IntEnum):
    """Kinds of values, with their numbers in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(StrEnum):
    """How a setting of a broker changes while it runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Status(StrEnum):
    WORKS = "works"
    PLANNED = "planned"
    """Taken and shown, without effect so far."""
    ACCEPTED = "accepted"
    """Taken and shown; it means nothing here."""


class Range(NamedTuple):
    """Inclusive bounds, and one further number that is allowed outside them."""

    minimum: float
    maximum: float | None = None
    also: float | None = None


class OneOf(NamedTuple):
    choices: tuple[str, ...]
    ignore_case: bool = False


class Shape(StrEnum):
    """Allowed forms that are neither a range nor a choice."""

    NON_EMPTY = "non-empty"
    REPLICAS = "replicas"
    OFFSET_RESET = "offset-reset"


Allowed = Range | OneOf | Shape | None


class Key(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    allowed: Allowed
    importance: Importance
    mode: UpdateMode
    status: Status
    is_internal: bool
    documentation: str

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def is_read_only(self) -> bool:
        return self.mode is UpdateMode.READ_ONLY


def read_table(text: str) -> Mapping[str, Key]:
    """The keys of a table by name, in its order."""
    return {key.name: key for key in _keys(text)}


def _keys(text: str) -> Iterator[Key]:
    row: list[str] = []
    documentation: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            documentation.append(line.strip())
        elif line:
            if row:
                yield _key(row, documentation)
            row, documentation = line.split(), []
    if row:
        yield _key(row, documentation)


def _key(row: list[str], documentation: list[str]) -> Key:
    name, kind, default, allowed, importance, mode, status, *flags = row
    return Key(
        name=name,
        type=ConfigType[kind.upper()],
        default={"null": None, '""': ""}.get(default, default),
        allowed=_allowed(allowed),
        importance=Importance(importance),
        mode=UpdateMode(mode),
        status=Status(status),
        is_internal=flags == ["internal"],
        documentation=" ".join(documentation),
    )


_RANGE = re.compile(r"(?:>=(?P<least>-?[\d.]+)|(?P<low>-?\d+)\.\.(?P<high>-?[\d.]+)(?:\|(?P<also>-?\d+))?)")


def _allowed(text: str) -> Allowed:
    if text == "-":
        return None
    if text in set(Shape):
        return Shape(text)
    if found := _RANGE.fullmatch(text):
        also, high = found["also"], found["high"]
        return Range(
            float(found["least"] or found["low"]),
            float(high) if high else None,
            float(also) if also else None,
        )
    return OneOf(tuple(text.removeprefix("~").split("|")), ignore_case=text.startswith("~"))
