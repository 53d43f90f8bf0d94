"""Requests that differ from one to the next: encoded for every call, the replies decoded.

For what a frame made once cannot ask. The client's part costs about as much as the server's, so figures taken
with it are the server's processor time, or times in which the client has little to do.
"""

import socket
from typing import Any

from benchmarks import load
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.schema import Message


def ask(client: socket.socket, key: ApiKey, version: int, request: Message) -> Any:
    send(client, key, version, request)
    return receive(client, key, version)


def send(client: socket.socket, key: ApiKey, version: int, request: Message) -> None:
    client.sendall(encode_request(RequestHeader(key, version, 1, "bench"), request))


def receive(client: socket.socket, key: ApiKey, version: int) -> Any:
    api = APIS[key]
    frame = load.read_reply(client)
    reply, _ = decode(api.response, version, frame, 4 + api.response_header_version(version))
    return reply
