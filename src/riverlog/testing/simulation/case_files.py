"""Cases as files: what `shrink` has written, and traces, which begin with the case that they are of.

Both say of which version they are; another than this simulator's is refused, because what it says may mean
something else here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from riverlog.testing.simulation import trace
from riverlog.testing.simulation.cases import VERSION, Case, check
from riverlog.testing.simulation.schedules import ScheduleError

_ENTRIES: Final[Mapping[str, type]] = {
    "clients": dict,
    "faults": dict,
    "settings": str,
    "topic_settings": str,
    "replication": int,
}
"""What lists and tables of a case consist of."""


def from_json(text: str) -> Case:
    """Of a case, or of the first line of a trace. Raises `ScheduleError`."""
    given = _object(text)
    if "trace" in given:
        _check_version("trace", given["trace"], trace.VERSION)
        given = given.get("case")
    if not isinstance(given, dict):
        raise ScheduleError("a case is a JSON object")
    _check_version("case", given.get("version"), VERSION)
    unknown = sorted(given.keys() - set(Case.__dataclass_fields__))
    if unknown:
        raise ScheduleError(f"a case has no {', '.join(unknown)}")
    if "seed" not in given:
        raise ScheduleError("a case has a seed")
    _check_types(given)
    case = Case(**given)
    check(case)
    return case


def _object(text: str) -> Any:
    """A trace has more behind it."""
    try:
        given, end = json.JSONDecoder().raw_decode(text.lstrip())
    except json.JSONDecodeError as error:
        raise ScheduleError(f"a case is a JSON object: {error}") from error
    if not isinstance(given, dict):
        raise ScheduleError("a case is a JSON object")
    if "trace" not in given and text.lstrip()[end:].strip():
        raise ScheduleError("a case is one JSON object, and more stands behind it")
    return given


def _check_version(what: str, found: object, version: int) -> None:
    if found != version:
        raise ScheduleError(f"the {what} is of version {found}; this simulator reads version {version}")


def _check_types(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        wanted = type(getattr(Case(0), name))
        if not isinstance(value, (int, float) if wanted is float else wanted):
            raise ScheduleError(f"{name} of a case is of type {wanted.__name__}, and not {value!r}")
    for name, entry in _ENTRIES.items():
        found = given.get(name, ())
        if not all(
            isinstance(each, entry) for each in (found.values() if isinstance(found, dict) else found)
        ):
            raise ScheduleError(f"{name} of a case consists of {entry.__name__}, and not of {found!r}")
