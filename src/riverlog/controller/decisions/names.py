"""Which names a topic may have. Pure."""

import re
from collections.abc import Iterable
from typing import Final

NAME_LENGTH_MAX: Final = 249
"""Room for a partition number and a suffix in the 255 bytes of a file name."""


_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def problem_with(name: str) -> str | None:
    """Why no topic can have this name; `None` when one can."""
    if not name:
        return "A topic name cannot be empty."
    if name in {".", ".."}:
        return f"A topic cannot be named '{name}', which is a directory on every system."
    if len(name) > NAME_LENGTH_MAX:
        return f"A topic name has at most {NAME_LENGTH_MAX} characters; this one has {len(name)}."
    if _LEGAL.fullmatch(name) is None:
        return f"The topic name '{name}' has characters other than letters, digits, '.', '_' and '-'."
    return None


class TakenNames:
    """Finds the topic whose name differs from another only in '.' and '_', which are one in metric names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._by_key: dict[str, str] | None = None

    def colliding(self, name: str) -> str | None:
        if "." not in name and "_" not in name:
            return None
        if self._by_key is None:
            self._by_key = {_key(each): each for each in self._names if "." in each or "_" in each}
        other = self._by_key.get(_key(name))
        return None if other == name else other


def _key(name: str) -> str:
    return name.replace(".", "_")
