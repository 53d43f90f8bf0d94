"""A broker on loopback that answers each request as a test tells it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, decode_request_header, encode_response
from riverlog.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from riverlog.wire.messages.describe_cluster import DescribeClusterResponse

CLUSTER = ApiKey.DESCRIBE_CLUSTER
Answer = Callable[[RequestHeader], bytes | None]


def versions(header: RequestHeader) -> bytes:
    served = ApiVersionsResponse(api_keys=[ApiVersion(api_key=CLUSTER, min_version=0, max_version=1)])
    return encode_response(ApiKey.API_VERSIONS, header.api_version, header.correlation_id, served)


def cluster(header: RequestHeader, cluster_id: str = "here") -> bytes:
    reply = DescribeClusterResponse(cluster_id=cluster_id)
    return encode_response(CLUSTER, header.api_version, header.correlation_id, reply)


@asynccontextmanager
async def scripted(*answers: Answer) -> AsyncIterator[tuple[Address, list[asyncio.StreamWriter]]]:
    """A broker that answers each request as it is told; no bytes: it hangs up, None: it says nothing."""
    writers: list[asyncio.StreamWriter] = []
    served: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        served.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, OSError):
            for answer in answers:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                data = answer(decode_request_header(await reader.readexactly(size))[0])
                if data == b"":
                    return writer.close()
                writer.write(data or b"")
            await reader.read()
        return writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), writers
        for writer in writers:
            writer.transport.abort()
    await asyncio.gather(*filter(None, served))
