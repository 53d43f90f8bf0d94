"""The options `kafka.*`: how to reach the cluster, and those settings of a Kafka client that have a meaning.

Source and sink share this. A key that would take a decision away from Spark is refused, as Spark's own
connector refuses it; a real Kafka key that means nothing here is warned about.
"""

import difflib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from riverlog.client.cluster import ClientSettings
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address
from riverlog.spark.kafka_keys import CLIENT_KEYS

PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"
_DEFAULT_PORT: Final = 9092
_SHARED_KEYS: Final = frozenset(
    {"bootstrap.servers", "client.id", "request.timeout.ms", "default.api.timeout.ms", "security.protocol"}
)
_DECODE_REMEDY: Final = "key and value are always binary; decode them with DataFrame operations"
_ENCODE_REMEDY: Final = "cast key and value to string or binary with DataFrame operations"
FORBIDDEN_KEYS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "set startingOffsets to earliest or latest instead",
    "key.deserializer": _DECODE_REMEDY,
    "value.deserializer": _DECODE_REMEDY,
    "key.serializer": _ENCODE_REMEDY,
    "value.serializer": _ENCODE_REMEDY,
    "enable.auto.commit": "progress is kept in the checkpoint and committed after each batch",
    "interceptor.classes": "there is no Java client here to run them",
}

_log = logging.getLogger(__name__)


class OptionError(RiverlogError):
    """An option of the data source is missing, unknown, or has a value that cannot be used."""

    def __init__(self, option: str, problem: str, remedy: str) -> None:
        super().__init__(f"option {option}: {problem}; {remedy}")


@dataclass(frozen=True, slots=True)
class Connection:
    settings: ClientSettings
    properties: Mapping[str, str]
    """The options `kafka.*` as given, without the prefix."""

    def text(self, key: str, default: str, allowed: Collection[str] | None = None) -> str:
        value = self.properties.get(key, default)
        if allowed is not None and value.lower() not in allowed:
            raise OptionError(PREFIX + key, f"{value!r} is not known", f"use one of {', '.join(allowed)}")
        return value if allowed is None else value.lower()

    def number(self, key: str, default: int, minimum: int = 0) -> int:
        value = self.properties.get(key)
        return default if value is None else whole_number(PREFIX + key, value, minimum)

    def flag(self, key: str, default: bool) -> bool:
        value = self.properties.get(key)
        return default if value is None else true_or_false(PREFIX + key, value)


def connection_of(
    options: Mapping[str, str], known: Collection[str], *, client_id: str = "riverlog-spark"
) -> Connection:
    """`known` are the keys, without prefix, that the caller looks at."""
    properties = {key[len(PREFIX) :]: value for key, value in options.items() if is_kafka_key(key)}
    for key in properties:
        if key in FORBIDDEN_KEYS:
            raise OptionError(PREFIX + key, "cannot be set", FORBIDDEN_KEYS[key])
        if key not in known and key not in _SHARED_KEYS:
            _check_spelling(key)
            _log.warning("option %s%s has no effect: riverlog does not use that setting", PREFIX, key)
    settings = ClientSettings(bootstrap=_addresses(properties.get("bootstrap.servers")), client_id=client_id)
    connection = Connection(settings, properties)
    connection.text("security.protocol", "plaintext", ["plaintext"])
    chosen = ClientSettings(
        bootstrap=settings.bootstrap,
        client_id=connection.text("client.id", client_id),
        request_timeout_s=connection.number("request.timeout.ms", 30_000, 1) / 1000,
        retry_deadline_s=connection.number("default.api.timeout.ms", 60_000, 1) / 1000,
    )
    return Connection(chosen, properties)


def is_kafka_key(name: str) -> bool:
    return name.lower().startswith(PREFIX)


def _check_spelling(key: str) -> None:
    if key in CLIENT_KEYS:
        return
    close = difflib.get_close_matches(key, CLIENT_KEYS, n=1, cutoff=0.8)
    if close:
        raise OptionError(
            PREFIX + key, "is no setting of a Kafka client", f"did you mean {PREFIX}{close[0]}?"
        )


def check_names(given: Collection[str], known: Collection[str], who: str) -> None:
    """Options in lower case: one that is nearly a known one is a mistake, another one may be Spark's."""
    names = {name.lower(): name for name in known}
    for name in given:
        if is_kafka_key(name) or name in names:
            continue
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
        if close:
            raise OptionError(name, "is not known", f"did you mean {names[close[0]]}?")
        _log.warning("option %s has no effect: the riverlog %s does not know it", name, who)


def whole_number(option: str, text: str, minimum: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise OptionError(option, f"{text!r} is not a number", "give a whole number") from None
    if value < minimum:
        raise OptionError(option, f"{value} is too small", f"give {minimum} or more")
    return value


def true_or_false(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(option, f"{text!r} is neither true nor false", "give true or false")
    return text.lower() == "true"


def _addresses(text: str | None) -> tuple[Address, ...]:
    entries = [entry.strip() for entry in (text or "").split(",") if entry.strip()]
    if not entries:
        raise OptionError(BOOTSTRAP, "is missing", "give the address of a broker, as in localhost:9092")
    return tuple(map(_address, entries))


def _address(entry: str) -> Address:
    host, separator, port = entry.rpartition(":")
    if not separator or (host.startswith("[") and not host.endswith("]")):
        host, port = entry, str(_DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 1 << 16 or not host:
        raise OptionError(BOOTSTRAP, f"{entry!r} is not an address", "write host:port, separated by commas")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
