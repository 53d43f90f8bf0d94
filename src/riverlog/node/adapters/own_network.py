"""The network port of a node as its settings want it."""

from typing import Final

from riverlog.broker.net.network import AsyncNetwork
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig

_LONG_REPLY_BUFFER_BYTES: Final = 200 * 1024
"""Within what any Linux allows by default."""


def network_of(settings: Settings, config: ServerConfig) -> AsyncNetwork:
    """Buffers grow as the kernel sees fit, unless somebody asks for a size.

    Send buffers of those who read in bulk do not: with one that had grown to megabytes they needed a quarter
    more CPU for the same bytes and were slower (see docs/performance.md).
    """
    asked_to_send = "socket.send.buffer.bytes" in settings
    return AsyncNetwork(
        backlog=config.socket_listen_backlog,
        send_buffer_bytes=config.socket_send_buffer_bytes if asked_to_send else None,
        long_reply_buffer_bytes=None if asked_to_send else _LONG_REPLY_BUFFER_BYTES,
        receive_buffer_bytes=(
            config.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in settings else None
        ),
    )
