"""`Settings`: what was set for this node when it started, each value with the place it came from.

Values were checked when the object was made, so reading them cannot fail. What was altered while the broker
runs is not here: see `effective`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from riverlog.model.config.definitions import BROKER_KEYS, broker_key
from riverlog.model.config.table import Key
from riverlog.model.config.values import Value, default_of, parse
from riverlog.model.ids import NodeId

DEFAULT_NODE_ID = NodeId(1)


class Given(NamedTuple):
    """A value as it was written, and where: `server.properties line 12`, `--set`, an environment variable."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Only explicit values are kept; every other key has its default."""

    given: Mapping[str, Given] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What to tell the person who started the node, once."""

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str) -> Value:
        """The typed value of a broker key: what was given, or the default."""
        key = BROKER_KEYS[name]
        return parse(key, self.given[name].text) if name in self.given else default_of(key)

    def origin(self, name: str) -> str:
        return self.given[name].origin if name in self.given else "default"

    def altered(self, overrides: Mapping[str, str], *, only: Collection[str]) -> "Settings":
        """The same with some of the values that were altered since the start."""
        changed = {name: Given(overrides[name], "altered") for name in only if name in overrides}
        return Settings({**self.given, **changed}, self.warnings) if changed else self

    @property
    def static(self) -> Mapping[str, str]:
        """What was given explicitly, as text; and in any case the node's number, which has two names."""
        values = {name: given.text for name, given in self.given.items()}
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if name in values:
                values.setdefault(other, values[name])
        values.setdefault("node.id", str(DEFAULT_NODE_ID))
        return values

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={shown_value(name, given.text)!r}" for name, given in self.given.items())
        return f"Settings({shown})"


def shown_value(name: str, text: str) -> str:
    """A value for a message to a person; secrets, and values of unknown keys, stay hidden."""
    key: Key | None = broker_key(name)
    return text if key is not None and not key.is_sensitive else "[hidden]"
