"""Settings as DescribeConfigs and CreateTopics show them: value, source, and the synonyms they come from.

Apache Kafka's rules, field by field. A sensitive value is never shown, and an unknown key counts as
sensitive. Entries are whole; a handler leaves out synonyms and documentation where they were not asked for.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from riverlog.model.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    broker_key,
    broker_synonyms,
    topic_synonym,
)
from riverlog.model.config.effective import (
    BrokerLayers,
    ConfigSource,
    topic_default,
    topic_default_text,
)
from riverlog.model.config.table import ConfigType, Key, UpdateMode
from riverlog.model.config.values import Value, default_of, parse, render


class SynonymEntry(NamedTuple):
    """One of the values that stand behind a setting, the one that counts coming first."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    is_read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[SynonymEntry, ...] = ()
    documentation: str | None = None


CLOCK: Final = "riverlog.clock.ms"
"""A key that shows what time it is for a broker. Nobody can set it, and only who names it is shown it."""


def describe_clock(wall_ms: int) -> ConfigEntry:
    documentation = "The broker's wall clock when it was asked, in milliseconds since 1970."
    return ConfigEntry(
        CLOCK,
        str(wall_ms),
        ConfigSource.DEFAULT,
        ConfigType.LONG,
        is_read_only=True,
        documentation=documentation,
    )


def describe_broker(layers: BrokerLayers, names: Collection[str] = ()) -> list[ConfigEntry]:
    """All settings of this broker, or those named; unknown names are left out."""
    explicit = {name for _, values in layers.layers() for name in values}
    shown = {name for name, key in BROKER_KEYS.items() if not key.is_internal} | explicit
    return [_broker_entry(layers, name) for name in _chosen(shown, names)]


def describe_broker_default(layers: BrokerLayers, names: Collection[str] = ()) -> list[ConfigEntry]:
    """What was altered for all brokers at once, and only that."""
    alone = BrokerLayers(dynamic_default=layers.dynamic_default)
    entries = []
    for name in _chosen(layers.dynamic_default, names):
        entry = _broker_entry(alone, name)
        synonyms = tuple(each for each in entry.synonyms if each.source != ConfigSource.DEFAULT)
        entries.append(entry._replace(synonyms=synonyms))
    return entries


def describe_topic(
    layers: BrokerLayers, overrides: Mapping[str, str], names: Collection[str] = ()
) -> list[ConfigEntry]:
    shown = [name for name, key in TOPIC_KEYS.items() if not key.is_internal or name in overrides]
    return [_topic_entry(layers, overrides, TOPIC_KEYS[name]) for name in _chosen(shown, names)]


def describe_group(
    layers: BrokerLayers, overrides: Mapping[str, str], names: Collection[str] = ()
) -> list[ConfigEntry]:
    entries = []
    for name in _chosen(GROUP_KEYS, names):
        key = GROUP_KEYS[name]
        broker = BROKER_KEYS.get(f"group.{name}")
        inherited = default_of(key) if broker is None else layers.value(broker)
        if broker is None:
            behind: tuple[SynonymEntry, ...] = (SynonymEntry(name, key.default, ConfigSource.DEFAULT),)
        else:
            behind = tuple(_synonyms(layers, broker.name))
        entries.append(_override_entry(key, overrides, ConfigSource.GROUP, inherited, behind))
    return entries


def describe_client_metrics(overrides: Mapping[str, str], names: Collection[str] = ()) -> list[ConfigEntry]:
    return [
        _override_entry(key, overrides, ConfigSource.CLIENT_METRICS, default_of(key), ())
        for key in (CLIENT_METRICS_KEYS[name] for name in _chosen(CLIENT_METRICS_KEYS, names))
    ]


def created_topic_entries(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """As CreateTopics answers: text as it was set, its source found through keys in other units too."""
    entries = []
    text: str | None
    for name in sorted(TOPIC_KEYS):
        key = TOPIC_KEYS[name]
        if name in overrides:
            text, source = overrides[name], ConfigSource.TOPIC
        elif key.is_internal:
            continue
        else:
            text, source = topic_default_text(layers, key)
        entries.append(ConfigEntry(name=name, value=text, source=source, type=key.type))
    return entries


def _chosen(shown: Collection[str], names: Collection[str]) -> list[str]:
    """Naming nothing asks for everything."""
    return sorted(set(shown) & set(names)) if names else sorted(shown)


def _broker_entry(layers: BrokerLayers, name: str) -> ConfigEntry:
    key = broker_key(name)
    is_sensitive = key is None or key.is_sensitive
    synonyms = tuple(_synonyms(layers, name))
    return ConfigEntry(
        name=name,
        value=None if key is None or is_sensitive else render(_broker_value(layers, name, key)),
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        type=ConfigType.UNKNOWN if key is None else key.type,
        # A key for one listener is shown as read-only although it can be altered; so says Kafka.
        is_read_only=key is None or key.name != name or key.mode is UpdateMode.READ_ONLY,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        documentation=key.documentation if key is not None and key.name == name else None,
    )


def _broker_value(layers: BrokerLayers, name: str, key: Key) -> Value:
    found = layers.explicit(name)
    return default_of(key) if found is None else parse(key, found[1])


def _synonyms(layers: BrokerLayers, name: str) -> Iterator[SynonymEntry]:
    """Values of the key and of its stand-ins, layer by layer, from the first that is the key's own."""
    names = [synonym.name for synonym in broker_synonyms(name)]
    key = broker_key(name)
    is_hidden = key is None or key.is_sensitive
    started = False
    for source, values in (*layers.layers(), (ConfigSource.DEFAULT, _defaults(names))):
        for each in names:
            if each in values:
                started = started or each == name
                if started:
                    yield SynonymEntry(each, None if is_hidden else values[each], source)


def _defaults(names: Collection[str]) -> Mapping[str, str]:
    found = {}
    for name in names:
        key = BROKER_KEYS.get(name)
        if key is not None and key.default is not None:
            found[name] = key.default
    return found


def _topic_entry(layers: BrokerLayers, overrides: Mapping[str, str], key: Key) -> ConfigEntry:
    broker = topic_synonym(key.name)
    behind = () if broker is None else tuple(_synonyms(layers, broker))
    inherited = None if key.name in overrides else topic_default(layers, key)
    return _override_entry(key, overrides, ConfigSource.TOPIC, inherited, behind)


def _override_entry(
    key: Key,
    overrides: Mapping[str, str],
    source: ConfigSource,
    inherited: Value,
    behind: tuple[SynonymEntry, ...],
) -> ConfigEntry:
    value = render(parse(key, overrides[key.name]) if key.name in overrides else inherited)
    own = (SynonymEntry(key.name, value, source),) if key.name in overrides else ()
    synonyms = own + behind
    return ConfigEntry(
        name=key.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        type=key.type,
        synonyms=synonyms,
        documentation=key.documentation,
    )
