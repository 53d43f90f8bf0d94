"""Listeners: their text form, names, security protocols, and which of them may be opened.

`NAME://host:port`, where the name also chooses the security protocol (`listener.security.protocol.map`). An
empty host means every interface. Listeners of a KRaft controller are left out, as there is none here.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from riverlog.model.config.settings import Settings
from riverlog.model.errors import ConfigError
from riverlog.model.network import Address


class SecurityProtocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Listener(NamedTuple):
    """A name, the address to bind (or to advertise), and how its connections are secured."""

    name: str
    address: Address
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


LOOPBACK_LISTENER = Listener("PLAINTEXT", Address("127.0.0.1", 9092))

_LISTENER = re.compile(
    r"(?P<name>[^:/]+)://(?:\[(?P<v6>[0-9a-fA-F:.%\w]+)\]|(?P<host>[^\[\]:/]*)):(?P<port>\d+)"
)
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})


def bound_listeners(settings: Settings) -> tuple[Listener, ...]:
    """The listeners to open; raises `ConfigError`."""
    controllers = _names(settings, "controller.listener.names")
    listeners = tuple(each for each in _parse(settings, "listeners") if each.name not in controllers)
    origin = settings.origin("listeners")
    if not listeners:
        raise ConfigError(
            f"{origin}: listeners names none that clients can use. Add PLAINTEXT://127.0.0.1:9092."
        )
    _refuse_shared_ports(listeners, origin)
    for listener in listeners:
        if listener.protocol is not SecurityProtocol.PLAINTEXT:
            raise ConfigError(
                f"{origin}: listener {listener.name} asks for {listener.protocol}, which is not served yet. "
                "Use PLAINTEXT, and keep it on a network you trust."
            )
    return listeners


def advertised_listeners(settings: Settings, listeners: Sequence[Listener]) -> tuple[Listener, ...]:
    """What clients are told where it differs from what is bound; raises `ConfigError`."""
    if "advertised.listeners" not in settings:
        return ()
    origin = settings.origin("advertised.listeners")
    advertised = _parse(settings, "advertised.listeners")
    bound = {listener.name for listener in listeners}
    for listener in advertised:
        if listener.name not in bound | _names(settings, "controller.listener.names"):
            raise ConfigError(
                f"{origin}: advertised.listeners names {listener.name}, which listeners does not. "
                f"Known there: {', '.join(sorted(bound))}."
            )
        if listener.address.host in _WILDCARDS:
            raise ConfigError(
                f"{origin}: {listener.name} advertises an address that clients cannot connect to. "
                "Advertise a host name or address under which this machine is reached."
            )
    return tuple(listener for listener in advertised if listener.name in bound)


def inter_broker_listener(settings: Settings, listeners: Sequence[Listener]) -> str:
    """The name of the listener at which the brokers of a cluster ask each other; raises `ConfigError`."""
    name = settings.get("inter.broker.listener.name")
    if name is None:
        return listeners[0].name
    name = str(name).upper()
    if name not in {listener.name for listener in listeners}:
        raise ConfigError(
            f"{settings.origin('inter.broker.listener.name')}: there is no listener {name}. "
            f"Name one of listeners: {', '.join(listener.name for listener in listeners)}."
        )
    return name


def refuse_open_listeners(listeners: Sequence[Listener], settings: Settings) -> None:
    for listener in listeners:
        if not is_loopback(listener.address.host):
            host = listener.address.host or "every interface"
            raise ConfigError(
                f"{settings.origin('listeners')}: listener {listener.name} on {host} has no authentication "
                "and can be reached from other machines. Listen on 127.0.0.1, or pass --insecure "
                "(riverlog.insecure=true) if everyone on that network may read and write."
            )


def is_loopback(host: str) -> bool:
    if host in ("127.0.0.1", "::1"):
        return True
    import ipaddress  # Not for the usual case: start-up need not pay for it.

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _parse(settings: Settings, key: str) -> tuple[Listener, ...]:
    protocols = _protocols(settings)
    origin = settings.origin(key)
    texts = settings.get(key)
    assert isinstance(texts, tuple)
    found: dict[str, Listener] = {}
    for text in texts:
        listener = _one(text, protocols, f"{origin}: {key}")
        if listener.name in found:
            raise ConfigError(f"{origin}: {key} has two listeners {listener.name}. Give each its own name.")
        found[listener.name] = listener
    return tuple(found.values())


def _one(text: str, protocols: Mapping[str, SecurityProtocol], place: str) -> Listener:
    match = _LISTENER.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(f"{place}: {text} is not NAME://host:port, for example PLAINTEXT://127.0.0.1:9092.")
    name = match["name"].upper()
    if name not in protocols:
        raise ConfigError(
            f"{place}: listener {name} has no security protocol. "
            f"Add {name}:PLAINTEXT to listener.security.protocol.map."
        )
    return Listener(name, Address(match["v6"] or match["host"] or "", int(match["port"])), protocols[name])


def _protocols(settings: Settings) -> Mapping[str, SecurityProtocol]:
    key = "listener.security.protocol.map"
    protocols = {}
    for pair in filter(None, (part.strip() for part in str(settings.get(key)).split(","))):
        name, _, protocol = pair.rpartition(":")
        if not name or protocol.strip().upper() not in set(SecurityProtocol):
            raise ConfigError(
                f"{settings.origin(key)}: {key}: {pair} is not NAME:PROTOCOL with one of "
                f"{', '.join(SecurityProtocol)}."
            )
        protocols[name.strip().upper()] = SecurityProtocol(protocol.strip().upper())
    return protocols


def _names(settings: Settings, key: str) -> frozenset[str]:
    names = settings.get(key)
    return frozenset(name.upper() for name in names) if isinstance(names, tuple) else frozenset()


def _refuse_shared_ports(listeners: Sequence[Listener], origin: str) -> None:
    """One port may serve an IPv4 and an IPv6 listener, and port 0 is a new one each time."""
    seen: dict[tuple[int, bool], Listener] = {}
    for listener in listeners:
        place = listener.address.port, ":" in listener.address.host
        if listener.address.port and place in seen:
            raise ConfigError(
                f"{origin}: {seen[place].name} and {listener.name} both want port {listener.address.port}. "
                "Give each listener its own port."
            )
        seen[place] = listener
