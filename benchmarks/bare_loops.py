"""What the same work costs with nothing around it: the yardstick for the broker's processor time.

`receive`: recv into a buffer, CRC-32C, write to the page cache, a small reply.
`send`: for each small request one sendfile of as many bytes as a fetch returns.
`echo`: the bytes of a small request sent back, on the event loop that the broker uses.
"""

import asyncio
import os
import socket
import struct
import sys
import tempfile

import crc32c
import uvloop

REPLY = struct.pack(">i", 60) + bytes(60)


def main() -> None:
    loop, *arguments = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    print(f"{loop} on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    if loop == "echo":
        uvloop.run(echo(listener))
        return
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if loop == "receive":
        receive(connection)
    else:
        send(connection, int(arguments[0]))


def receive(connection: socket.socket) -> None:
    buffer = bytearray(4 * 1024 * 1024)
    view = memoryview(buffer)
    with tempfile.TemporaryFile(dir=os.environ.get("BENCH_DIR")) as log:
        while _fill(connection, view[:4]):
            size = int.from_bytes(view[:4], "big")
            if not _fill(connection, view[:size]):
                return
            crc32c.crc32c(view[:size])
            os.write(log.fileno(), view[:size])
            connection.send(REPLY)


def send(connection: socket.socket, response_bytes: int) -> None:
    request = bytearray(64 * 1024)
    view = memoryview(request)
    with tempfile.TemporaryFile(dir=os.environ.get("BENCH_DIR")) as log:
        log.write(os.urandom(response_bytes))
        log.flush()
        while _fill(connection, view[:4]):
            _fill(connection, view[: int.from_bytes(view[:4], "big")])
            connection.send(struct.pack(">i", response_bytes), socket.MSG_MORE)
            sent = 0
            while sent < response_bytes:
                sent += os.sendfile(connection.fileno(), log.fileno(), sent, response_bytes - sent)


def _fill(connection: socket.socket, view: memoryview) -> bool:
    received = 0
    while received < len(view):
        count = connection.recv_into(view[received:])
        if count == 0:
            return False
        received += count
    return True


async def echo(listener: socket.socket) -> None:
    """For any number of connections, until the process is stopped."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    buffer = bytearray(64 * 1024)
    view = memoryview(buffer)

    def reply(connection: socket.socket) -> None:
        count = connection.recv_into(buffer)
        if count == 0:
            loop.remove_reader(connection.fileno())
            connection.close()
            return
        connection.send(view[:count])

    while True:
        connection, _ = await loop.sock_accept(listener)
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop.add_reader(connection.fileno(), reply, connection)


if __name__ == "__main__":
    main()
