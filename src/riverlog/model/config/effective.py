"""Which value counts: what was altered for one broker, for all brokers, set at start-up, or the default.

A topic's own setting goes before all of them and is handled by the caller. Values in the layers were checked
when they were set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from riverlog.model.config.definitions import BROKER_KEYS, Synonym, broker_synonyms, topic_synonym
from riverlog.model.config.table import Key
from riverlog.model.config.values import Value, default_of, parse, render


class ConfigSource(IntEnum):
    """Where a value comes from, with the numbers of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """A broker's settings, layer by layer, as text."""

    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic_broker: Mapping[str, str] = field(default_factory=dict)

    def layers(self) -> Iterator[tuple[ConfigSource, Mapping[str, str]]]:
        """Explicit values, the weightiest layer first."""
        yield ConfigSource.DYNAMIC_BROKER, self.dynamic_broker
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default
        yield ConfigSource.STATIC_BROKER, self.static

    def explicit(self, name: str) -> tuple[ConfigSource, str] | None:
        for source, values in self.layers():
            if name in values:
                return source, values[name]
        return None

    def value(self, key: Key) -> Value:
        found = self.explicit(key.name)
        return default_of(key) if found is None else parse(key, found[1])


def topic_default(layers: BrokerLayers, key: Key) -> Value:
    """The value of a topic's key that the topic itself does not set."""
    synonym = _source_of(layers, key)
    if synonym is None:
        return default_of(key)
    value = layers.value(BROKER_KEYS[synonym.name])
    return value if synonym.factor == 1 else _scaled(value, synonym.factor)


def topic_default_text(layers: BrokerLayers, key: Key) -> tuple[str | None, ConfigSource]:
    """The same as text, untouched where it was written in the topic's unit, and where it comes from."""
    synonym = _source_of(layers, key)
    found = None if synonym is None else layers.explicit(synonym.name)
    if synonym is None or found is None:
        return render(topic_default(layers, key)), ConfigSource.DEFAULT
    source, text = found
    return text if synonym.factor == 1 else render(topic_default(layers, key)), source


def _source_of(layers: BrokerLayers, key: Key) -> Synonym | None:
    """The broker key that decides, the first of the synonyms that has a value at all."""
    name = topic_synonym(key.name)
    for synonym in () if name is None else broker_synonyms(name):
        if layers.value(BROKER_KEYS[synonym.name]) is not None:
            return synonym
    return None


def _scaled(value: Value, factor: int) -> Value:
    assert isinstance(value, int)
    return value * factor if value >= 0 else -1
