"""Asks a node without a socket: requests and replies in Kafka's protocol, on the node's own event loop.

For what tests want to know or to have done beside the client that they test. No fault touches it, because it
stands behind where faults strike, and it costs no connection. Not a client: one node, no retries.
"""

import asyncio
from typing import Final, TypeVar

from riverlog.broker.exchange.context import Answer, HangUp, Parts
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.net.connection import Answering, Later, Pending
from riverlog.model.disk import FileSlice
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address
from riverlog.wire.apis import api_of
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, decode_response_header, encode_request
from riverlog.wire.schema import Message

R = TypeVar("R", bound=Message)

CLIENT_ID: Final = "riverlog.testing"
_SIZE_BYTES: Final = 4


async def ask(
    answering: Answering, listener_name: str, request: Message, reply: type[R], version: int | None = None
) -> R:
    """The reply, of the newest version if none is given."""
    api = api_of(type(request))
    version = api.max_version if version is None else version
    frame = bytearray(encode_request(RequestHeader(api.key, version, 0, CLIENT_ID), request))
    origin = Origin(Address("127.0.0.1", 0), listener_name)
    answer = await finished(answering.dispatch(memoryview(frame)[_SIZE_BYTES:], origin))
    if answer is None or isinstance(answer, HangUp):
        raise RiverlogError(f"The broker did not answer {api.name}: {answer}")
    return decode_reply(reply, api.key, version, answer)


def decode_reply(reply: type[R], api_key: int, version: int, parts: Parts) -> R:
    """The message in a reply's frame. What is in files is read at once: a test's records are in memory."""
    data = b"".join(
        part.file.pread(part.length, part.position) if isinstance(part, FileSlice) else bytes(part)
        for part in parts
    )
    _, start = decode_response_header(api_key, version, data, _SIZE_BYTES)
    return decode(reply, version, memoryview(data), start)[0]


def finished(answer: Answer | Later) -> "asyncio.Future[Answer]":
    """The answer when it is there; to cancel this is to give it up."""
    done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    if not isinstance(answer, Later):
        done.set_result(answer)
        return done
    pending = answer.answer

    def take(answered: Pending) -> None:
        if done.done():
            return
        done.set_result(HangUp("the request was given up") if answered.cancelled() else answered.result())

    pending.add_done_callback(take)
    done.add_done_callback(lambda ended: pending.cancel() if ended.cancelled() else None)
    return done
