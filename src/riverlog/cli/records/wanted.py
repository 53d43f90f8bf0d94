"""What `consume` was asked for, as one value: which topics, which records, when to stop and how to write."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode
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
    writer: Writer
    limits: Limits
    isolation: str
    tells_ends: bool = False


def matching_topics(connection: Connection, names: Sequence[str]) -> tuple[str, ...]:
    """The topics, each once, with those that are there now in the place of each pattern.

    No name of a topic holds the signs of a pattern. Internal topics match only a pattern that begins as they
    do.
    """
    found: dict[str, None] = {}
    for name in names:
        if not any(sign in name for sign in _PATTERN_SIGNS):
            found[name] = None
            continue
        matching = [
            topic
            for topic in sorted(connection.metadata().topics)
            if fnmatchcase(topic, name) and (name.startswith("__") or not topic.startswith("__"))
        ]
        if not matching:
            raise CommandError(
                f"no topic matches {name!r}",
                remedy="see what is there with `riverlog topic list`",
                code=ExitCode.NOT_FOUND,
            )
        found.update(dict.fromkeys(matching))
    return tuple(found)
