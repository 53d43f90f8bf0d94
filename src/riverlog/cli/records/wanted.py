"""What `consume` was asked for, as one value: which topics, which records, when to stop and how to write."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.printing.output import remark
from riverlog.cli.records.format import Writer

_PATTERN_SIGNS = "*?["


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop; with neither, only an interrupt ends the reading."""

    count: int | None
    exit_at_end: bool

    @property
    def has_end(self) -> bool:
        return self.exit_at_end or self.count is not None


@dataclass(frozen=True, slots=True)
class Wanted:
    topics: tuple[str, ...]
    """Those that are there at the start."""
    writer: Writer
    limits: Limits
    isolation: str
    tells_ends: bool = False
    patterns: tuple[str, ...] = ()
    """For topics that come later."""


def is_pattern(name: str) -> bool:
    """No name of a topic holds the signs of a pattern."""
    return any(sign in name for sign in _PATTERN_SIGNS)


def matches(topic: str, pattern: str) -> bool:
    """Internal topics match only a pattern that begins as they do."""
    return fnmatchcase(topic, pattern) and (pattern.startswith("__") or not topic.startswith("__"))


def matching_topics(connection: Connection, names: Sequence[str], *, waits: bool) -> tuple[str, ...]:
    """The topics, each once, with those that are there now in the place of each pattern.

    A pattern that none matches is an error, unless the reading `waits` for topics that come later.
    """
    found: dict[str, None] = {}
    for name in names:
        if not is_pattern(name):
            found[name] = None
            continue
        matching = [topic for topic in sorted(connection.metadata().topics) if matches(topic, name)]
        if not matching and waits:
            remark(f"no topic matches {name!r} yet; waiting for one")
        elif not matching:
            raise CommandError(
                f"no topic matches {name!r}",
                remedy="see what is there with `riverlog topic list`",
                code=ExitCode.NOT_FOUND,
            )
        found.update(dict.fromkeys(matching))
    return tuple(found)
