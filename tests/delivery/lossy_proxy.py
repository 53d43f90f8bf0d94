"""A proxy between client and broker that loses replies: the request arrives, its reply does not.

So a client repeats a request that the broker has carried out, which is what deduplication is for.
"""

import asyncio
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from riverlog.wire.apis import ApiKey

_TIMEOUT_S = 10.0
_SIZE = struct.Struct(">i")
_KEY = struct.Struct(">h")


class LossyProxy:
    """Runs on a thread and loop of its own. `target` is to be set before a client connects."""

    def __init__(self) -> None:
        self.target: tuple[str, int] | None = None
        self.to_lose = 0
        self.lost = 0
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def lose(self, replies: int) -> None:
        """Lose the replies of the next so many produce requests, and their connections with them."""
        self.to_lose = replies

    @property
    def address(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._accept, "127.0.0.1", 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_S)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self.target is not None
        self._connections.add(task)
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self.target)
            replies = asyncio.create_task(self._pass_on(upstream_reader, writer))
            try:
                await self._pass_requests(reader, upstream_writer, upstream_reader, replies)
            finally:
                replies.cancel()
                upstream_writer.close()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # Either side has gone, or the test is over.
        finally:
            writer.close()
            self._connections.discard(task)

    async def _pass_requests(
        self,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        replies: "asyncio.Task[None]",
    ) -> None:
        while True:
            frame = await _frame(reader)
            is_lost = _KEY.unpack_from(frame, _SIZE.size)[0] == ApiKey.PRODUCE and self.to_lose > 0
            if is_lost:
                replies.cancel()
                await asyncio.gather(replies, return_exceptions=True)
            upstream.write(frame)
            await upstream.drain()
            if is_lost:
                await _frame(answers)  # It has been carried out now.
                self.to_lose -= 1
                self.lost += 1
                return

    async def _pass_on(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await upstream.read(65_536):
            writer.write(data)
            await writer.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(_SIZE.size)
    return head + await reader.readexactly(*_SIZE.unpack(head))
