"""From text to `Settings`: a properties file, the environment and flags, in that order of growing weight.

A key that Kafka does not know is an error that names the nearest one; a real key that means nothing here is
taken with a warning. Nothing is read here: the text of the file and the environment are passed in.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from riverlog.model.config.definitions import (
    BROKER_KEYS,
    LISTENER_PREFIX,
    TOPIC_KEYS,
    base_name,
    nearest,
    topic_synonym,
)
from riverlog.model.config.keys.removed import REMOVED
from riverlog.model.config.properties import read_properties
from riverlog.model.config.requirements import broker_problem
from riverlog.model.config.settings import Given, Settings
from riverlog.model.config.table import Key, OneOf, Range, Status
from riverlog.model.config.values import InvalidValueError, parse, shown_number
from riverlog.model.errors import ConfigError

ENVIRONMENT_PREFIX = "RIVERLOG_"
RESERVED_VARIABLES = frozenset(
    {
        "RIVERLOG_BOOTSTRAP",
        "RIVERLOG_CONFIG",
        "RIVERLOG_DEBUG",
        "RIVERLOG_LOG_LEVEL",
        "RIVERLOG_SCHEMA_REGISTRY",
        "RIVERLOG_SPARK_MASTER",
        "RIVERLOG_SPARK_CONNECTOR_JARS",
        "RIVERLOG_KAFKA_JARS",
        "RIVERLOG_ORACLE",
        "RIVERLOG_DIFFERENTIAL_BOOTSTRAP",
        "RIVERLOG_HOSTILE_SEED",
    }
)
"""Variables of the command line, the scripts and the tests that are no settings of a broker."""

_PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.")


class ConfigSource(NamedTuple):
    """Where a set of values came from, and the values: (key, text, place)."""

    name: str
    values: Sequence[tuple[str, str, str]]


def load(
    *,
    file_text: str | None = None,
    file_name: str = "server.properties",
    environment: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> Settings:
    """Settings with the precedence flag > environment > file > default; raises `ConfigError`."""
    sources = []
    if file_text is not None:
        sources.append(from_file(file_text, file_name))
    if environment is not None:
        sources.append(from_environment(environment))
    sources.append(from_flags(flags))
    return combine(sources)


def from_file(text: str, name: str) -> ConfigSource:
    pairs = read_properties(text, name)
    return ConfigSource(name, [(pair.name, pair.value, f"{name} line {pair.line}") for pair in pairs])


def from_environment(environment: Mapping[str, str]) -> ConfigSource:
    values = []
    for variable in sorted(environment):
        if variable.startswith(ENVIRONMENT_PREFIX) and not _is_reserved(variable):
            place = f"environment variable {variable}"
            values.append((_key_of_variable(variable), environment[variable], place))
    return ConfigSource("environment", values)


def from_flags(flags: Iterable[str]) -> ConfigSource:
    values = []
    for flag in flags:
        name, separator, text = flag.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"--set {flag}: write it as key=value, for example --set num.partitions=3")
        values.append((name.strip(), text, f"--set {name.strip()}"))
    return ConfigSource("--set", values)


def from_mapping(values: Mapping[str, object], name: str = "config") -> ConfigSource:
    """Values from Python: texts, numbers, booleans and sequences of texts."""
    return ConfigSource(name, [(key, _text(value), f"{name}[{key!r}]") for key, value in values.items()])


def combine(sources: Iterable[ConfigSource]) -> Settings:
    """Later sources win over earlier ones, later values over earlier ones of the same source."""
    given: dict[str, Given] = {}
    for source in sources:
        for name, text, place in source.values:
            given.pop(name, None)
            given[name] = Given(text, place)
    warnings = [warning for name, value in given.items() if (warning := _check(name, value)) is not None]
    known = {name: value for name, value in given.items() if base_name(name) in BROKER_KEYS}
    return Settings(known, tuple(warnings))


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _is_reserved(variable: str) -> bool:
    return variable in RESERVED_VARIABLES or variable.startswith("RIVERLOG_TEST_")


def _key_of_variable(variable: str) -> str:
    """`RIVERLOG_LOG_SEGMENT_BYTES` is log.segment.bytes; our own keys need their prefix only once."""
    stem = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    by_stem = {name.replace(".", "_").lower(): name for name in (*BROKER_KEYS, *REMOVED)}
    for candidate in (stem, f"riverlog_{stem}"):
        if candidate in by_stem:
            return by_stem[candidate]
    close = nearest(stem, by_stem)
    hint = f"; did you mean {ENVIRONMENT_PREFIX}{close.upper()}?" if close else ""
    raise ConfigError(f"environment variable {variable}: there is no such setting{hint}")


def _check(name: str, given: Given) -> str | None:
    """A warning, or None where all is well; raises for an unknown key or a value that is not allowed."""
    if name in REMOVED:
        return f"{given.origin}: {name} {REMOVED[name]}. It is ignored."
    if name.startswith(_PLUGIN_PREFIXES):
        return f"{given.origin}: {name} is meant for a Java plugin and has no effect here."
    key = BROKER_KEYS.get(base_name(name))
    if key is None:
        raise ConfigError(f"{given.origin}: {_unknown(name)}")
    try:
        value = parse(key, given.text)
    except InvalidValueError as error:
        raise ConfigError(f"{given.origin}: {error}. {_remedy(key)}") from error
    if (problem := broker_problem(key.name, value)) is not None:
        raise ConfigError(f"{given.origin}: {problem}.")
    match key.status:
        case Status.WORKS:
            return None
        case Status.PLANNED:
            return f"{given.origin}: {name} has no effect yet."
        case Status.ACCEPTED:
            return f"{given.origin}: {name} is a setting of Apache Kafka that has no effect here."


def _unknown(name: str) -> str:
    if name in TOPIC_KEYS:
        synonym = topic_synonym(name)
        instead = f"; for all topics set {synonym}" if synonym else ""
        return f"{name} is a setting of topics, not of the broker{instead}"
    if name.startswith(LISTENER_PREFIX):
        return f"{name} does not end in a key that can be set for one listener"
    close = nearest(name, BROKER_KEYS)
    return f"there is no setting {name}" + (f"; did you mean {close}?" if close else "")


def _remedy(key: Key) -> str:
    """What to write instead."""
    kind = key.type.name.lower()
    match key.allowed:
        case Range(minimum, None, _):
            allowed = f"a number of at least {shown_number(minimum)}"
        case Range(minimum, float() as maximum, None):
            allowed = f"a number from {shown_number(minimum)} to {shown_number(maximum)}"
        case Range(minimum, float() as maximum, float() as also):
            allowed = (
                f"a number from {shown_number(minimum)} to {shown_number(maximum)}, or {shown_number(also)}"
            )
        case OneOf(choices):
            allowed = f"one of {', '.join(choices)}"
        case _:
            allowed = f"a value of type {kind}"
    default = "" if not key.default else f"; the default is {key.default}"
    return f"Give {key.name} {allowed}{default}."
