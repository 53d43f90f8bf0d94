"""Reading, checking and showing one value, with the rules and the wording that Kafka's clients see.

Text becomes a typed value by the key's type and is then held against what the key allows. Rendering is the
way back, as DescribeConfigs shows it. A password is wrapped, so that no repr, log line or error shows it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from riverlog.model.config.table import ConfigType, Key, OneOf, Range, Shape


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is never shown."""

    text: str

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__


Value = bool | int | float | str | tuple[str, ...] | Secret | None


class InvalidValueError(ValueError):
    """A value that a key does not allow; the text is Kafka's."""

    @classmethod
    def of(cls, key: Key, shown: object, reason: str) -> "InvalidValueError":
        value = "[hidden]" if key.is_sensitive else shown
        return cls(f"Invalid value {value} for configuration {key.name}: {reason}")


_BITS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_REPLICAS = re.compile(r"[0-9]+:[0-9]+(?:,[0-9]+:[0-9]+)*")
_DURATION = re.compile(r"by_duration:P(?=.)(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?")


def parse(key: Key, text: str) -> Value:
    """The typed value of `text`; raises `InvalidValueError` where it is of the wrong type or not allowed."""
    value = _convert(key, text)
    _check(key, value)
    return value


def render(value: Value) -> str | None:
    match value:
        case None | Secret():
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
        case int() | str():
            return str(value)
        case _:
            assert_never(value)


def default_of(key: Key) -> Value:
    return None if key.default is None else _convert(key, key.default)


def _convert(key: Key, raw: str) -> Value:
    text = raw.strip()
    match key.type:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise InvalidValueError.of(key, raw, "Expected value to be either true or false")
            return text.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _integer(key, text)
        case ConfigType.DOUBLE:
            if not _DECIMAL.fullmatch(text):
                raise InvalidValueError.of(key, text, "Not a number of type DOUBLE")
            return float(text.rstrip("fFdD"))
        case ConfigType.LIST:
            # A repeated entry counts once, where it stands first.
            return tuple(dict.fromkeys(re.split(r"\s*,\s*", text))) if text else ()
        case ConfigType.PASSWORD:
            return Secret(text)
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.UNKNOWN:
            return text
        case _:
            assert_never(key.type)


def _integer(key: Key, text: str) -> int:
    limit = 1 << _BITS[key.type]
    if not _INTEGER.fullmatch(text) or len(text) > 20 or not -limit <= int(text) < limit:
        raise InvalidValueError.of(key, text, f"Not a number of type {key.type.name}")
    return int(text)


def _check(key: Key, value: Value) -> None:
    match key.allowed:
        case None:
            _refuse_empty_entries(key, value)
        case Range() as bounds:
            assert isinstance(value, int | float), key.name
            _check_range(key, value, bounds)
        case OneOf() as choice:
            _check_choice(key, value, choice)
        case Shape.NON_EMPTY:
            _refuse_empty_entries(key, value)
            if value in ("", ()):
                raise InvalidValueError.of(key, render(value), "String must be non-empty")
        case Shape.OFFSET_RESET:
            if value not in ("latest", "earliest") and not _DURATION.fullmatch(str(value)):
                known = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"
                reason = f"Invalid value `{value}` for configuration {key.name}. The value must be {known}."
                raise InvalidValueError.of(key, value, reason)
        case Shape.REPLICAS:
            assert isinstance(value, tuple), key.name
            _check_replicas(key, value)
        case _:
            assert_never(key.allowed)


def _refuse_empty_entries(key: Key, value: Value) -> None:
    if isinstance(value, tuple) and "" in value:
        raise InvalidValueError(f"Configuration '{key.name}' values must not be empty.")


def _check_range(key: Key, value: float, bounds: Range) -> None:
    if value == bounds.also:
        return
    if bounds.also is not None and bounds.maximum is not None:
        if not bounds.minimum <= value <= bounds.maximum:
            low, high, also = map(shown_number, (bounds.minimum, bounds.maximum, bounds.also))
            reason = f"Value must be between {low} and {high} or equal to {also}"
            raise InvalidValueError.of(key, render(value), reason)
    elif value < bounds.minimum:
        raise InvalidValueError.of(
            key, render(value), f"Value must be at least {shown_number(bounds.minimum)}"
        )
    elif bounds.maximum is not None and value > bounds.maximum:
        raise InvalidValueError.of(
            key, render(value), f"Value must be no more than {shown_number(bounds.maximum)}"
        )


def _check_choice(key: Key, value: Value, choice: OneOf) -> None:
    fold: Callable[[str], str] = str.upper if choice.ignore_case else str
    allowed = {fold(each) for each in choice.choices}
    how = " (case insensitive)" if choice.ignore_case else ""
    for each in value if isinstance(value, tuple) else (str(value),):
        if isinstance(value, tuple) and not each:
            _refuse_empty_entries(key, value)
        if fold(each) not in allowed:
            raise InvalidValueError.of(key, each, f"String must be one of{how}: {', '.join(choice.choices)}")


def _check_replicas(key: Key, value: tuple[str, ...]) -> None:
    joined = ",".join(value)
    if joined in ("", "*") or _REPLICAS.fullmatch(joined):
        return
    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    reason = f"{key.name} must be the literal '*' or a list of replicas in the following format: {form}"
    raise InvalidValueError.of(key, f"[{', '.join(value)}]", reason)


def shown_number(bound: float) -> str:
    return str(int(bound)) if bound.is_integer() else str(bound)


def _java_double(value: float) -> str:
    """A double the way Java writes it: an exponent below 1e-3 and from 1e7 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    exponent = int(f"{value:.16e}".rpartition("e")[2])
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
