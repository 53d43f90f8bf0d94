"""The servers of an ensemble: how they are written in `zookeeper.connect`, and why they do not answer.

A server that nobody can reach may come; a program that is no ZooKeeper will not become one.
"""

import asyncio
from typing import Final, NamedTuple

from riverlog.model.errors import ConfigError

DEFAULT_PORT: Final = 2181
_ASK: Final = b"srvr"
"""The one command that every server answers unless it is told not to."""
_ANSWERS: Final = (b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper instance")
_WAIT_S: Final = 2.0


class ConnectString(NamedTuple):
    servers: str
    """`host:port,host:port`"""
    chroot: str
    """The path below which the cluster is; empty for the root."""

    def __str__(self) -> str:
        return self.servers + self.chroot

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [_address(each) for each in self.servers.split(",")]


class Silence(NamedTuple):
    text: str
    may_change: bool
    """Waiting may help."""


def parse_connect(text: str) -> ConnectString:
    """Raises `ConfigError` for what is no list of servers with a path behind it."""
    servers, slash, path = text.replace(" ", "").partition("/")
    chroot = (slash + path).rstrip("/")
    if not servers or "" in servers.split(",") or "//" in chroot:
        raise ConfigError(f"zookeeper.connect={text} is not of the form host:port,host:port/path.")
    for each in servers.split(","):
        _address(each)
    return ConnectString(
        ",".join(f"{host}:{port}" for host, port in map(_address, servers.split(","))), chroot
    )


async def explain_silence(connect: ConnectString) -> Silence:
    """What the servers do instead of answering."""
    found = await asyncio.gather(*(_look_at(host, port) for host, port in connect.addresses))
    return Silence(" ".join(each.text for each in found), any(each.may_change for each in found))


async def _look_at(host: str, port: int) -> Silence:
    name = f"{host}:{port}"
    try:
        return await asyncio.wait_for(_ask(host, port), _WAIT_S)
    except TimeoutError:
        return Silence(f"{name} takes connections and says nothing.", True)
    except OSError as error:
        return Silence(f"Nobody answers at {name} ({error.strerror or error}).", True)


async def _ask(host: str, port: int) -> Silence:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_ASK)
        answer = await reader.read(100)
    finally:
        writer.close()
    name = f"{host}:{port}"
    if answer.startswith(_ANSWERS):
        return Silence(f"The server at {name} is up, but not part of an ensemble that serves.", True)
    return Silence(f"{name} is not ZooKeeper, or expects TLS: look at zookeeper.connect.", False)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, DEFAULT_PORT
    if not port.isdigit() or not host:
        raise ConfigError(f"zookeeper.connect: {text} is not of the form host:port.")
    return host, int(port)
