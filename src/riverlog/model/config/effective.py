"""Which value counts: what was altered for one broker, for all brokers, set at start-up, or the default.

A topic's own setting goes before all of them and is handled by the caller. Values in the layers were checked
when they were set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from riverlog.model.config.definitions import BROKER_KEYS, broker_synonyms, topic_synonym
from riverlog.model.config.table import Key
from riverlog.model.config.values import Value, default_of, parse


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
    return topic_default_and_source(layers, key)[0]


def topic_default_and_source(layers: BrokerLayers, key: Key) -> tuple[Value, ConfigSource]:
    """Broker keys in hours or minutes are converted to the topic's unit on the way."""
    name = topic_synonym(key.name)
    if name is None:
        return default_of(key), ConfigSource.DEFAULT
    for synonym in broker_synonyms(name):
        broker = BROKER_KEYS[synonym.name]
        value = layers.value(broker)
        if value is not None:
            found = layers.explicit(synonym.name)
            source = ConfigSource.DEFAULT if found is None else found[0]
            return _scaled(value, synonym.factor), source
    return default_of(key), ConfigSource.DEFAULT


def _scaled(value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    assert isinstance(value, int)
    return value * factor if value >= 0 else -1
