"""Which names a topic may have. Pure."""

import re
from collections.abc import Iterable
from typing import Final

NAME_LENGTH_MAX: Final = 249
"""Room for a partition number and a suffix in the 255 bytes of a file name."""

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

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


def collision_key(name: str) -> str:
    """Names with the same key cannot live together: in metric names '.' and '_' are the same."""
    return name.replace(".", "_")


def colliding(name: str, others: Iterable[str]) -> str | None:
    """A different name among `others` with the same key."""
    if "." not in name and "_" not in name:
        return None
    key = collision_key(name)
    return next((other for other in others if other != name and collision_key(other) == key), None)
