"""Proxies in front of the servers of an ensemble, which lose what is sent and cut connections.

They run on the test's own event loop: nothing happens in them while the test does not wait.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress


class Proxy:
    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        self.is_open = True
        """Connections are taken. Closing it leaves those that are there; see `cut`."""
        self.swallows = False
        """What the server answers is lost."""
        self.swallowed = 0
        """Bytes of answers that were lost."""

    @property
    def is_used(self) -> bool:
        return bool(self._writers)

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        self.is_open = False
        self.cut()
        await asyncio.gather(*self._serving)

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        both = {writer}
        try:
            if self.is_open:
                there, back = await asyncio.open_connection(*self._target)
                both.add(back)
                self._writers |= both
                await asyncio.gather(
                    self._pass_on(reader, back, loses=False), self._pass_on(there, writer, loses=True)
                )
        except OSError:
            return
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, loses: bool
    ) -> None:
        while some := await reader.read(65536):
            if loses and self.swallows:
                self.swallowed += len(some)
            else:
                writer.write(some)
        writer.transport.abort()


class Proxies:
    """One for each server."""

    def __init__(self, proxies: list[Proxy]) -> None:
        self.all = proxies

    @property
    def servers(self) -> str:
        """As in `zookeeper.connect`."""
        return ",".join(f"127.0.0.1:{each.port}" for each in self.all)

    @property
    def used(self) -> Proxy:
        """The one that the only session goes through."""
        (found,) = [each for each in self.all if each.is_used]
        return found

    def shut(self) -> None:
        """Cut off from the whole ensemble."""
        for each in self.all:
            each.is_open = False
            each.cut()

    def open(self) -> None:
        for each in self.all:
            each.is_open = True
            each.swallows = False


@asynccontextmanager
async def proxies(targets: Iterable[tuple[str, int]]) -> AsyncIterator[Proxies]:
    started, servers = [Proxy(target) for target in targets], []
    try:
        for each in started:
            server = await asyncio.start_server(each.take, "127.0.0.1", 0)
            each.port = server.sockets[0].getsockname()[1]
            servers.append(server)
        yield Proxies(started)
    finally:
        for server in servers:
            server.close()
        for each in started:
            await each.close()
