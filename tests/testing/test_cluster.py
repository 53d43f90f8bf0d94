"""`riverlog.testing.Cluster`: brokers that are killed, held and started again, with records in them."""

import asyncio
import threading
from concurrent.futures import Future

import pytest
from confluent_kafka import Producer

from riverlog.broker.net.network import AsyncNetwork
from riverlog.client.cluster import ClientSettings
from riverlog.client.cluster import Cluster as Client
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address, Socket
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from riverlog.testing.cuttable_network import CuttableNetwork
from tests.waiting import eventually


def test_records_go_to_the_brokers_that_lead_and_are_read_back(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.create_topic("orders", partitions=6)
    assert set(riverlog_cluster.leaders("orders").values()) == {1, 2, 3}
    written = riverlog_cluster.produce("orders", "a", "b", "c", "d", "e", "f", headers={"h": "x"})
    assert riverlog_cluster.topics() == ["orders"]
    assert sorted(riverlog_cluster.consume("orders")) == sorted(written)
    assert len(riverlog_cluster.consume("orders", count=4)) == 4
    with pytest.raises(TimeoutError, match="6 came"):
        riverlog_cluster.consume("orders", count=7, timeout=0.2)


def test_a_stock_client_produces(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.create_topic("orders", partitions=3)
    producer = Producer({"bootstrap.servers": riverlog_cluster.bootstrap_servers})
    for number in range(30):
        producer.produce("orders", str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    assert {each.value for each in riverlog_cluster.consume("orders")} == {b"%d" % each for each in range(30)}


def test_another_broker_is_controller_when_the_controller_is_killed(riverlog_cluster: Cluster) -> None:
    first = riverlog_cluster.controller
    riverlog_cluster.kill(first)
    assert riverlog_cluster.controller != first
    riverlog_cluster.restart(first)
    assert riverlog_cluster.controller != first


def test_what_a_killed_broker_has_acknowledged_is_there_when_it_is_back(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.create_topic("orders", partitions=3)
    written = riverlog_cluster.produce("orders", *map(str, range(30)))
    led = next(index for index, leader in riverlog_cluster.leaders("orders").items() if leader == 2)
    riverlog_cluster.kill(2)
    eventually(lambda: riverlog_cluster.leaders("orders")[led] is None)
    others = [index for index in range(3) if index != led]
    written += riverlog_cluster.produce("orders", "more", partition=others[0])
    riverlog_cluster.restart(2)
    eventually(lambda: riverlog_cluster.leaders("orders")[led] == 2)
    assert sorted(riverlog_cluster.consume("orders")) == sorted(written)


def metadata_of(cluster: Cluster, broker: int) -> "Future[int]":
    """The number of brokers that one tells of, asked in a thread."""
    asked: Future[int] = Future()
    address = address_of(cluster[broker].bootstrap_servers)

    def ask() -> None:
        with Client(ClientSettings((address,), "test", 30, 30)) as client:
            asked.set_result(len(client.brokers()))

    threading.Thread(target=ask, daemon=True).start()
    return asked


def test_a_paused_broker_answers_when_it_is_resumed(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.pause(2)
    asked = metadata_of(riverlog_cluster, 2)
    for _ in range(20):
        assert metadata_of(riverlog_cluster, 1).result(30) == 3
    assert not asked.done()
    riverlog_cluster.resume(2)
    assert asked.result(30) == 3


def test_a_paused_broker_can_be_killed(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.pause(3)
    riverlog_cluster.kill(3)
    riverlog_cluster.restart(3)
    assert metadata_of(riverlog_cluster, 3).result(30) == 3


@pytest.mark.parametrize("riverlog_cluster", [{"brokers": 2, "num_partitions": 4}], indirect=True)
def test_the_fixture_takes_what_a_cluster_is_made_with(riverlog_cluster: Cluster) -> None:
    assert list(riverlog_cluster.brokers) == [1, 2]
    riverlog_cluster.create_topic("orders", partitions=-1)
    assert len(riverlog_cluster.leaders("orders")) == 4


def test_a_broker_that_is_not_there_is_named(riverlog_cluster: Cluster) -> None:
    with pytest.raises(RiverlogError, match="no broker 7; there are 1, 2, 3"):
        riverlog_cluster.kill(7)


def test_brokers_as_processes_survive_real_signals() -> None:
    with Cluster(brokers=2, processes=True) as cluster:
        cluster.create_topic("orders", partitions=2)
        written = cluster.produce("orders", "a", "b", "c")
        killed = cluster.controller
        cluster.kill(killed)
        assert cluster.controller != killed
        cluster.restart(killed)
        cluster.pause(1)
        cluster.resume(1)
        eventually(lambda: None not in cluster.leaders("orders").values())
        assert sorted(cluster.consume("orders")) == sorted(written)


def test_cut_connections_end_and_new_ones_are_refused_until_healed() -> None:
    async def connect(network: CuttableNetwork, address: Address) -> Socket | OSError:
        done: asyncio.Future[Socket | OSError] = asyncio.get_running_loop().create_future()
        network.connect(address, done.set_result)
        return await done

    async def main() -> None:
        network = CuttableNetwork(AsyncNetwork())
        accepted: list[Socket] = []
        listening = network.listen(Address("127.0.0.1", 0), accepted.append)
        link = await connect(network, listening.address)
        assert not isinstance(link, OSError)
        ended = asyncio.Event()
        link.on_readable(ended.set)
        network.cut([listening.address])
        await ended.wait()
        assert link.recv_into(memoryview(bytearray(1))) == 0
        with pytest.raises(ConnectionResetError):
            link.send(b"x")
        link.close()
        assert isinstance(await connect(network, listening.address), OSError)
        network.cut(())
        again = await connect(network, listening.address)
        assert not isinstance(again, OSError)
        again.close()
        for each in accepted:
            each.close()
        listening.close()

    asyncio.run(main())
