"""`riverlog serve` on a real ensemble: brokers that are one cluster, and what other programs read there."""

import json
from pathlib import Path

from kazoo.client import KazooClient

from tests.cli.running import CommandLine
from tests.processes import ServedProcess
from tests.waiting import eventually
from tests.zookeeper.ensemble import Ensemble


def settings_of(ensemble: Ensemble, chroot: str, node_id: int) -> list[str]:
    return [
        f"zookeeper.connect={ensemble.servers}{chroot}",
        "zookeeper.session.timeout.ms=4000",
        f"broker.id={node_id}",
        "offsets.topic.replication.factor=1",
    ]


def test_two_brokers_are_one_cluster_and_the_tree_is_kafkas(ensemble: Ensemble, tmp_path: Path) -> None:
    chroot = "/serve"
    client = KazooClient(ensemble.servers + chroot)
    with (
        ServedProcess(tmp_path / "a", *settings_of(ensemble, chroot, 1)) as first,
        ServedProcess(tmp_path / "b", *settings_of(ensemble, chroot, 2)) as second,
    ):
        riverlog = CommandLine(second.bootstrap_servers)
        topic = riverlog.topic("--partitions", "4", "-s", "retention.ms=12345")
        client.start()
        node, stat = client.get(f"/brokers/topics/{topic}")
        read = json.loads(node)
        assert read["version"] == 3
        assert set(read["partitions"]) == {"0", "1", "2", "3"}
        assert {replicas[0] for replicas in read["partitions"].values()} == {1, 2}
        for index in range(4):
            state = json.loads(client.get(f"/brokers/topics/{topic}/partitions/{index}/state")[0])
            assert {"controller_epoch", "leader", "version", "leader_epoch", "isr"} <= set(state)
            assert [state["leader"]] == state["isr"] == read["partitions"][str(index)]
        assert json.loads(client.get(f"/config/topics/{topic}")[0]) == {
            "version": 1,
            "config": {"retention.ms": "12345"},
        }
        assert json.loads(client.get("/controller")[0])["brokerid"] in (1, 2)
        assert int(client.get("/controller_epoch")[0]) >= 1
        assert json.loads(client.get("/cluster/id")[0])["version"] == "1"
        assert sorted(client.get_children("/brokers/ids")) == ["1", "2"]
        broker, stat = client.get("/brokers/ids/1")
        assert stat.ephemeralOwner != 0
        assert json.loads(broker)["endpoints"] == [f"PLAINTEXT://{first.bootstrap_servers}"]
        riverlog.produce(topic, *map(str, range(20)))

        first.kill()
        with ServedProcess(tmp_path / "a", *settings_of(ensemble, chroot, 1)) as again:
            assert again.bootstrap_servers
            epoch = json.loads(client.get("/brokers/ids/1")[0])["riverlog"]["epoch"]
            assert (epoch, client.get("/riverlog/brokers/1")[1].version) == (1, 1)
            read_back = riverlog.consume(topic).stdout.split()
            assert sorted(read_back, key=int) == [str(number) for number in range(20)]
            assert again.stop() == 0
        eventually(lambda: client.get_children("/brokers/ids") == ["2"])
        assert second.stop() == 0
        client.stop()
        client.close()


def test_a_second_broker_with_the_same_number_is_refused_with_the_address_of_the_first(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    settings = settings_of(ensemble, "/twice", 1)
    with ServedProcess(tmp_path / "a", *settings) as first:
        address = first.bootstrap_servers
        with ServedProcess(tmp_path / "b", *settings) as second:
            assert second.wait() != 0
            assert f"broker id 1 is in use by {address}" in second.errors()


def test_a_tree_of_another_program_is_refused(ensemble: Ensemble, tmp_path: Path) -> None:
    client = KazooClient(ensemble.servers)
    client.start()
    client.create("/foreign/brokers/ids", makepath=True)
    with ServedProcess(tmp_path / "a", *settings_of(ensemble, "/foreign", 1)) as refused:
        assert refused.wait() != 0
        assert "in use by another program" in refused.errors()
    assert client.get_children("/foreign") == ["brokers"]
    client.stop()
    client.close()


def test_a_single_nodes_metadata_moves_into_an_ensemble(ensemble: Ensemble, tmp_path: Path) -> None:
    data, connect = tmp_path / "data", f"{ensemble.servers}/moved"
    with ServedProcess(data, "node.id=5") as alone:
        riverlog = CommandLine(alone.bootstrap_servers)
        topic = riverlog.topic("--partitions", "3")
        riverlog.produce(topic, "kept")
        assert alone.stop() == 0
    exported = riverlog("metadata", "export", "-d", str(data)).stdout
    outcome = riverlog("metadata", "import", "--zookeeper", connect, stdin=exported)
    assert "one replica each" in outcome.stderr
    again = riverlog("metadata", "import", "--zookeeper", connect, stdin=exported, code=1)
    assert "belongs to a cluster already" in again.stderr
    with ServedProcess(data, "node.id=5", f"zookeeper.connect={connect}") as moved:
        riverlog = CommandLine(moved.bootstrap_servers)
        assert riverlog.consume(topic).stdout == "kept\n"
        riverlog.produce(topic, "more")
        assert moved.stop() == 0
