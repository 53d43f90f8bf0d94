"""The core on an event loop, with a real broker that answers, and with one that dies."""

import asyncio
from typing import Any

from riverlog.client.core.connection import ConnectionCore
from riverlog.client.core.events import Closed, Opened, Outcome, Replied, Unanswered
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest

Future = asyncio.Future[Any]


class Driver(asyncio.BufferedProtocol):
    """As short as a driver can be: each request is tagged with the future of its reply."""

    def __init__(self) -> None:
        self.core: ConnectionCore[Future] = ConnectionCore("loop")
        self.opened: Future = asyncio.get_running_loop().create_future()
        self.closed: Future = asyncio.get_running_loop().create_future()
        self._transport: Any = None

    def ask(self, key: ApiKey, request: Any, version_max: int | None = None) -> Future:
        answered: Future = asyncio.get_running_loop().create_future()
        self.core.request(key, request, answered, version_max=version_max)
        self._flush()
        return answered

    async def close(self) -> None:
        self._transport.close()
        await self.closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.core.start()
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.core.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._tell(self.core.received(nbytes))

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell(self.core.lost(str(exc)))

    def _flush(self) -> None:
        while pieces := self.core.to_send():
            self._transport.writelines(pieces)
            self.core.sent(sum(map(len, pieces)))

    def _tell(self, events: list[Any]) -> None:
        for event in events:
            match event:
                case Opened():
                    self.opened.set_result(event.versions)
                case Replied():
                    event.request.tag.set_result(event.message())
                case Unanswered():
                    event.request.tag.set_result(event.outcome)
                case Closed():
                    self.closed.set_result(event.reason)


async def connected(broker: Broker) -> Driver:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    _, driver = await asyncio.get_running_loop().create_connection(Driver, host, int(port))
    async with asyncio.timeout(20):
        await driver.opened
    return driver


def test_many_requests_on_the_way_are_answered_each_with_its_own() -> None:
    async def run(broker: Broker) -> None:
        driver = await connected(broker)
        asked = [
            driver.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest())
            if n % 2
            else driver.ask(ApiKey.METADATA, MetadataRequest(topics=None))
            for n in range(40)
        ]
        async with asyncio.timeout(20):
            replies = await asyncio.gather(*asked)
        assert [type(each).__name__ for each in replies] == [
            "DescribeClusterResponse" if n % 2 else "MetadataResponse" for n in range(40)
        ]
        assert driver.core.in_flight == 0
        await driver.close()

    with Broker() as broker:
        asyncio.run(run(broker))


def test_a_broker_that_dies_leaves_what_was_asked_unknown() -> None:
    async def run(broker: Broker) -> None:
        driver = await connected(broker)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
        waiting = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=100,
            topics=[FetchTopic(topic="t", partitions=[partition])],
        )
        asked = [driver.ask(ApiKey.FETCH, waiting, 12), driver.ask(ApiKey.METADATA, MetadataRequest())]
        await asyncio.to_thread(broker.kill)
        async with asyncio.timeout(20):
            outcomes = await asyncio.gather(*asked)
            await driver.closed
        assert outcomes == [Outcome.UNKNOWN, Outcome.UNKNOWN]

    broker = Broker().start()
    try:
        broker.create_topic("t")
        asyncio.run(run(broker))
    finally:
        broker.stop()
