"""What a whole set of overrides must fulfil, with the messages that clients know from Kafka.

Each function returns the first problem, or None. Single values are checked by `values`; here are names that
must exist, keys that may be altered, and settings that contradict each other.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from riverlog.model.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    LISTENER_PREFIX,
    TOPIC_KEYS,
    base_name,
    broker_key,
)
from riverlog.model.config.effective import BrokerLayers, topic_default
from riverlog.model.config.table import Key, UpdateMode
from riverlog.model.config.values import InvalidValueError, Value, parse
from riverlog.model.errors import ErrorCode

_PER_LISTENER_ONLY = frozenset(
    name
    for name in BROKER_KEYS
    if name.startswith(("ssl.keystore.", "ssl.truststore.")) or name == "ssl.key.password"
)
RACK_AWARE_SELECTORS: Final = ("rack", "org.apache.kafka.common.replica.RackAwareReplicaSelector")
_LEADER_SELECTORS: Final = (None, "", "org.apache.kafka.common.replica.LeaderSelector")
_LEAST: Mapping[str, int] = {"log.roll.ms": 1, "log.roll.jitter.ms": 0}
_PER_IP_OVERRIDES = "max.connections.per.ip.overrides"
_MATCHERS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def of_topic(overrides: Mapping[str, str], layers: BrokerLayers) -> str | None:
    unknown = sorted(set(overrides) - set(TOPIC_KEYS))
    if unknown:
        return f"Unknown topic config name: {unknown[0]}"
    if (problem := _invalid_value(overrides, TOPIC_KEYS)) is not None:
        return problem
    least, most = (_topic_number(overrides, layers, f"{bound}.compaction.lag.ms") for bound in ("min", "max"))
    if least > most:
        pair = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        return f"conflict topic config setting {pair}"
    if overrides.get("remote.storage.enable", "").strip().lower() == "true":
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def of_broker(overrides: Mapping[str, str], layers: BrokerLayers, *, is_default: bool) -> str | None:
    """`overrides` are those of the altered layer; unknown keys pass."""
    known = {name: key for name in overrides if (key := broker_key(name)) is not None}
    fixed = [name for name, key in known.items() if key.mode is UpdateMode.READ_ONLY and key.name == name]
    if fixed:
        return f"Cannot update these configs dynamically: {_listed(fixed)}"
    secrets = [name for name in overrides if name in _PER_LISTENER_ONLY]
    if secrets:
        prefix = (
            "These security configs can be dynamically updated only per-listener using the listener prefix"
        )
        return f"{prefix}: {_listed(secrets)}"
    if (problem := _invalid_value(overrides, known)) is not None:
        return problem
    single = [name for name, key in known.items() if _is_for_one_broker(name, key)]
    if is_default and single:
        prefix = "Cannot update these configs at default cluster level, broker id must be specified"
        return f"{prefix}: {_listed(single)}"
    return _fixed_here(overrides) or _broker_contradiction(overrides, layers)


def of_group(overrides: Mapping[str, str], layers: BrokerLayers) -> str | None:
    unknown = sorted(set(overrides) - set(GROUP_KEYS))
    if unknown:
        return f"Unknown group config name: {unknown[0]}"
    if (problem := _invalid_value(overrides, GROUP_KEYS)) is not None:
        return problem
    for name, text in overrides.items():
        protocol, _, rest = name.partition(".")
        for bound, wording in (("min", "greater"), ("max", "less")):
            limit = BROKER_KEYS.get(f"group.{protocol}.{bound}.{rest.removeprefix('num.')}")
            if limit is None:
                continue
            value, allowed = _number(parse(GROUP_KEYS[name], text)), _number(layers.value(limit))
            if (value < allowed) if bound == "min" else (value > allowed):
                return f"{name} must be {wording} than or equal to {limit.name}"
    return None


def of_client_metrics(overrides: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
    for name in sorted(set(overrides) - set(CLIENT_METRICS_KEYS)):
        return ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"
    if (problem := _invalid_value(overrides, CLIENT_METRICS_KEYS)) is not None:
        return ErrorCode.INVALID_CONFIG, problem
    interval = _number(parse(CLIENT_METRICS_KEYS["interval.ms"], overrides.get("interval.ms", "300000")))
    if not 100 <= interval <= 3_600_000:
        message = (
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )
        return ErrorCode.INVALID_REQUEST, message
    patterns = parse(CLIENT_METRICS_KEYS["match"], overrides.get("match", ""))
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        if not _is_matcher(pattern):
            return ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"
    return None


def broker_problem(name: str, value: Value) -> str | None:
    """Bounds that Kafka does not keep in the definition of the key; start-up asks for them as well."""
    if name in _LEAST and _number(value) < _LEAST[name]:
        return f"{name} must be greater than or equal to {_LEAST[name]}"
    if name == "replica.selector.class" and value not in (*RACK_AWARE_SELECTORS, *_LEADER_SELECTORS):
        return (
            f"{name}: there is no {value} here. Give it {RACK_AWARE_SELECTORS[0]}, by which consumers read "
            "from a replica in their rack, or leave it out, by which they read from leaders"
        )
    if name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours") and value == 0:
        return f"{name} must be unlimited (-1) or, greater than or equal to 1"
    return None


def _broker_contradiction(overrides: Mapping[str, str], layers: BrokerLayers) -> str | None:
    for name, text in overrides.items():
        if name in BROKER_KEYS and (problem := broker_problem(name, parse(BROKER_KEYS[name], text))):
            return f"requirement failed: {problem}"
    for name in ("max.connections", "max.connection.creation.rate"):
        if name in overrides and parse(BROKER_KEYS[name], overrides[name]) == 0:
            inner = f"org.apache.kafka.common.config.ConfigException: Invalid {name} 0"
            return f"Invalid value {inner} for configuration Invalid dynamic configuration"
    found = layers.explicit(_PER_IP_OVERRIDES)
    pairs = overrides.get(_PER_IP_OVERRIDES, "" if found is None else found[1])
    if overrides.get("max.connections.per.ip", "").strip() == "0" and not pairs.strip():
        condition = f"can be set to zero only if {_PER_IP_OVERRIDES} property is set"
        return f"requirement failed: max.connections.per.ip {condition}."
    for pair in filter(None, (part.strip() for part in pairs.split(","))):
        if not re.fullmatch(r".*:\s*-?\d+", pair):
            return f"Error parsing configuration property '{_PER_IP_OVERRIDES}': {pair}"
    return None


def _fixed_here(overrides: Mapping[str, str]) -> str | None:
    """Kafka opens and closes listeners while it runs; to take the change and do nothing would be a lie."""
    fixed = [name for name in ("listeners", "listener.security.protocol.map") if name in overrides]
    return (
        f"{_listed(fixed)} cannot be altered while the broker runs; restart it with them" if fixed else None
    )


def _is_for_one_broker(name: str, key: Key) -> bool:
    return key.mode is UpdateMode.PER_BROKER or (name.startswith(LISTENER_PREFIX) and base_name(name) != name)


def _invalid_value(overrides: Mapping[str, str], keys: Mapping[str, Key]) -> str | None:
    for name, key in keys.items():
        if name in overrides:
            try:
                parse(key, overrides[name])
            except InvalidValueError as error:
                return str(error)
    return None


def _topic_number(overrides: Mapping[str, str], layers: BrokerLayers, name: str) -> int:
    key = TOPIC_KEYS[name]
    return _number(parse(key, overrides[name]) if name in overrides else topic_default(layers, key))


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _is_matcher(pattern: str) -> bool:
    selector, separator, expression = pattern.partition("=")
    if not separator or selector.strip() not in _MATCHERS:
        return False
    try:
        re.compile(expression.strip())
    except re.error:
        return False
    return True


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
