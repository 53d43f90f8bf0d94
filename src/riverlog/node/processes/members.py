"""The brokers of `serve --brokers N` as settings: numbers, ports and directories in a row.

Only what differs from the settings that the command was given. Who starts them is `supervisor`. Imports
little, because every start of several brokers waits for it.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from riverlog.model.config.listeners import Listener
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.errors import ConfigError
from riverlog.model.ids import NodeId
from riverlog.model.internal_topics import replication_settings
from riverlog.model.network import Address
from riverlog.storage.files import names

STAGE: Final = ".taking-over"
"""Where the files of a single node are collected on their way into the directory of a broker."""
_PORT_MAX: Final = 65535


class Member(NamedTuple):
    node_id: NodeId
    overrides: dict[str, str]
    """Settings that go before what was given."""


def members(settings: Settings, count: int) -> list[Member]:
    """Raises `ConfigError` for settings that cannot be those of so many brokers."""
    config = ServerConfig.from_settings(settings)
    listeners = _in_rows(config.listeners, count, settings.origin("listeners"))
    advertised = _in_rows(config.advertised_listeners, count, settings.origin("advertised.listeners"))
    is_advertised = "advertised.listeners" in settings
    replication = {name: each for name, each in replication_settings(count).items() if name not in settings}
    return [
        Member(
            node_id := NodeId(config.node_id + index),
            {
                "node.id": str(node_id),
                "broker.id": str(node_id),
                "log.dirs": ",".join(directory_of(path, node_id) for path in config.log_dirs),
                "listeners": _text(listeners[index]),
                **({"advertised.listeners": _text(advertised[index])} if is_advertised else {}),
                **_shared_store(settings, config.log_dirs),
                **replication,
            },
        )
        for index in range(count)
    ]


def directory_of(data_dir: str, node_id: NodeId) -> str:
    return f"{data_dir.rstrip('/')}/broker-{node_id}"


def metadata_of(data_dir: str) -> str:
    return f"{data_dir.rstrip('/')}/{names.SHARED_METADATA}"


def is_of_single_node(path: str) -> bool:
    """Also when it has begun to become that of several."""
    return any(os.path.exists(f"{path}/{name}") for name in (names.META_PROPERTIES, STAGE))


def _shared_store(settings: Settings, log_dirs: Sequence[str]) -> dict[str, str]:
    if "zookeeper.connect" in settings:
        return {}
    return {"riverlog.shared.metadata.dir": metadata_of(log_dirs[0])}


def _in_rows(listeners: Iterable[Listener], count: int, origin: str) -> list[list[Listener]]:
    """The listeners of each broker; port 0 stays, for it means any."""
    rows = [[_shifted(each, index) for each in listeners] for index in range(count)]
    ports = [each.address.port for row in rows for each in row if each.address.port]
    if max(ports, default=0) > _PORT_MAX:
        raise ConfigError(f"{origin}: {count} brokers need ports in a row, and {_PORT_MAX} is the last one.")
    if len(set(ports)) < len(ports):
        raise ConfigError(
            f"{origin}: {count} brokers take {count} ports in a row for each listener, and these overlap. "
            "Leave more room between the ports of the listeners."
        )
    return rows


def _shifted(listener: Listener, by: int) -> Listener:
    host, port = listener.address
    return listener._replace(address=Address(host, port + by if port else 0))


def _text(listeners: Iterable[Listener]) -> str:
    return ",".join(f"{each.name}://{each.address}" for each in listeners)
