"""A plain socket that sends bytes and cuts frames; every wait has a deadline."""

from __future__ import annotations

import socket
import struct

MAX_REPLY_BYTES = 64 << 20


class ConnectionClosedError(Exception):
    """The broker has closed the connection."""


class NoAnswerError(Exception):
    """The broker has not answered in time."""


class Connection:
    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosedError from error

    def receive(self) -> bytes:
        """The next frame, without its size."""
        (size,) = struct.unpack(">i", self._read(4))
        if not 4 <= size <= MAX_REPLY_BYTES:
            raise ValueError(f"a reply of {size} bytes")
        return self._read(size)

    def wait_for_close(self) -> bool:
        """Whether the broker closes the connection without another byte before the deadline."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                chunk = self._socket.recv(count - len(data))
            except ConnectionResetError as error:
                raise ConnectionClosedError from error
            except TimeoutError as error:
                raise NoAnswerError from error
            if not chunk:
                raise ConnectionClosedError
            data += chunk
        return bytes(data)
