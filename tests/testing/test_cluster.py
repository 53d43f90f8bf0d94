"""`riverlog.testing.Cluster`: brokers that are killed, held and started again, with records in them."""

import asyncio
import threading
from concurrent.futures import Future

import pytest
from confluent_kafka import Consumer, Producer

from riverlog.broker.net.network import AsyncNetwork
from riverlog.client.broker_connection import BrokerConnection
from riverlog.client.cluster import ClientSettings
from riverlog.client.cluster import Cluster as Client
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.network import Address, Socket
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from riverlog.testing.cuttable_network import CuttableNetwork
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.waiting import eventually

TOPIC_EXISTS = ErrorCode.TOPIC_ALREADY_EXISTS


def test_records_go_to_the_brokers_that_lead_and_are_read_back(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.create_topic("orders", partitions=6)
    assert set(riverlog_cluster.leaders("orders").values()) == {1, 2, 3}
    written = riverlog_cluster.produce("orders", "a", "b", "c", "d", "e", "f", headers={"h": "x"})
    assert riverlog_cluster.topics() == ["orders"]
    assert sorted(riverlog_cluster.consume("orders")) == sorted(written)
    assert len(riverlog_cluster.consume("orders", count=4)) == 4
    with pytest.raises(TimeoutError, match="6 came"):
        riverlog_cluster.consume("orders", count=7, timeout=0.2)


def test_stock_clients_produce_consume_and_commit(riverlog_cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": riverlog_cluster.bootstrap_servers})
    riverlog_cluster.create_topic("orders", partitions=3)
    for number in range(30):
        producer.produce("orders", str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": riverlog_cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    values: set[bytes | None] = set()

    def has_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.add(message.value())
        return len(values) == 30

    eventually(has_all, timeout_s=60)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert riverlog_cluster.committed("g") == {("orders", index): 10 for index in range(3)}


def replicas_of(cluster: Cluster, topic: str) -> set[int]:
    """How many replicas its partitions have."""
    address = address_of(cluster.bootstrap_servers.split(",")[0])
    with Client(ClientSettings((address,), "test", 5, 5)) as client:
        return {len(each.replicas) for each in client.topics([topic])[topic].partitions.values()}


@pytest.mark.parametrize(
    "riverlog_cluster", [{"brokers": 2, "replication_factor": 2}, {"brokers": 3}], indirect=True
)
def test_topics_have_the_replicas_that_were_asked_for_and_internal_ones_as_many_as_fit(
    riverlog_cluster: Cluster,
) -> None:
    riverlog_cluster.create_topic("plain")
    riverlog_cluster.create_topic("two", replication_factor=2)
    brokers = len(riverlog_cluster.brokers)
    assert replicas_of(riverlog_cluster, "plain") == ({2} if brokers == 2 else {1})
    assert replicas_of(riverlog_cluster, "two") == {2}
    assert riverlog_cluster.committed("g") == {}  # Makes the topic.
    assert replicas_of(riverlog_cluster, "__consumer_offsets") == {brokers}


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 3 replicas, not 4"):
        Cluster(3, replication_factor=4)


def test_a_topic_is_made_by_a_first_write_at_any_broker(riverlog_cluster: Cluster) -> None:
    riverlog_cluster.produce("made-by-itself", "a")
    assert riverlog_cluster.topics() == ["made-by-itself"]


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


def test_brokers_as_processes_with_zookeeper_go_on_when_one_is_killed() -> None:
    with Cluster(brokers=2, processes=True, zookeeper=True) as cluster:
        cluster.create_topic("orders", partitions=2)
        written = cluster.produce("orders", "a", "b", "c")
        killed = cluster.controller
        cluster.kill(killed)
        assert cluster.controller != killed
        cluster.restart(killed)
        eventually(lambda: None not in cluster.leaders("orders").values())
        assert sorted(cluster.consume("orders")) == sorted(written)


def test_zookeeper_is_for_processes() -> None:
    with pytest.raises(ValueError, match="processes=True"):
        Cluster(zookeeper=True)


def create_at(cluster: Cluster, broker: int, topic: str) -> int:
    """The error code of a CreateTopics at this very broker, which sends it on if it is not the controller."""
    address = address_of(cluster[broker].bootstrap_servers)
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=1000)
    with BrokerConnection(address, timeout_s=30, client_id="test") as connection:
        return int(connection.ask(ApiKey.CREATE_TOPICS, request).topics[0].error_code)


def test_a_broker_that_is_cut_off_the_controller_cannot_send_it_anything_until_healed(
    riverlog_cluster: Cluster,
) -> None:
    controller = riverlog_cluster.controller
    others = {1, 2, 3} - {controller}
    away, near = sorted(others)
    riverlog_cluster.cut({away}, {controller})
    assert create_at(riverlog_cluster, away, "orders") != 0
    assert create_at(riverlog_cluster, near, "orders") == 0
    riverlog_cluster.heal()
    eventually(lambda: create_at(riverlog_cluster, away, "payments") in (0, TOPIC_EXISTS))


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
