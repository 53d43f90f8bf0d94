"""Every key there is: of brokers, topics, groups and client metrics subscriptions.

`BROKER_KEYS` holds what a server.properties may say; `TOPIC_KEYS` is in the order in which Kafka checks a
topic's settings, which decides the error that is reported first. `TOPIC_SYNONYMS` says from which broker keys
a topic's setting is taken when the topic does not override it.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from riverlog.model.config.keys import (
    client_metrics,
    cluster,
    dynamic,
    group_resource,
    groups,
    log,
    network,
    oauth,
    quotas,
    remote,
    riverlog,
    security,
    share_groups,
    topic,
    transactions,
    zookeeper,
)
from riverlog.model.config.table import Key, read_table

BROKER_THEMES: Mapping[str, Mapping[str, Key]] = {
    "Riverlog": read_table(riverlog.TABLE),
    "Node and cluster": read_table(cluster.TABLE),
    "ZooKeeper": read_table(zookeeper.TABLE),
    "Listeners and connections": read_table(network.TABLE),
    "Logs and topics": read_table(log.TABLE),
    "Transactions": read_table(transactions.TABLE),
    "Consumer groups": read_table(groups.TABLE),
    "Share and streams groups": read_table(share_groups.TABLE),
    "Quotas and metrics": read_table(quotas.TABLE),
    "Security": read_table(security.TABLE),
    "OAuth": read_table(oauth.TABLE),
    "Tiered storage": read_table(remote.TABLE),
}

BROKER_KEYS: Mapping[str, Key] = MappingProxyType(
    {name: key for keys in BROKER_THEMES.values() for name, key in keys.items()}
)
DYNAMIC_ONLY_KEYS: Mapping[str, Key] = MappingProxyType(read_table(dynamic.TABLE))
TOPIC_KEYS: Mapping[str, Key] = MappingProxyType(
    {**read_table(topic.TABLE), **read_table(riverlog.TOPIC_TABLE)}
)
GROUP_KEYS: Mapping[str, Key] = MappingProxyType(read_table(group_resource.TABLE))
CLIENT_METRICS_KEYS: Mapping[str, Key] = MappingProxyType(read_table(client_metrics.TABLE))


class Synonym(NamedTuple):
    """A broker key that stands in for another key, and what its value is multiplied with."""

    name: str
    factor: int = 1


_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

_BROKER_SYNONYMS: Mapping[str, tuple[Synonym, ...]] = {
    "log.retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTE_MS),
        Synonym("log.retention.hours", _HOUR_MS),
    ),
    "log.roll.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
    "log.roll.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
    "log.flush.interval.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
}

_TOPIC_TO_BROKER: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
}


def broker_synonyms(name: str) -> tuple[Synonym, ...]:
    """The keys that can give the value of a broker key, first the one that counts most."""
    if name.startswith(LISTENER_PREFIX):
        return (Synonym(name), Synonym(base_name(name)))
    for group in _BROKER_SYNONYMS.values():
        if any(synonym.name == name for synonym in group):
            return group if name != "log.flush.scheduler.interval.ms" else (Synonym(name),)
    return (Synonym(name),)


def topic_synonym(name: str) -> str | None:
    """The broker key behind a topic's key, if there is one."""
    return _TOPIC_TO_BROKER.get(name) or (name if name in BROKER_KEYS and name in TOPIC_KEYS else None)


LISTENER_PREFIX = "listener.name."


def base_name(name: str) -> str:
    """`listener.name.inner.ssl.key.password` is `ssl.key.password` for one listener; the rest stay."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    rest = name.removeprefix(LISTENER_PREFIX).split(".")
    for start in (1, 2):  # After the listener there may be a SASL mechanism.
        candidate = ".".join(rest[start:])
        if candidate in BROKER_KEYS:
            return candidate
    return name


def broker_key(name: str) -> Key | None:
    """The definition of a broker key, also of one for a single listener."""
    return BROKER_KEYS.get(base_name(name)) or DYNAMIC_ONLY_KEYS.get(name)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    import difflib  # Only for mistakes; start-up need not pay for it.

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.7)
    return found[0] if found else None
