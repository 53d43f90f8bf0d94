"""What AlterConfigs and IncrementalAlterConfigs may do: the new overrides, or the error that Kafka gives.

Pure decisions about the settings of one resource. Not here: whether a topic exists and is well named, which
broker was meant, resources that appear twice. An alteration is all or nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from riverlog.model.config import requirements
from riverlog.model.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    broker_key,
)
from riverlog.model.config.effective import BrokerLayers, topic_default
from riverlog.model.config.table import ConfigType, Key
from riverlog.model.config.values import default_of, render
from riverlog.model.errors import ErrorCode


class AlterOperation(IntEnum):
    """The numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    value: str | None


class Altered(NamedTuple):
    """The overrides of the resource after the alteration, complete."""

    overrides: Mapping[str, str]


class AlterationRefused(NamedTuple):
    error: ErrorCode
    message: str | None


def replacing(configs: Iterable[tuple[str, str | None]]) -> list[Change]:
    """The changes of AlterConfigs, which replaces everything: apply them to no overrides at all."""
    return [Change(name, AlterOperation.SET, value) for name, value in configs]


def alter_topic(
    current: Mapping[str, str], changes: Sequence[Change], layers: BrokerLayers
) -> Altered | AlterationRefused:
    altered = _alter(current, changes, TOPIC_KEYS, lambda key: render(topic_default(layers, key)))
    return altered if isinstance(altered, AlterationRefused) else check_topic(altered.overrides, layers)


def check_topic(overrides: Mapping[str, str], layers: BrokerLayers) -> Altered | AlterationRefused:
    """A topic's overrides as a whole; CreateTopics asks the same."""
    problem = requirements.of_topic(overrides, layers)
    return Altered(overrides) if problem is None else AlterationRefused(ErrorCode.INVALID_CONFIG, problem)


def alter_broker(
    current: Mapping[str, str], changes: Sequence[Change], layers: BrokerLayers, *, is_default: bool
) -> Altered | AlterationRefused:
    """`is_default`: for all brokers at once, else for one. Unknown keys are kept, as Kafka does."""
    if (refused := refused_at_sight(changes)) is not None:
        return refused
    overrides = dict(current)
    for change in changes:
        key = broker_key(change.name)
        if (refused := _refused_list_change(change, key)) is not None:
            return refused
        found = layers.static.get(change.name)
        default = found if found is not None or key is None else render(default_of(key))
        if (refused := _apply(overrides, change, key, default)) is not None:
            return refused
    problem = requirements.of_broker(overrides, layers, is_default=is_default)
    return Altered(overrides) if problem is None else AlterationRefused(ErrorCode.INVALID_REQUEST, problem)


def alter_group(
    current: Mapping[str, str], changes: Sequence[Change], layers: BrokerLayers
) -> Altered | AlterationRefused:
    altered = _alter(current, changes, GROUP_KEYS)
    if isinstance(altered, AlterationRefused):
        return altered
    problem = requirements.of_group(altered.overrides, layers)
    return altered if problem is None else AlterationRefused(ErrorCode.INVALID_CONFIG, problem)


def alter_client_metrics(
    current: Mapping[str, str], changes: Sequence[Change]
) -> Altered | AlterationRefused:
    altered = _alter(current, changes, CLIENT_METRICS_KEYS)
    if isinstance(altered, AlterationRefused):
        return altered
    problem = requirements.of_client_metrics(altered.overrides)
    return altered if problem is None else AlterationRefused(*problem)


def _alter(
    current: Mapping[str, str],
    changes: Sequence[Change],
    keys: Mapping[str, Key],
    default_for: Callable[[Key], str | None] = lambda key: key.default,
) -> Altered | AlterationRefused:
    """Key by key; what they are together is not looked at."""
    if (refused := refused_at_sight(changes)) is not None:
        return refused
    overrides = dict(current)
    for change in changes:
        key = keys.get(change.name)
        default = None if key is None else default_for(key)
        if (refused := _apply(overrides, change, key, default)) is not None:
            return refused
    return Altered(overrides)


def refused_at_sight(changes: Sequence[Change]) -> AlterationRefused | None:
    """What is wrong with the request itself, whatever it is about."""
    if any(change.operation not in set(AlterOperation) for change in changes):
        return AlterationRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    if any(count > 1 for count in Counter(change.name for change in changes).values()):
        return AlterationRefused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [each.name for each in changes if each.value is None and each.operation != AlterOperation.DELETE]
    if nulls:
        return AlterationRefused(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(nulls)}"
        )
    return None


def _refused_list_change(change: Change, key: Key | None) -> AlterationRefused | None:
    """Brokers have a wording of their own for lists that are none."""
    if change.operation not in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        return None
    if key is not None and key.type is ConfigType.LIST:
        return None
    if change.name not in BROKER_KEYS:
        return AlterationRefused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
    verb = AlterOperation(change.operation).name.lower()
    message = f"Config value {verb} is not allowed for config key: {change.name}"
    return AlterationRefused(ErrorCode.INVALID_CONFIG, message)


def _apply(
    overrides: dict[str, str], change: Change, key: Key | None, default: str | None
) -> AlterationRefused | None:
    match AlterOperation(change.operation):
        case AlterOperation.DELETE:
            overrides.pop(change.name, None)
        case AlterOperation.SET:
            assert change.value is not None
            overrides[change.name] = change.value
        case AlterOperation.APPEND | AlterOperation.SUBTRACT as operation:
            assert change.value is not None
            if key is None or key.type is not ConfigType.LIST:
                message = f"Can't {operation.name} to key {change.name} because its type is not LIST."
                return AlterationRefused(ErrorCode.INVALID_CONFIG, message)
            parts = [part for part in overrides.get(change.name, default or "").split(",") if part]
            overrides[change.name] = ",".join(_changed(parts, change.value, operation))
    return None


def _changed(parts: list[str], value: str, operation: AlterOperation) -> list[str]:
    """Kafka's way: parts are compared with their spaces, and a subtraction takes away one of each."""
    parts = list(parts)
    for part in value.split(","):
        if operation is AlterOperation.SUBTRACT:
            if part in parts:
                parts.remove(part)
        elif part not in parts:
            parts.append(part)
    return parts
